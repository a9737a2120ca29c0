//! Snapshots at the boundaries of calls, kept in memory so that going back to one is immediate.

use std::time::Duration;

use backstitch_core::execution::{
    CompositeSnapshot, Known, ResourceSnapshot, SnapshotMetadata, SnapshotPhase, ToolCheckpoint,
    WorkspaceResource, WorkspaceState,
};
use backstitch_core::journal::Files;

use super::{Started, ToolRunner};
use crate::error::RuntimeError;
use crate::live::LiveState;

impl ToolRunner {
    /// Keeps the boundaries of a call that has ended; one that failed has no state after it.
    pub(super) async fn keep_checkpoint(
        &self,
        started: &Started,
        success: bool,
        after: Option<Files>,
        told: String,
        elapsed: Duration,
    ) -> Result<(), RuntimeError> {
        let mut state = self.live.state().await;
        let metadata =
            SnapshotMetadata::of_call(started.call.call_id, &started.call.name, SnapshotPhase::PostTool);
        let post = match success {
            true => Some(checkpoint_of(&state, after, metadata)?),
            false => None,
        };
        let recorded_at = self.live.clock().now();
        state.execution.checkpoints.record(ToolCheckpoint {
            call_id: started.call.call_id,
            tool_name: started.call.name.clone(),
            pre_snapshot: started.pre.clone(),
            post_snapshot: post,
            result_summary: Some(told),
            success,
            elapsed: Some(elapsed),
            recorded_at,
        });
        Ok(())
    }
}

/// Everything at a boundary of a call, with the files as they are known to be: those of a call that holds them, or else those
/// that were seen last.
pub(super) fn checkpoint_of(
    state: &LiveState,
    files: Option<Files>,
    metadata: SnapshotMetadata,
) -> Result<CompositeSnapshot, RuntimeError> {
    let resources = &state.execution.resources;
    let workspace = resources.workspace();
    if let (Some(workspace), Some(files)) = (&workspace, files) {
        workspace.note(WorkspaceState::stored(files.root, files.coverage));
    }
    let known = |name: &str| match (&workspace, name) {
        (Some(workspace), WorkspaceResource::NAME) => match workspace.latest() {
            Some(latest) => Known::As(ResourceSnapshot::live(latest)),
            None => Known::LeftOut,
        },
        // Captured now, it might be in the middle of another call.
        _ => state.resources.get(name).map_or(Known::LeftOut, |known| Known::As(known.clone())),
    };
    Ok(state.execution.snapshot_knowing(metadata, known)?)
}
