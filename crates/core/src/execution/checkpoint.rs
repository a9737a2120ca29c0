//! Snapshots at tool boundaries.
//!
//! A [`CheckpointStore`] holds the latest calls with the state before and after each, so that going back to one is immediate.
//! Without a journal, the caller records calls here. Where there is one, it is filled from the journal when it is
//! asked for, and says what the journal says (see [`crate::view::Checkpoint`]).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::composite::CompositeSnapshot;
use super::error::ExecutionStateError;
use crate::id::CallId;
use crate::time::Timestamp;

/// How many calls are kept unless something else is asked for.
pub const DEFAULT_CAPACITY: usize = 100;

/// One call with the state around it.
#[derive(Debug, Clone)]
pub struct ToolCheckpoint {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// The state before it.
    pub pre_snapshot: CompositeSnapshot,
    /// The state after it; none when it failed.
    pub post_snapshot: Option<CompositeSnapshot>,
    /// A line about its result.
    pub result_summary: Option<String>,
    /// Whether it succeeded.
    pub success: bool,
    /// How long it took.
    pub elapsed: Option<Duration>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// The latest calls, oldest first.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    capacity: usize,
    /// Shared, so that a copy of all state is cheap.
    checkpoints: Arc<VecDeque<ToolCheckpoint>>,
}

impl Default for CheckpointStore {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

impl CheckpointStore {
    /// A store that keeps this many calls; with none it keeps nothing.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, checkpoints: Arc::default() }
    }

    /// Keeps a call. One that is kept already, because it ran before, is replaced; the oldest one goes when there is no room.
    pub fn record(&mut self, checkpoint: ToolCheckpoint) {
        let checkpoints = Arc::make_mut(&mut self.checkpoints);
        checkpoints.retain(|other| other.call_id != checkpoint.call_id);
        checkpoints.push_back(checkpoint);
        while checkpoints.len() > self.capacity {
            checkpoints.pop_front();
        }
    }

    /// The state before a call.
    pub fn get_pre_snapshot(&self, call: CallId) -> Result<&CompositeSnapshot, ExecutionStateError> {
        self.get(call).map(|checkpoint| &checkpoint.pre_snapshot)
    }

    /// The state after a call.
    pub fn get_post_snapshot(&self, call: CallId) -> Result<&CompositeSnapshot, ExecutionStateError> {
        let checkpoint = self.get(call)?;
        checkpoint.post_snapshot.as_ref().ok_or(ExecutionStateError::NoPostSnapshot { call })
    }

    /// The calls that are kept, oldest first.
    pub fn list_checkpoints(&self) -> impl DoubleEndedIterator<Item = &ToolCheckpoint> + ExactSizeIterator {
        self.checkpoints.iter()
    }

    fn get(&self, call: CallId) -> Result<&ToolCheckpoint, ExecutionStateError> {
        let found = self.checkpoints.iter().rev().find(|checkpoint| checkpoint.call_id == call);
        found.ok_or(ExecutionStateError::NoCheckpoint { call })
    }
}
