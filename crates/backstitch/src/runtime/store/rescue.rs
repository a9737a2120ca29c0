//! Backup and salvage. They name a store by its address, since one that is damaged or has an older version cannot be opened.

use std::path::Path;

use crate::ports::{BackupProgress, OpenError, Progress};
use crate::report::{StoreBackup, StoreSalvage, Version};
use crate::stores::{self, StoreAddress};
use crate::{Runtime, RuntimeError};

impl Runtime {
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
