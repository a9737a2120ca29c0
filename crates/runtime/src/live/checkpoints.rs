//! Checkpoints of the latest calls of a session: all state before and after each.
//!
//! Nothing is collected while calls run. All state is read from the journal on demand, so checkpoints are
//! also available after a rewind, in a fork, and in a session that was opened again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::execution::{
    CheckpointStore, CompositeSnapshot, DEFAULT_CAPACITY, ResourceSnapshot, SnapshotMetadata, SnapshotPhase,
    ToolCheckpoint, WorkspaceResource, WorkspaceState,
};
use backstitch_core::extra::Extra;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, WorkspaceRevision};
use backstitch_core::time::FixedClock;
use backstitch_core::view::{Boundary, CallStatus, Checkpoint, JournalView};

use super::LiveSession;
use super::load::{Snapshots, load_line};
use crate::error::{Result, RuntimeError};

/// The views at boundaries, by session and cut.
type Views = HashMap<(SessionId, Position), JournalView>;

impl LiveSession {
    /// Returns the latest calls that have ended, in the order in which they were started, each with all state
    /// before and after it. They are the latest of those that
    /// [`Runtime::checkpoints`](crate::Runtime::checkpoints) lists.
    ///
    /// This reads the whole journal. To return to one of them, [rewind](Self::rewind).
    pub async fn checkpoints(&self) -> Result<CheckpointStore> {
        self.flush().await?;
        let line = load_line(&*self.store, self.id, None, Snapshots::Ignored).await?;
        let mut ended = line.fold(|_| {})?.checkpoints();
        ended.retain(|checkpoint| checkpoint.after.is_some());
        ended.drain(..ended.len().saturating_sub(DEFAULT_CAPACITY));

        let boundaries = ended.iter().flat_map(|one| [Some(one.before), one.after]).flatten();
        let mut views: HashMap<_, Option<JournalView>> =
            boundaries.map(|boundary| ((boundary.session, boundary.position), None)).collect();
        line.fold(|view| {
            if let Some(wanted) = views.get_mut(&(view.session_id(), view.head())) {
                *wanted = Some(view.clone());
            }
        })?;
        let views: Views = views.into_iter().filter_map(|(cut, view)| Some((cut, view?))).collect();

        let mut store = CheckpointStore::default();
        for checkpoint in ended {
            store.record(self.with_state(checkpoint, &views).await?);
        }
        Ok(store)
    }

    async fn with_state(&self, checkpoint: Checkpoint, views: &Views) -> Result<ToolCheckpoint> {
        let Checkpoint { call_id, tool_name, .. } = checkpoint;
        let metadata = |phase| SnapshotMetadata::of_call(call_id, &tool_name, phase);
        let success = checkpoint.status == CallStatus::Completed;
        let pre_snapshot =
            self.snapshot_at(checkpoint.before, views, metadata(SnapshotPhase::PreTool)).await?;
        let post_snapshot = match checkpoint.after.filter(|_| success) {
            Some(after) => Some(self.snapshot_at(after, views, metadata(SnapshotPhase::PostTool)).await?),
            None => None,
        };
        let recorded_at = checkpoint.recorded_at.unwrap_or(pre_snapshot.created_at);
        Ok(ToolCheckpoint {
            call_id,
            pre_snapshot,
            post_snapshot,
            result_summary: checkpoint.result_summary,
            success,
            elapsed: checkpoint.elapsed_micros.map(Duration::from_micros),
            recorded_at,
            tool_name,
        })
    }

    /// Returns all state at a boundary. It depends only on the journal.
    async fn snapshot_at(
        &self,
        boundary: Boundary,
        views: &Views,
        metadata: SnapshotMetadata,
    ) -> Result<CompositeSnapshot> {
        let view = views.get(&(boundary.session, boundary.position));
        let view = view.ok_or(RuntimeError::SessionNotFound { session: boundary.session })?;
        let created_at = view.recorded_at().unwrap_or(view.created().created_at);
        let session = view.session(Arc::new(FixedClock::at(created_at)));
        let mut resources = BTreeMap::new();
        for changed in view.resources() {
            let state = self.resource_state(changed).await?;
            resources.insert(changed.name.clone(), ResourceSnapshot::Stored(state));
        }
        // A call that does not write has no root of its own. The files are those that were observed last.
        if let Some(WorkspaceRevision { root, coverage }) =
            WorkspaceRevision::of(boundary.root, boundary.coverage).or(view.files())
        {
            let files = ResourceSnapshot::live(WorkspaceState::stored(root, coverage));
            resources.insert(WorkspaceResource::NAME.to_owned(), files);
        }
        Ok(CompositeSnapshot {
            snapshot_id: session.ids().next(),
            created_at,
            session: session.snapshot(),
            resources,
            rng: None,
            metadata,
            extra: Extra::default(),
        })
    }
}
