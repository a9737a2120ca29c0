//! Files in memory as a workspace: capture and restore.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::journal::{CallChanges, WorkspaceRoot};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    FilePath, Filesystem, GraftedCapture, ObjectOverlay, Objects, PathChange, RestoreReport, Reversal,
    ReversedCapture, UncoveredPath, UncoveredReason, Workspace, WorkspaceCapture, WorkspaceError,
};

use super::capture::Capture;
use super::restore::Restore;
use super::{MemoryFiles, MemoryFilesystem};
use crate::format::{changes, check_complete, diff, grafted, rebased, reversed};

/// Maximum number of remembered ids. Beyond it, the store is asked again.
const MOST_REMEMBERED: usize = 1024 * 1024;

/// An in-memory filesystem as a workspace.
///
/// A root covers all files, so no capture reports uncovered paths. The format is that of host directories. A
/// root with content that memory cannot represent (links, exact modes, names that are not UTF-8) is refused,
/// and the files stay unchanged.
pub struct MemoryWorkspace {
    filesystem: Arc<MemoryFilesystem>,
    objects: Arc<dyn Objects>,
    stored: Mutex<HashSet<ObjectId>>,
}

impl MemoryWorkspace {
    /// Creates a workspace over these files, whose objects are in `objects`.
    pub fn new(filesystem: Arc<MemoryFilesystem>, objects: Arc<dyn Objects>) -> Self {
        Self { filesystem, objects, stored: Mutex::default() }
    }

    /// The in-memory filesystem itself, with its operations beyond the port.
    pub fn memory(&self) -> &Arc<MemoryFilesystem> {
        &self.filesystem
    }

    /// Forgets which objects are stored. Call this after objects were deleted from the store.
    pub fn forget_stored(&self) {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn capture_files(&self, files: &MemoryFiles) -> Result<WorkspaceCapture, WorkspaceError> {
        // Only ids that the store confirmed are remembered, since the objects of a capture may never be
        // stored.
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.len() > MOST_REMEMBERED {
            stored.clear();
        }
        let mut capture = Capture::new(Some(&*self.objects), &mut stored);
        let root = capture.root(files)?;
        Ok(WorkspaceCapture { root, objects: capture.new, uncovered: Vec::new(), coverage: None })
    }
}

impl std::fmt::Debug for MemoryWorkspace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MemoryWorkspace")
            .field("filesystem", &self.filesystem)
            .finish_non_exhaustive()
    }
}

impl Workspace for MemoryWorkspace {
    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.filesystem.clone()
    }

    fn capture(&self) -> Result<WorkspaceCapture, WorkspaceError> {
        self.capture_files(&self.filesystem.snapshot())
    }

    fn capture_grafted(
        &self,
        from: WorkspaceRoot,
        paths: &[FilePath],
    ) -> Result<GraftedCapture, WorkspaceError> {
        grafted(self.capture()?, &*self.objects, from, paths)
    }

    fn capture_reversed(&self, reversal: &Reversal) -> Result<ReversedCapture, WorkspaceError> {
        reversed(self.capture()?, &*self.objects, reversal, BTreeSet::new())
    }

    fn restore(&self, root: WorkspaceRoot) -> Result<RestoreReport, WorkspaceError> {
        self.restore_bringing(root, None, &[])
    }

    fn restore_bringing(
        &self,
        root: WorkspaceRoot,
        _: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        let present = self.filesystem.snapshot();
        let before = self.capture_files(&present)?;
        if before.root == root {
            return Ok(RestoreReport::default());
        }
        let new = before.objects.into_iter().chain(brought.iter().cloned());
        let objects = ObjectOverlay::new(new, &*self.objects);
        let mut restore = Restore {
            objects: &objects,
            limits: self.filesystem.limits,
            total_bytes: self.filesystem.total_bytes,
            modified: self.filesystem.now(),
            entries: 0,
            bytes: 0,
            kept: Vec::new(),
        };
        let files = restore.files(root, &present)?;
        let kept = restore.kept;
        let mut changed = diff(&objects, before.root, root)?;
        changed.retain(|change| kept.iter().all(|kept| kept.path != change.path));
        self.filesystem.restore(files);
        Ok(RestoreReport { changed, kept })
    }

    fn restore_changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        _: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        let mut now = self.capture()?;
        now.objects.extend_from_slice(brought);
        let known = ObjectOverlay::new(now.objects.iter().cloned(), &*self.objects);
        let rebased = rebased(&known, now.root, (from, to), &BTreeSet::new())?;
        now.objects.extend(rebased.objects);
        let mut restored = self.restore_bringing(rebased.root, None, &now.objects)?;
        restored.kept.extend(rebased.conflicts.into_iter().map(|left| UncoveredPath {
            path: left.path,
            reason: UncoveredReason::ChangedByOthers,
            bytes: None,
        }));
        Ok(restored)
    }

    fn check_restorable(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<(), WorkspaceError> {
        // The present files need not be stored.
        let present = self.capture()?;
        let new = present.objects.into_iter().chain(brought.iter().cloned());
        check_complete(&ObjectOverlay::new(new, &*self.objects), root, coverage)
    }

    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError> {
        diff(&*self.objects, from, to)
    }

    fn changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        brought: &[Object],
    ) -> Result<CallChanges, WorkspaceError> {
        changes(&ObjectOverlay::new(brought.iter().cloned(), &*self.objects), from, to)
    }
}
