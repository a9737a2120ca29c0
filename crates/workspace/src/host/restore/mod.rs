//! Restores files to a stored root.
//!
//! A restore has two phases. The first compares the present with the wanted files and makes a plan. It
//! changes nothing, verifies that all objects are available, and reports obstacles. The second executes the
//! plan, with temporary files that are renamed.
//!
//! No state but the plan is kept between the phases, so an interrupted restore is simply repeated: it finds
//! the remaining differences. Uncovered paths are neither changed nor deleted, and neither are files that a
//! process outside the call is writing. When a restore returns, its writes are durable.
//!
//! Deletions come first, since the writes may need the space.
//!
//! Other processes may write concurrently. Their changes make a restore fail, and it is retried; the last
//! attempt skips and lists the paths that they keep changing.

mod apply;
mod plan;
mod remove;
mod sync;

use std::io;
use std::os::fd::BorrowedFd;

use backstitch_core::crash_point;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::ports::{
    Objects, PathChange, RestoreReport, UncoveredPath, UncoveredReason, WorkspaceError,
};
use backstitch_filesystem::format::names::shown;
use backstitch_filesystem::format::{Overlay, Root};

use super::index::DirIndex;
use super::open_files::OpenFiles;
use super::rules::Rules;
use super::scan::manifest_of;
use super::sys::{self, EntryStat, Kind};
use crate::coverage::Coverage;

/// Called before each step of a restore, from the first change to the sync. An error stops the restore there.
pub type Progress<'a> = &'a mut dyn FnMut() -> io::Result<()>;

/// Inputs and results of a restore.
pub(crate) struct Restore<'a> {
    pub(crate) objects: &'a dyn Objects,
    pub(crate) rules: &'a Rules,
    pub(crate) coverage: &'a Coverage,
    how: Attempt,
    open_files: OpenFiles,
    changed: Vec<PathChange>,
    kept: Vec<UncoveredPath>,
}

/// Variant of an attempt at a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Delete files before rewriting them, since there is no space for both.
    pub(crate) makes_room: bool,
    /// Skip paths that other processes keep changing.
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

    /// Restores the files below `root`, whose present state is `found`, to `wanted`. `restored` receives the
    /// changes, even if the restore fails.
    pub(crate) fn run(
        mut self,
        restored: &mut RestoreReport,
        root: BorrowedFd<'_>,
        found: &DirIndex,
        wanted: WorkspaceRoot,
        progress: Option<Progress<'_>>,
    ) -> Result<(), WorkspaceError> {
        let done = self.carry_out(root, found, wanted, progress);
        // Skipped paths were not changed after all.
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
            let device = sys::file_stat(root).map_err(|error| sys::io_error(&[], error))?.stamp.device;
            apply::Apply::new(self, root, device, progress).run(plan)?;
            crash_point!("workspace.restore.done");
        }
        Ok(())
    }

    /// Reason why an entry must not be touched, or `None` if it may be.
    fn protected(&self, path: &[u8], found: &EntryStat) -> Option<UncoveredReason> {
        let never = self.rules.never(path, found.kind == Kind::Directory, &found.stamp);
        never.or_else(|| self.coverage.reason(path))
    }

    fn keep(&mut self, path: &[u8], reason: UncoveredReason, found: Option<&EntryStat>) {
        let bytes = found.filter(|found| found.kind == Kind::File).map(|found| found.stamp.size);
        self.kept.push(UncoveredPath { path: shown(path), reason, bytes });
    }
}
