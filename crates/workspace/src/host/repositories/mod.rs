//! Guards what git executes in the repositories of a workspace.
//!
//! Git runs programs that the settings and hooks of a repository name, also for a person who only asks for
//! its status, and outside of every sandbox. Captures do not cover the workspace's own repository, and a
//! change of these files would not be noticed among many. So they are read before each call that may write,
//! and compared after it. What changed is restored, except for entries that git itself writes, such as
//! remotes and tracking branches. Every change is returned, so that it can be named.
//!
//! The state before a call is also stored in a file beside the store, which only its owner may read: after a
//! crash the next process compares with it. A file that was changed when the call was dead already is kept, and named: hooks
//! and settings of a person are nowhere else. If the call had changed it before, git has read it by then anyway.

mod check;
mod find;
mod guarded;
mod settings;

use std::os::fd::AsFd as _;

use backstitch_core::ports::{GuardMode, GuardOutcome, RepositoryChange, WorkspaceError};
use backstitch_filesystem::format::names::shown;

use super::sys;
use super::workspace::{HostWorkspace, write_durably};
use check::{Repair, compare};
use find::Repositories;
pub(in crate::host) use find::is_repository;
pub(in crate::host) use guarded::GuardedFiles;

const VERSION: u64 = 1;

impl HostWorkspace {
    fn read_guarded(&self) -> (GuardedFiles, Repositories) {
        let state = self.state();
        let found = Repositories::find(self.root.as_fd(), &self.path, state.index.as_ref());
        drop(state);
        (GuardedFiles::read(self.root.as_fd(), &found), found)
    }

    /// Stores the guarded files before a call.
    pub(super) fn keep_guarded(&self) -> Result<(), WorkspaceError> {
        let (guarded, _) = self.read_guarded();
        if self.stored_guarded().as_ref() != Some(&guarded) {
            let text = serde_json::to_vec(&guarded).expect("invariant: texts and numbers encode as JSON");
            let failed = |error| sys::io_error(self.guarded_path.as_os_str().as_encoded_bytes(), error);
            write_durably(&self.guarded_path, &text).map_err(failed)?;
        }
        self.state().guarded = Some(guarded);
        Ok(())
    }

    fn stored_guarded(&self) -> Option<GuardedFiles> {
        let stored: GuardedFiles = serde_json::from_slice(&std::fs::read(&self.guarded_path).ok()?).ok()?;
        (stored.v == VERSION).then_some(stored)
    }

    /// Compares the guarded files with those before the last call, and restores them if the mode says so.
    pub(super) fn check_guarded(&self, mode: GuardMode) -> Vec<RepositoryChange> {
        let known = match mode {
            GuardMode::Recover { .. } => self.stored_guarded(),
            GuardMode::Restore | GuardMode::Keep => self.state().guarded.take(),
        };
        let Some(before) = known else { return Vec::new() };
        let (after, found) = self.read_guarded();
        if before == after {
            self.state().guarded = Some(after);
            return Vec::new();
        }
        let mut changes = Vec::new();
        for change in compare(&self.path, &before, &after, &found) {
            let wanted = match &change.repair {
                Repair::Write(file) => Some(Some(file)),
                Repair::Remove => Some(None),
                Repair::None => None,
            };
            let outcome = match (mode, wanted) {
                (GuardMode::Keep, _) | (_, None) => GuardOutcome::Kept,
                (GuardMode::Recover { kept_since: Some(since) }, _)
                    if guarded::is_changed_after(self.root.as_fd(), &change.path, since) =>
                {
                    GuardOutcome::Kept
                }
                (GuardMode::Restore | GuardMode::Recover { .. }, Some(file)) => {
                    match guarded::write(self.root.as_fd(), &change.path, file) {
                        Ok(()) => GuardOutcome::Restored,
                        Err(_) => GuardOutcome::Failed,
                    }
                }
            };
            changes.push(RepositoryChange { path: shown(&change.path), keys: change.keys, outcome });
        }
        if after.more > before.more {
            let path = format!("{} more repositories", after.more);
            changes.push(RepositoryChange { path, keys: Vec::new(), outcome: GuardOutcome::Failed });
        }
        changes.sort_by(|one, two| one.path.cmp(&two.path));
        self.state().guarded = Some(self.read_guarded().0);
        changes
    }
}
