//! Captures a workspace and restores it.

use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ConflictKind, MergeConflict, ObjectOverlay, RescueCapture, RestoreReport, UncoveredPath, UncoveredReason,
    WorkspaceCapture, WorkspaceError,
};
use backstitch_filesystem::format::{self, GraftedRoot, MergedRoot, empty_tree};

use super::index::DirIndex;
use super::restore::{Attempt, Progress, Restore};
use super::scan::{Purpose, Scan, ScanLimits, manifest_of, report};
use super::sys;
use super::workspace::{CaptureMemo, HostWorkspace};
use crate::coverage::Coverage;

/// Maximum number of attempts at a restore with which other processes interfere. The last attempt skips the
/// paths that they keep changing.
const ATTEMPTS: u32 = 8;

/// The files that a restore leads to.
#[derive(Clone, Copy)]
pub(super) struct RestoreTarget<'a> {
    pub(super) root: WorkspaceRoot,
    /// If set, only what differs between this root and the other is restored.
    pub(super) since: Option<WorkspaceRoot>,
    pub(super) coverage: &'a Coverage,
    /// Objects that may not be stored.
    pub(super) brought: &'a [Object],
}

impl HostWorkspace {
    /// Captures the files and decides the coverage. Directories that were over budget stay uncovered without
    /// another walk, as long as this process lives.
    pub(super) fn capture_anew(&self) -> Result<WorkspaceCapture, WorkspaceError> {
        let mut state = self.state();
        let fixed = if state.captured { state.coverage.sticky() } else { Coverage::default() };
        let (captured, coverage) = self.scan(&mut state, &fixed, self.limits)?;
        self.keep_coverage(&mut state, coverage)?;
        self.save_if_worth(&mut state);
        Ok(captured)
    }

    /// Captures the files with an earlier coverage: omitted paths stay omitted.
    pub fn capture_with(&self, coverage: &Coverage) -> Result<WorkspaceCapture, WorkspaceError> {
        let mut state = self.state();
        let (captured, _) = self.scan(&mut state, coverage, self.limits)?;
        self.save_if_worth(&mut state);
        Ok(captured)
    }

    /// Captures the files before a restore with this coverage, within a budget of new content. Files that do
    /// not fit are listed.
    pub fn rescue_covering(
        &self,
        fixed: &Coverage,
        byte_budget: u64,
    ) -> Result<RescueCapture, WorkspaceError> {
        let mut state = self.state();
        let limits = ScanLimits { spend: Some(byte_budget), ..self.limits };
        let (captured, found) = self.scan(&mut state, fixed, limits)?;
        let known: Vec<_> = fixed.uncovered().map(|uncovered| uncovered.path).collect();
        let decided: Vec<_> = found.uncovered().map(|uncovered| uncovered.path).collect();
        let lost = |uncovered: &&UncoveredPath| {
            decided.contains(&uncovered.path) && !known.contains(&uncovered.path)
        };
        let left_out = captured.uncovered.iter().filter(lost).cloned().collect();
        Ok(RescueCapture { captured, left_out })
    }

    fn scan(
        &self,
        state: &mut CaptureMemo,
        fixed: &Coverage,
        limits: ScanLimits,
    ) -> Result<(WorkspaceCapture, Coverage), WorkspaceError> {
        crash_point!("workspace.scan.begun");
        let mut previous = state.index.take();
        self.forget_removed(state, previous.as_mut())?;
        let mut scan =
            Scan::new(&self.rules, &mut state.ignores, fixed, &*self.objects, limits, Purpose::Capture);
        if let Some(previous) = &mut previous {
            scan.confirm(previous)?;
        }
        let mut node = scan.root(self.root.as_fd(), previous)?;
        let tree = match node.tree {
            Some(tree) => tree,
            // Git represents an empty directory only at the root.
            None => scan.give(empty_tree())?,
        };
        let manifest = scan.give(manifest_of(&node).to_object())?;
        scan.ask()?;
        scan.note_stored(&mut node);
        state.unsaved += scan.read;
        state.confirmed += scan.confirmed;
        state.read += scan.read as u64;
        let objects = std::mem::take(&mut scan.new);
        let (uncovered, coverage) = report(&node);
        state.index = Some(node);
        let root = WorkspaceRoot { tree, manifest };
        let decided = coverage.to_object(self.git_head());
        crash_point!("workspace.scan.done");
        Ok((WorkspaceCapture { root, objects, uncovered, coverage: decided }, coverage))
    }

    /// Forgets which objects are stored if the store may have removed any since it was asked.
    fn forget_removed(
        &self,
        state: &mut CaptureMemo,
        index: Option<&mut DirIndex>,
    ) -> Result<(), WorkspaceError> {
        // The new mark is taken first: whatever is removed after it makes it invalid.
        let now = self.objects.mark().map_err(WorkspaceError::Objects)?;
        let keeps = match &state.mark {
            Some(mark) => self.objects.keeps(mark).map_err(WorkspaceError::Objects)?,
            None => true,
        };
        if let Some(index) = index.filter(|_| !keeps) {
            index.forget_stored();
        }
        state.mark = now;
        Ok(())
    }

    pub(super) fn restore_with_retries(
        &self,
        target: RestoreTarget<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<RestoreReport, WorkspaceError> {
        let mut progress = progress;
        let mut restored = RestoreReport::default();
        let mut how = Attempt::default();
        for attempt in 1..=ATTEMPTS {
            how.leaves_contended = attempt == ATTEMPTS;
            let progress = progress.as_mut().map(|progress| &mut **progress as Progress<'_>);
            let tried = match target.since {
                Some(since) => self.try_changes(target, since, how, &mut restored, progress),
                None => self.try_restore(target, how, &mut restored, progress),
            };
            match tried {
                Err(error) if sys::is_full(&error) && !how.makes_room && attempt < ATTEMPTS => {
                    how.makes_room = true;
                }
                Err(error) if sys::is_contended(&error) && attempt < ATTEMPTS => {
                    // The interfering process may be done in a moment.
                    std::thread::sleep(Duration::from_millis(1 << attempt));
                }
                result => return result.map(|()| restored),
            }
        }
        Ok(restored)
    }

    fn try_restore(
        &self,
        RestoreTarget { root, coverage, brought, .. }: RestoreTarget<'_>,
        how: Attempt,
        restored: &mut RestoreReport,
        progress: Option<Progress<'_>>,
    ) -> Result<(), WorkspaceError> {
        let mut state = self.state();
        let state = &mut *state;
        let previous = state.index.take();
        let stored = &*self.objects;
        let mut scan =
            Scan::new(&self.rules, &mut state.ignores, coverage, stored, self.limits, Purpose::Restore);
        let node = scan.root(self.root.as_fd(), previous)?;
        state.unsaved += scan.read;
        state.read += scan.read as u64;
        let node = state.index.insert(node);
        let objects = ObjectOverlay::new(brought.iter().cloned(), stored);
        let restore = Restore::new(&objects, &self.rules, coverage, how);
        let done = restore.run(restored, self.root.as_fd(), node, root, progress);
        if !brought.is_empty() {
            // The written files came from objects that may not be in the store.
            node.forget_stored();
        }
        done
    }

    /// Restores what differs between two roots. The files are compared and restored after one scan, so that there is no time in which
    /// a change by others is overlooked.
    fn try_changes(
        &self,
        target: RestoreTarget<'_>,
        since: WorkspaceRoot,
        how: Attempt,
        restored: &mut RestoreReport,
        progress: Option<Progress<'_>>,
    ) -> Result<(), WorkspaceError> {
        let mut state = self.state();
        let state = &mut *state;
        let (captured, mut coverage) = self.scan(state, target.coverage, self.limits)?;
        // What cannot be captured now is not part of the root that was found, so it must stay.
        for (path, reason) in target.coverage.omitted() {
            coverage.insert(path, reason);
        }
        let excluded: BTreeSet<Vec<u8>> = coverage.omitted().map(|(path, _)| path.clone()).collect();
        let found = captured.objects.into_iter().chain(target.brought.iter().cloned());
        let mut objects = ObjectOverlay::new(found, &*self.objects);
        let MergedRoot { root, objects: new, conflicts, .. } =
            format::rebased(&objects, captured.root, (since, target.root), &excluded)?;
        let has_new = !new.is_empty() || !target.brought.is_empty();
        new.into_iter().for_each(|object| objects.insert(object));
        // An attempt that makes room deletes files before it writes them again.
        let is_own = |left: &MergeConflict| how.makes_room && left.kind == ConflictKind::DeletedInDirectory;
        let (deleted, conflicts): (Vec<_>, Vec<_>) = conflicts.into_iter().partition(is_own);
        let deleted: Vec<&[u8]> = deleted.iter().map(|left| left.path.as_bytes()).collect();
        let GraftedRoot { root, objects: new, .. } = format::graft(&objects, root, target.root, &deleted)?;
        new.into_iter().for_each(|object| objects.insert(object));
        let Some(node) = &mut state.index else { return Ok(()) };
        let restore = Restore::new(&objects, &self.rules, &coverage, how);
        let done = restore.run(restored, self.root.as_fd(), node, root, progress);
        if has_new {
            // The written files came from objects that may not be in the store.
            node.forget_stored();
        }
        restored.kept.extend(conflicts.into_iter().map(|left| UncoveredPath {
            path: left.path,
            reason: UncoveredReason::ChangedByOthers,
            bytes: None,
        }));
        done
    }
}
