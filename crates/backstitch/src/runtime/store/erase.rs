//! Removal of values and of sessions.
//!
//! What a removed session had outside of the store is removed with it: its copy of a project, and what killed processes have left.

use std::path::PathBuf;

use backstitch_workspace::remove_copy;

use super::blocking;
use crate::id::SessionId;
use crate::ports::{ErasureMode, ForkRemoval, OpenError, Redaction, Removal, RemovalReport};
use crate::redaction::SensitiveValue;
use crate::report::{SessionRedaction, SessionRemoval, Version};
use crate::{Runtime, RuntimeError};

/// How sessions are removed. By default they are deleted, unless other sessions depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoveOptions {
    /// What happens to sessions that depend on them.
    pub forks: ForkRemoval,
    /// Whether anything is deleted.
    pub mode: ErasureMode,
}

impl Default for RemoveOptions {
    fn default() -> Self {
        Self { forks: ForkRemoval::Refuse, mode: ErasureMode::Now }
    }
}

impl Runtime {
    /// Removes a value, such as a leaked key, from everything that a session recorded, and from all sessions that share records or calls
    /// with it. Refused while a process holds one of them. Files of the workspace are not changed.
    pub async fn redact(
        &self,
        session: SessionId,
        value: SensitiveValue,
        mode: ErasureMode,
    ) -> Result<SessionRedaction, RuntimeError> {
        // They may hold the value too.
        let left = self.remove_remainders(mode).await;
        let (owner, at) = (self.owner().clone(), self.clock().now());
        let redaction = Redaction { session, value, owner, at, mode };
        let content = self.store().redact(redaction).await?;
        Ok(SessionRedaction { v: Version, dry_run: mode == ErasureMode::DryRun, content, left })
    }

    /// Deletes sessions for good, with their sub-agents, the copies of projects that they worked in, and the objects that only they
    /// needed. Refused while a process holds one of them.
    pub async fn remove(
        &self,
        sessions: impl IntoIterator<Item = SessionId>,
        options: RemoveOptions,
    ) -> Result<SessionRemoval, RuntimeError> {
        let sessions = sessions.into_iter().collect();
        let (content, copies) = self.remove_with_copies(sessions, options).await?;
        let left = self.remove_remainders(options.mode).await;
        Ok(SessionRemoval { v: Version, dry_run: options.mode == ErasureMode::DryRun, content, copies, left })
    }

    /// Deletes sessions and their copies of projects, and returns the number of copies.
    pub(super) async fn remove_with_copies(
        &self,
        sessions: Vec<SessionId>,
        options: RemoveOptions,
    ) -> Result<(RemovalReport, usize), RuntimeError> {
        let removal = |mode| Removal {
            sessions: sessions.clone(),
            forks: options.forks,
            owner: self.owner().clone(),
            at: self.clock().now(),
            mode,
        };
        let rehearsed =
            self.store().remove(removal(ErasureMode::DryRun)).await?;
        let copies = self.copies_of(&rehearsed).await;
        if options.mode == ErasureMode::DryRun {
            return Ok((rehearsed, copies.len()));
        }
        let removed = self.store().remove(removal(ErasureMode::Now)).await?;
        let count = copies.len();
        blocking(move || {
            for path in copies {
                remove_copy(&path).map_err(|source| OpenError::Io { path, source })?;
            }
            Ok(())
        })
        .await?;
        Ok((removed, count))
    }

    /// Returns the copies of projects that sessions work in.
    async fn copies_of(&self, removal: &RemovalReport) -> Vec<PathBuf> {
        let mut copies = Vec::new();
        for session in removal.sessions.iter().map(|one| one.session) {
            // A session that cannot be read is removed all the same.
            let Ok(view) = self.view(session).await else { continue };
            if let Some(isolated) = view.isolation().filter(|isolated| isolated.point.session == session) {
                let whole = self.adapters.whole_copy(isolated.record.directory.as_ref(), session);
                copies.extend(whole.filter(|whole| whole.exists()).map(ToOwned::to_owned));
            }
        }
        copies
    }
}
