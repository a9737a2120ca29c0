//! Applies the changes of an isolated session to a directory.
//!
//! The changes since the base are merged into the files of the directory. An application is recorded, with the state of the
//! directory before and after, before any file is written. If the process dies in between, the next one completes it: the
//! recorded change is merged again into what it finds, and edits that a person made since then win. Undoing an application is
//! the same merge backwards.

use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{
    ApplyFinished, ApplyStarted, Position, WorkspaceIsolated, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::ports::{
    ConflictResolution, FilePath, IgnoredPaths, MergeConflict, MergedCapture, MovedBranch, PathChange,
    UncoveredPath, Workspace, WorkspaceMerge,
};
use backstitch_core::view::{Call, JournalEntry, JournalView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rewind::check_kept;
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, blocking, recorded};
use crate::report::Version;
use crate::workspace::{Isolation, OperationFiles, WorkspaceSpec};

/// Whether changes are applied, or an application of them is undone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApplyDirection {
    /// The changes of the session are applied.
    #[default]
    Apply,
    /// The latest application is undone; again, the one before it.
    Undo,
}

/// How the changes of a session are applied.
#[derive(Debug, Clone, Default)]
pub struct ApplyOptions {
    /// Whether changes are applied or undone.
    pub direction: ApplyDirection,
    /// Files and directories to apply. If there are none, everything is applied.
    pub paths: Vec<FilePath>,
    /// What to do about conflicts.
    pub resolution: ConflictResolution,
    /// Merges, and neither records nor writes anything.
    pub dry_run: bool,
    /// The files of the session. Without them, its last recorded ones are applied.
    pub files: OperationFiles,
    /// The directory to apply to. By default it is the project that the session works in a copy of, and to undo an
    /// application, the directory that it was made to.
    pub project: Option<WorkspaceSpec>,
}

/// The result of applying changes, or of undoing that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ApplyReport {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The directory that changes were applied to.
    pub directory: String,
    /// Whether nothing was recorded or written on request.
    pub dry_run: bool,
    /// Whether an application was undone.
    pub undo: bool,
    /// The position of its record; `None` if nothing was recorded: in a dry run, with conflicts, and where the directory has had
    /// all changes since the application before.
    pub at: Option<Position>,
    /// State of the directory before.
    pub before: WorkspaceRoot,
    /// State of the directory after.
    pub after: WorkspaceRoot,
    /// The changes of the directory.
    #[serde(rename = "files")]
    pub changes: Vec<PathChange>,
    /// Conflicts. If there are any, nothing was written.
    pub conflicts: Vec<MergeConflict>,
    /// Conflicts that the options decided.
    pub decided: Vec<MergeConflict>,
    /// Changed paths that were left out, since the session or the directory does not cover them.
    pub left_out: Vec<UncoveredPath>,
    /// Paths that could not be written, because another process uses them.
    pub kept: Vec<UncoveredPath>,
    /// The directory of the session's copy, if it was open.
    #[serde(default)]
    pub copy: Option<String>,
    /// Branches that moved in the copy. Applying changes brings files, and no commits.
    #[serde(default)]
    pub commits: Vec<MovedBranch>,
}

impl LiveSession {
    /// Records that the session works in a copy of a project, and the state that it starts from.
    pub(crate) async fn record_isolation(&self, isolation: Isolation) -> Result<()> {
        let directory = self.workspace().and_then(|workspace| workspace.host_directory());
        let directory = directory.map(|directory| directory.to_string_lossy().into_owned());
        self.commit(|commit| {
            if let Some(WorkspaceRevision { root, coverage }) = commit.view().files() {
                commit.push(WorkspaceIsolated {
                    project: isolation.project.to_string_lossy().into_owned(),
                    directory: directory.unwrap_or_default(),
                    root,
                    coverage,
                    left_out: isolation.left_out.into_iter().map(|one| one.path).collect(),
                    extra: Extra::default(),
                });
            }
            Ok(())
        })
        .await
    }

    /// Merges the changes of an isolated session into a directory. With conflicts, nothing is written.
    pub async fn apply(&self, directory: Arc<dyn Workspace>, options: ApplyOptions) -> Result<ApplyReport> {
        let session = self.id();
        let has_open_call = self.view().await.calls().any(Call::is_open);
        // The files of an interrupted call are not a state that the session has reached.
        if !has_open_call {
            self.settle_files().await?;
            self.reconcile_files().await?;
        }
        self.flush().await?;
        let view = self.view().await;
        self.check_no_pending().await?;
        let base = view.isolation_base().ok_or(RuntimeError::NotIsolated { session })?;
        let theirs = view.files().ok_or(RuntimeError::NotIsolated { session })?;
        check_kept(&**self.store(), Some(theirs)).await?;
        check_kept(&**self.store(), WorkspaceRevision::of(Some(base), None)).await?;
        let ignored = IgnoredPaths::LeaveOut;
        let next_base = if options.paths.is_empty() { theirs.root } else { base };
        let merge =
            WorkspaceMerge { base, theirs, paths: options.paths, resolution: options.resolution, ignored };
        self.carry_out(directory, merge, next_base, None, options.dry_run).await
    }

    /// Undoes the latest application that changed a file and is not undone: what it changed is merged backwards into the directory.
    pub async fn undo_apply(
        &self,
        directory: Arc<dyn Workspace>,
        options: ApplyOptions,
    ) -> Result<ApplyReport> {
        self.check_no_pending().await?;
        let view = self.view().await;
        let undone = undoable_apply(&view).ok_or(RuntimeError::NothingToApply { session: self.id() })?;
        let ApplyStarted { before, after, coverage, base, .. } = *undone.record.clone();
        // What was applied is undone, ignored or not.
        let (theirs, ignored) = (WorkspaceRevision { root: before, coverage }, IgnoredPaths::Merge);
        let merge = WorkspaceMerge {
            base: after,
            theirs,
            paths: Vec::new(),
            resolution: options.resolution,
            ignored,
        };
        self.carry_out(directory, merge, base, Some(undone.point.position), options.dry_run).await
    }

    /// Completes an application that was interrupted. Files that were edited since then keep these edits where the two
    /// cannot be merged. Returns `None` if none was interrupted.
    pub async fn complete_apply(&self, directory: Arc<dyn Workspace>) -> Result<Option<ApplyReport>> {
        let pending = self.view().await.pending_apply().cloned();
        let Some(JournalEntry { point, record, .. }) = pending else { return Ok(None) };
        let theirs = WorkspaceRevision { root: record.after, coverage: record.coverage };
        let (base, resolution) = (record.before, ConflictResolution::Ours);
        let ignored = IgnoredPaths::Merge;
        let merge = WorkspaceMerge { base, theirs, paths: Vec::new(), resolution, ignored };
        let merged = capture_merge(directory.clone(), merge).await?;
        let report = self.finish_apply(directory, merged, point.position).await?;
        Ok(Some(ApplyReport { undo: record.undoes.is_some(), ..report }))
    }

    /// Returns the branches that moved in the copy that the session works in.
    pub(crate) async fn moved_branches(&self) -> Result<Vec<MovedBranch>> {
        let isolated = self.view().await.isolation().map(|isolated| isolated.record.clone());
        let coverage = isolated.and_then(|isolated| isolated.coverage);
        self.compare_repository(coverage, |workspace, then| workspace.moved_branches(then)).await
    }

    async fn check_no_pending(&self) -> Result<()> {
        let view = self.view().await;
        match view.pending_apply() {
            Some(pending) => Err(RuntimeError::ApplyPending {
                session: self.id(),
                directory: pending.record.directory.clone(),
            }),
            None => Ok(()),
        }
    }

    async fn carry_out(
        &self,
        directory: Arc<dyn Workspace>,
        merge: WorkspaceMerge,
        next_base: WorkspaceRoot,
        undoes: Option<Position>,
        dry_run: bool,
    ) -> Result<ApplyReport> {
        let (base, result) = (merge.base, merge.theirs.root);
        let merged = capture_merge(directory.clone(), merge).await?;
        let changes_nothing = undoes.is_none() && base == next_base && merged.before.root == merged.after;
        if dry_run || changes_nothing || !merged.conflicts.is_empty() {
            let report = self.apply_report(&*directory, merged, None, Vec::new());
            return Ok(ApplyReport { dry_run, undo: undoes.is_some(), ..report });
        }
        crash_point!("apply.before");
        let (before, mut objects) = recorded(merged.before.clone());
        objects.extend(merged.objects.iter().cloned());
        let path = directory.host_directory().unwrap_or_default();
        let started = ApplyStarted {
            directory: path.to_string_lossy().into_owned(),
            base,
            result,
            before: before.root,
            coverage: before.coverage,
            after: merged.after,
            next_base,
            undoes,
            extra: Extra::default(),
        };
        let at = self
            .commit(|commit| {
                let at = commit.view().head();
                commit.push(started).add_objects(objects);
                Ok(at)
            })
            .await?;
        crash_point!("apply.recorded");
        let report = self.finish_apply(directory, merged, at).await?;
        Ok(ApplyReport { undo: undoes.is_some(), ..report })
    }

    /// Writes merged files, and records that.
    async fn finish_apply(
        &self,
        directory: Arc<dyn Workspace>,
        merged: MergedCapture,
        at: Position,
    ) -> Result<ApplyReport> {
        let (before, mut brought) = recorded(merged.before.clone());
        brought.extend(merged.objects.iter().cloned());
        let (after, target) = (merged.after, directory.clone());
        let restored = blocking(move || {
            if before.root == after {
                return Ok(Vec::new());
            }
            Ok(target.restore_changes(before.root, after, before.coverage, &brought)?.kept)
        })
        .await?;
        crash_point!("apply.restored");
        let decided = merged.decided.iter().map(|conflict| conflict.path.clone());
        let is_late = self.view().await.pending_apply().is_some_and(|pending| pending.record.after != after);
        let kept = restored.iter().map(|kept| kept.path.clone()).chain(decided.filter(|_| is_late)).collect();
        let finished = ApplyFinished { kept, ..ApplyFinished::new(at) };
        self.record(vec![finished.into()]).await?;
        crash_point!("apply.finished");
        Ok(self.apply_report(&*directory, merged, Some(at), restored))
    }

    fn apply_report(
        &self,
        directory: &dyn Workspace,
        merged: MergedCapture,
        at: Option<Position>,
        kept: Vec<UncoveredPath>,
    ) -> ApplyReport {
        let MergedCapture { before, after, changes, conflicts, decided, left_out, .. } = merged;
        let directory = directory.host_directory().unwrap_or_default();
        let copy = self.workspace().and_then(|copy| copy.host_directory());
        ApplyReport {
            v: Version,
            session: self.id(),
            directory: directory.to_string_lossy().into_owned(),
            dry_run: false,
            undo: false,
            at,
            before: before.root,
            after,
            changes,
            conflicts,
            decided,
            left_out,
            kept,
            copy: copy.map(|copy| copy.to_string_lossy().into_owned()),
            commits: Vec::new(),
        }
    }
}

/// Returns the application that would be undone next: the latest one that changed a file and is not undone.
pub fn undoable_apply(view: &JournalView) -> Option<&JournalEntry<ApplyStarted>> {
    view.applied().iter().rev().find(|applied| applied.record.before != applied.record.after)
}

async fn capture_merge(directory: Arc<dyn Workspace>, merge: WorkspaceMerge) -> Result<MergedCapture> {
    blocking(move || directory.capture_merged(&merge)).await
}
