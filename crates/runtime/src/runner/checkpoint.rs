//! Snapshots at the boundaries of calls, kept in memory so that going back to one is immediate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use backstitch_core::execution::{
    CompositeSnapshot, Known, ResourceSnapshot, SnapshotMetadata, SnapshotPhase, ToolCheckpoint,
    WorkspaceResource, WorkspaceState,
};
use backstitch_core::journal::Files;
use backstitch_core::tool::with_causes;

use super::attempt::panic_message;
use super::{Started, ToolRunner};
use crate::error::RuntimeError;
use crate::live::LiveState;

impl ToolRunner {
    /// Keeps the boundaries of a call that has ended; one that failed has no state after it. The call has ended: where its resources
    /// cannot be captured it does without a boundary.
    pub(super) async fn keep_checkpoint(
        &self,
        started: &Started,
        success: bool,
        after: Option<Files>,
        told: String,
        elapsed: Duration,
    ) {
        let mut state = self.live.locked().await;
        let metadata =
            SnapshotMetadata::of_call(started.call.call_id, &started.call.name, SnapshotPhase::PostTool);
        let capture = || checkpoint_of(&state, after, metadata).map_err(|error| with_causes(&error));
        let captured = success.then(|| {
            let captured = catch_unwind(AssertUnwindSafe(capture));
            captured.unwrap_or_else(|payload| Err(format!("it panicked: {}", panic_message(payload))))
        });
        let post = match captured.transpose() {
            Ok(post) => post,
            Err(error) => {
                let call = started.call.call_id;
                tracing::warn!(%call, error, "the state after a call could not be captured; the call stands");
                return;
            }
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
