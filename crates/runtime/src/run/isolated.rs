//! Applying the changes of isolated sessions to their projects.

use backstitch_core::ports::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::SessionId;

use super::opening::ApplyTarget;
use crate::error::{Result, RuntimeError};
use crate::history::{ApplyDirection, ApplyOptions, ApplyReport, undoable_apply};
use crate::live::LiveSession;
use crate::runtime::Runtime;
use crate::workspace::{OperationFiles, WorkspaceSpec};

impl Runtime {
    /// Merges the changes of an isolated session into its project, or undoes the latest application of them, in the directory
    /// that they were applied to. With conflicts, nothing is written. An application that was interrupted is completed first.
    pub fn apply(&self, session: SessionId, mut options: ApplyOptions) -> BoxFuture<'_, Result<ApplyReport>> {
        Box::pin(async move {
            let (files, project) = (std::mem::take(&mut options.files), options.project.take());
            let (runtime, direction) = (self.clone(), options.direction);
            let merge = move |live: Arc<LiveSession>| async move {
                runtime.complete_pending(&live, project.as_ref()).await?;
                let view = live.view().await;
                let isolated = view.isolation().ok_or(RuntimeError::NotIsolated { session })?;
                let applied = undoable_apply(&view).filter(|_| direction == ApplyDirection::Undo);
                let known = applied.map_or(&isolated.record.project, |applied| &applied.record.directory);
                let target = project.map_or_else(|| ApplyTarget::Recorded(known.into()), ApplyTarget::Given);
                let project = runtime.open_target(target, session).await?;
                let commits = live.moved_branches().await?;
                let report = match direction {
                    ApplyDirection::Apply => live.apply(project, options).await?,
                    ApplyDirection::Undo => live.undo_apply(project, options).await?,
                };
                Ok::<_, RuntimeError>(ApplyReport { commits, ..report })
            };
            self.operate_with(session, files, merge).await
        })
    }

    /// Undoes the latest application of a session's changes, in the directory that they were applied to.
    pub fn undo_apply(
        &self,
        session: SessionId,
        options: ApplyOptions,
    ) -> BoxFuture<'_, Result<ApplyReport>> {
        Box::pin(async move {
            self.apply(session, ApplyOptions { direction: ApplyDirection::Undo, ..options }).await
        })
    }

    /// Completes an application that was interrupted, in the directory that it was made to or in another one that it was
    /// moved to. Returns `None` if none was interrupted.
    pub fn complete_apply(
        &self,
        session: SessionId,
        moved_to: Option<WorkspaceSpec>,
    ) -> BoxFuture<'_, Result<Option<ApplyReport>>> {
        Box::pin(async move {
            let runtime = self.clone();
            let complete = move |live: Arc<LiveSession>| async move {
                let Some(directory) = pending_directory(&live).await else { return Ok(None) };
                let target = moved_to.map_or(ApplyTarget::Recorded(directory), ApplyTarget::Given);
                let target = runtime.open_target(target, live.id()).await?;
                live.complete_apply(target).await
            };
            self.operate_with(session, OperationFiles::Untouched, complete).await
        })
    }

    /// Completes an application that was interrupted, before another one. The directory may be the open one of the caller.
    async fn complete_pending(&self, live: &LiveSession, project: Option<&WorkspaceSpec>) -> Result<()> {
        let Some(directory) = pending_directory(live).await else { return Ok(()) };
        let open = project.and_then(WorkspaceSpec::opened);
        let target = match open.filter(|open| open.host_directory().as_ref() == Some(&directory)) {
            Some(open) => open.clone(),
            None => self.open_target(ApplyTarget::Recorded(directory), live.id()).await?,
        };
        live.complete_apply(target).await.map(drop)
    }
}

/// Returns the directory of an application that was interrupted.
async fn pending_directory(live: &LiveSession) -> Option<PathBuf> {
    let view = live.view().await;
    view.pending_apply().map(|pending| PathBuf::from(&pending.record.directory))
}
