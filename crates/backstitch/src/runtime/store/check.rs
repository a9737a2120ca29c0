//! Verification of a store, repair of its index and snapshots, backup, and salvage.
//!
//! Backup and salvage name a store by its address, since one that is damaged or has an older version cannot be opened.

use std::path::Path;

use backstitch_runtime::{IndexCheck, IndexProgress, IndexRepair, SnapshotState, check_snapshot};

use crate::ports::{BackupProgress, OpenError, Progress};
use crate::report::{
    ChangesCheck, RedactedRecords, StoreBackup, StoreCheck, StoreSalvage, Version, WrongSnapshot,
};
use crate::stores::{self, StoreAddress};
use crate::{Runtime, RuntimeError};

impl Runtime {
    /// Reads everything and reports damage. Index and snapshots are compared with the journals. Nothing is changed, and other readers and
    /// writers continue.
    ///
    /// ```
    /// use backstitch::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RuntimeError> {
    /// let runtime = Runtime::in_memory();
    /// assert!(runtime.verify(&mut |_| {}).await?.sound);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify(&self, progress: Progress<'_, IndexProgress>) -> Result<StoreCheck, RuntimeError> {
        self.check(IndexRepair::Report, progress).await
    }

    /// Like [`verify`](Self::verify). Summaries that differ from their journals are written again, and such snapshots are deleted.
    /// Changed paths are listed again where they differ, or where calls of an earlier version have none: the files before and after
    /// those calls are compared. Nothing else is changed: journals and objects are never repaired.
    pub async fn repair(&self, progress: Progress<'_, IndexProgress>) -> Result<StoreCheck, RuntimeError> {
        self.store.admin.remove_stray_summaries().await?;
        self.check(IndexRepair::Rebuild, progress).await
    }

    async fn check(
        &self,
        repair: IndexRepair,
        progress: Progress<'_, IndexProgress>,
    ) -> Result<StoreCheck, RuntimeError> {
        let admin = &self.store.admin;
        let wrong_snapshots = self.wrong_snapshots().await;
        if repair == IndexRepair::Rebuild {
            for wrong in &wrong_snapshots {
                admin.remove_snapshot(wrong.session).await?;
            }
        }
        let report = admin.verify().await?;
        let index = match self.check_index(repair, progress).await {
            Ok(index) => index,
            // The damage is the finding.
            Err(_) if !report.is_sound() => IndexCheck::default(),
            Err(error) => return Err(error),
        };
        let changes = match self.check_changes(repair).await {
            Ok(changes) => changes,
            Err(_) if !report.is_sound() => ChangesCheck::default(),
            Err(error) => return Err(error),
        };
        let is_same =
            index.differing.is_empty() && changes.differing.is_empty() && wrong_snapshots.is_empty();
        let agrees = repair == IndexRepair::Rebuild || is_same;
        let sound = report.is_sound() && agrees;
        let records_of = |(session, positions)| RedactedRecords { session, positions };
        Ok(StoreCheck {
            v: Version,
            sound,
            sessions: report.sessions,
            records: report.records,
            objects: report.objects,
            findings: report.findings.iter().map(ToString::to_string).collect(),
            lost: report.lost,
            wrong_snapshots,
            redacted: report.redacted.into_iter().map(records_of).collect(),
            redacted_objects: report.redacted_objects,
            removed: report.removed,
            index,
            changes,
        })
    }

    /// Compares all snapshots with the journals. A journal that cannot be read is a finding of the store already.
    async fn wrong_snapshots(&self) -> Vec<WrongSnapshot> {
        let mut wrong = Vec::new();
        for session in self.store().sessions().await.unwrap_or_default() {
            let reason = match check_snapshot(&**self.store(), session).await {
                Ok(SnapshotState::Wrong(part)) => format!("it differs from the journal ({part})"),
                Ok(SnapshotState::Damaged) => "it is damaged".to_owned(),
                _ => continue,
            };
            wrong.push(WrongSnapshot { session, reason });
        }
        wrong
    }

    /// Copies a whole store to a new file, at which nothing may exist, and verifies the copy. Processes may use the store meanwhile. A
    /// damaged store is copied too: the report lists the damage.
    pub async fn backup(
        from: &StoreAddress,
        to: &Path,
        progress: Progress<'_, BackupProgress>,
    ) -> Result<StoreBackup, RuntimeError> {
        let bytes = stores::open_for_rescue(from)?.backup(to, progress).await?;
        let findings = damage_in(to).await;
        Ok(StoreBackup {
            v: Version,
            store: from.to_string(),
            backup: to.to_owned(),
            bytes,
            sound: findings.is_empty(),
            findings,
        })
    }

    /// Copies the sound parts of a damaged store to a new one, at which nothing may exist. The damaged store is not changed.
    pub async fn salvage(from: &StoreAddress, to: &Path) -> Result<StoreSalvage, RuntimeError> {
        let content = stores::open_for_rescue(from)?.salvage(to).await?;
        Ok(StoreSalvage { v: Version, complete: content.is_complete(), content })
    }
}

/// Verifies a backup, and returns what is damaged. One of an older version is copied as it is, and not verified.
async fn damage_in(backup: &Path) -> Vec<String> {
    let store = match stores::open_read_only(&StoreAddress::File(backup.to_owned())) {
        Ok(store) => store,
        Err(OpenError::Older { .. }) => return Vec::new(),
        Err(error) => return vec![error.to_string()],
    };
    match store.admin.verify().await {
        Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}
