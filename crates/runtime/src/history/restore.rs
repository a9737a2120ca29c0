//! Restores of single files.
//!
//! A restore is a rewind that keeps the conversation and changes only files: its target is the head, with the current
//! files in which some paths are those of another point. So it is recorded before any file is written, a process
//! that dies in between leaves it to the next one, the files before it are rescued, and it can be undone.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, WorkspaceRoot};
use backstitch_core::ports::{
    FilePath, GraftedCapture, MergeConflict, PathChange, ReversalPlan, UncoveredPath,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::locate::locate;
use super::own::{RewindScope, RewindTarget, RewoundFiles, RewoundHalf, StepsSince};
use super::rewind::{RewindCause, RewindReport, check_kept};
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, RestoredFiles, blocking, recorded};
use crate::point::PointSpec;
use crate::report::Version;

/// The result of a restore of single files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FileRestoreReport {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The position of its record.
    pub at: Position,
    /// The point whose files were restored.
    #[schemars(with = "String")]
    pub from: PointSpec,
    /// The changes of the files.
    pub files: Vec<PathChange>,
    /// Files that differ, and were left alone.
    #[serde(default)]
    pub kept: Vec<UncoveredPath>,
    /// Files that others changed too, and that keep these changes.
    #[serde(default)]
    pub merged: Vec<String>,
    /// Files that others changed too, and that were left alone since the changes cannot be merged.
    #[serde(default)]
    pub conflicts: Vec<MergeConflict>,
    /// The root of the files now.
    pub root: Option<WorkspaceRoot>,
    /// The point of the files before, if they differed.
    #[schemars(with = "Option<String>")]
    pub rescue: Option<PointSpec>,
    /// Whether this only says what would be done. Then nothing was recorded, and `at` is where it would be.
    #[serde(default)]
    pub dry_run: bool,
}

impl FileRestoreReport {
    pub(crate) fn new(
        from: PointSpec,
        done: RewindReport,
        mut files: Vec<PathChange>,
        restored: Vec<RestoredFiles>,
    ) -> Self {
        let kept: Vec<_> = restored.into_iter().flat_map(|restored| restored.kept).collect();
        if done.dry_run {
            files = done.own_files.changes;
        }
        files.retain(|change| !kept.iter().any(|kept| kept.path == change.path));
        let rescue = done.rescue.map(|_| PointSpec::Rescue(done.at));
        Self {
            v: Version,
            session: done.session,
            at: done.at,
            from,
            files,
            kept,
            merged: done.own_files.merged,
            conflicts: done.own_files.conflicts,
            root: done.root,
            rescue,
            dry_run: done.dry_run,
        }
    }
}

impl LiveSession {
    /// Returns the changes of the files by a rewind that was just made.
    pub(crate) async fn changes_of(&self, done: &RewindReport) -> Result<Vec<PathChange>> {
        match (self.workspace().cloned(), done.rescue, done.root) {
            (Some(workspace), Some(before), Some(after)) => {
                blocking(move || workspace.diff(before, after)).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Restores single files and directories to their state at a point. A path that did not exist there is removed. The
    /// root restores all files that the session changed since. State and conversation stay as they are.
    pub async fn restore_files(&self, point: &PointSpec, paths: Vec<FilePath>) -> Result<RewindReport> {
        self.restore_files_within(point, paths, RewindScope::default()).await
    }

    /// Like [`restore_files`](Self::restore_files), where the scope says what the root stands for, and whether it is only a dry run.
    pub async fn restore_files_within(
        &self,
        point: &PointSpec,
        paths: Vec<FilePath>,
        scope: RewindScope,
    ) -> Result<RewindReport> {
        self.settle_files().await?;
        self.restore_missing_files().await?;
        self.flush().await?;
        let Some(workspace) = self.workspace().cloned() else {
            return Err(RuntimeError::NoWorkspace { session: self.id() });
        };
        let view = self.view().await;
        let place = locate(&**self.store(), &view, point).await?;
        check_kept(&**self.store(), place.files).await?;
        let missing =
            |reason: &str| RuntimeError::NoSuchPoint { point: point.to_string(), reason: reason.to_owned() };
        let from = place.files.ok_or_else(|| missing("no files are recorded there"))?;
        let names = paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let reason = Some(format!("{names} as at {point}"));
        let cause = RewindCause { reason, ..RewindCause::default() };
        if paths.iter().any(FilePath::is_root) {
            let since = StepsSince::of(point, place.cut);
            // Between a point of the session that this one is a fork of and now, its own changes are not all.
            if place.session != self.id() && scope.files == RewoundFiles::Own {
                let reason = format!(
                    "it lies in session {}, which this one is a fork of: name the files, or restore all files",
                    place.session
                );
                return Err(missing(&reason));
            }
            let scope = RewindScope { only: Some(RewoundHalf::Files), ..scope };
            return self.rewind_with_files(&view, (place, since), cause, scope).await;
        }
        let alone = self.files.clone().write_owned().await;
        let GraftedCapture { captured, found, changes, missing } = blocking(move || {
            let _alone = alone;
            workspace.capture_grafted(from.root, &paths)
        })
        .await?;
        if let Some(path) = missing.into_iter().next() {
            return Err(RuntimeError::NoSuchFile { point: point.to_string(), path });
        }
        let (files, objects) = recorded(captured);
        let plan = ReversalPlan { changes, ..ReversalPlan::default() };
        let target = RewindTarget { files: Some(files), objects, found: Some(found), plan };
        self.rewind_to_target(&view, (view.head(), target), cause, scope.dry_run).await
    }
}
