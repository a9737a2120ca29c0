//! Putting files back to a stored root.
//!
//! A restore has two halves. The first compares what is there with what is wanted and makes a plan; nothing is changed, all
//! objects are known to be there, and what cannot be done is said now. The second carries the plan out, by temporary files
//! that are renamed to their place.
//!
//! Nothing is remembered between the two but the plan, so a restore that was interrupted anywhere is simply done again: it
//! finds what is still different. What is not covered is neither changed nor deleted, and neither is a file that a process
//! outside of the call is writing. When a restore returns, what it wrote is on disk and would survive a loss of power.
//!
//! What is deleted is deleted first, since what is written may need its room.
//!
//! Other processes are not kept out. What they change while a restore runs makes it fail, and it is done again; at last it
//! leaves alone, and lists, what they do not leave in peace.

mod apply;
mod plan;
mod remove;
mod sync;

use std::io;
use std::os::fd::BorrowedFd;

use backstitch_core::crash_point;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::ports::{Objects, PathChange, Restored, Uncovered, UncoveredReason, WorkspaceError};
use backstitch_filesystem::format::names::shown;
use backstitch_filesystem::format::{Overlay, Root};

use super::index::DirIndex;
use super::open_files::OpenFiles;
use super::rules::Rules;
use super::scan::manifest_of;
use super::sys::{self, EntryStat, Kind};
use crate::coverage::Coverage;

/// A step of a restore, before it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreStep {
    /// Where.
    pub path: String,
    /// What is about to be done.
    pub action: RestoreAction,
}

/// What a step of a restore does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreAction {
    /// A file or a directory is deleted.
    Remove,
    /// A temporary file gets the first half of its content.
    Write,
    /// A temporary file gets the rest of its content.
    Complete,
    /// A temporary file is renamed to its place.
    Replace,
    /// A mode is set.
    Mode,
    /// A directory is made.
    MakeDirectory,
    /// All is written, and is made durable.
    Sync,
}

/// Is told each step of a restore before it is taken, and may stop it with an error.
pub type Progress<'a> = &'a mut dyn FnMut(&RestoreStep) -> io::Result<()>;

/// What a restore works with.
pub(crate) struct Restore<'a> {
    pub(crate) objects: &'a dyn Objects,
    pub(crate) rules: &'a Rules,
    pub(crate) coverage: &'a Coverage,
    how: Attempt,
    open_files: OpenFiles,
    changed: Vec<PathChange>,
    kept: Vec<Uncovered>,
}

/// How a restore is tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Files that are written anew are deleted before, since there is no room for both.
    pub(crate) makes_room: bool,
    /// What other processes keep changing is left alone.
    pub(crate) leaves_contended: bool,
}

impl<'a> Restore<'a> {
    pub(crate) fn new(
        objects: &'a dyn Objects,
        rules: &'a Rules,
        coverage: &'a Coverage,
        how: Attempt,
    ) -> Self {
        let open_files = OpenFiles::default();
        Self { objects, rules, coverage, how, open_files, changed: Vec::new(), kept: Vec::new() }
    }

    /// Puts the files below `root`, which are as `found` says, back to `wanted`. `restored` gets what it did, even if it fails
    /// on the way.
    pub(crate) fn run(
        mut self,
        restored: &mut Restored,
        root: BorrowedFd<'_>,
        found: &DirIndex,
        wanted: WorkspaceRoot,
        progress: Option<Progress<'_>>,
    ) -> Result<(), WorkspaceError> {
        let done = self.carry_out(root, found, wanted, progress);
        // What was left alone was not changed after all.
        let is_kept = |path: &str| self.kept.iter().any(|kept| kept.path == path);
        let is_known = |path: &str| restored.changed.iter().any(|change| change.path == path);
        let changed = self.changed.into_iter().filter(|one| !is_kept(&one.path) && !is_known(&one.path));
        let changed: Vec<_> = changed.collect();
        restored.changed.extend(changed);
        restored.changed.sort_unstable();
        restored.kept = self.kept;
        restored.kept.sort_unstable();
        restored.kept.dedup();
        done
    }

    fn carry_out(
        &mut self,
        root: BorrowedFd<'_>,
        found: &DirIndex,
        wanted: WorkspaceRoot,
        progress: Option<Progress<'_>>,
    ) -> Result<(), WorkspaceError> {
        let wanted = Root::load(self.objects, wanted)?;
        let overlay = Overlay::of(&manifest_of(found));
        let plan = self.plan(root, found, &overlay, wanted.folder())?;
        if !plan.is_empty() {
            crash_point!("workspace.restore.begun");
            let device = sys::look_at(root).map_err(|error| sys::io_error(&[], error))?.stamp.device;
            apply::Apply::new(self, root, device, progress).run(plan)?;
            crash_point!("workspace.restore.done");
        }
        Ok(())
    }

    /// Why something must not be touched; none if it may be.
    fn protected(&self, path: &[u8], found: &EntryStat) -> Option<UncoveredReason> {
        let never = self.rules.never(path, found.kind == Kind::Directory, &found.stamp);
        never.or_else(|| self.coverage.reason(path))
    }

    fn keep(&mut self, path: &[u8], reason: UncoveredReason, found: Option<&EntryStat>) {
        let bytes = found.filter(|found| found.kind == Kind::File).map(|found| found.stamp.size);
        self.kept.push(Uncovered { path: shown(path), reason, bytes });
    }
}
