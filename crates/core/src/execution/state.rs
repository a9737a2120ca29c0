//! The root of all mutable state of a session without a journal, and snapshots at tool boundaries.
//!
//! A [`CheckpointStore`] holds the latest calls with the state before and after each, so that a rollback to
//! one is immediate. Without a journal, the caller records calls here. For a journaled session, it is filled
//! from the journal on demand (see [`crate::view::Checkpoint`]).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::composite::{CompositeSnapshot, SnapshotMetadata};
use super::error::ExecutionStateError;
use super::resources::{Resources, commit_all};
use crate::id::CallId;
use crate::rng::Rng;
use crate::session::Session;
use crate::time::Timestamp;

/// All state that can change while a prompt is evaluated, for callers without a journal. The state of a journaled
/// session follows from its records, and so do its checkpoints.
#[derive(Debug)]
pub struct ExecutionState {
    /// The typed slices.
    pub session: Session,
    /// Resources that tools use.
    pub resources: Resources,
    /// Random number generator outside of calls; each call has its own.
    pub rng: Option<Rng>,
    /// Snapshots at tool boundaries.
    pub checkpoints: CheckpointStore,
    poisoned: bool,
}

impl ExecutionState {
    /// Creates the state of a session with these resources.
    pub fn new(session: Session, resources: Resources) -> Self {
        Self { session, resources, rng: None, checkpoints: CheckpointStore::default(), poisoned: false }
    }

    /// Captures the session, all snapshotable resources and the random number generator.
    pub fn snapshot(&self, metadata: SnapshotMetadata) -> Result<CompositeSnapshot, ExecutionStateError> {
        self.check_sound()?;
        let captured = CompositeSnapshot::capture(&self.session, &self.resources, metadata)?;
        Ok(CompositeSnapshot { rng: self.rng.clone(), ..captured })
    }

    /// Restores everything: all parts are prepared before any is changed. If a part fails after that, the
    /// state is poisoned, and every later use of it fails.
    pub fn restore(&mut self, snapshot: &CompositeSnapshot) -> Result<(), ExecutionStateError> {
        self.check_sound()?;
        self.resources.check_known(&snapshot.resources)?;
        let prepared = self.resources.prepare_restore(&snapshot.resources)?;
        // Tried on a clone, which is cheap, so that a refusal comes before any change.
        let mut session = self.session.clone();
        session.rollback(&snapshot.session)?;
        if let Err(error) = commit_all(prepared) {
            self.poisoned = true;
            return Err(error.into());
        }
        self.session.rollback(&snapshot.session)?;
        if snapshot.rng.is_some() {
            self.rng = snapshot.rng.clone();
        }
        Ok(())
    }

    /// Restores the state before a call.
    pub fn rollback_to_tool(&mut self, call: CallId) -> Result<(), ExecutionStateError> {
        let snapshot = self.checkpoints.get_pre_snapshot(call)?.clone();
        self.restore(&snapshot)
    }

    /// Returns whether an earlier restore failed half-way.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    fn check_sound(&self) -> Result<(), ExecutionStateError> {
        if self.poisoned { Err(ExecutionStateError::Poisoned) } else { Ok(()) }
    }
}

/// Default number of calls that are kept.
pub const DEFAULT_CAPACITY: usize = 100;

/// A call with the states around it.
#[derive(Debug, Clone)]
pub struct ToolCheckpoint {
    /// The call.
    pub call_id: CallId,
    /// Name of the tool.
    pub tool_name: String,
    /// State before the call.
    pub pre_snapshot: CompositeSnapshot,
    /// State after the call; none if it failed.
    pub post_snapshot: Option<CompositeSnapshot>,
    /// One-line summary of the result.
    pub result_summary: Option<String>,
    /// Whether it succeeded.
    pub success: bool,
    /// Duration of the call.
    pub elapsed: Option<Duration>,
    /// Time at which the call was recorded.
    pub recorded_at: Timestamp,
}

/// The latest calls, oldest first.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    capacity: usize,
    /// Shared, so that copying the whole state is cheap.
    checkpoints: Arc<VecDeque<ToolCheckpoint>>,
}

impl Default for CheckpointStore {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

impl CheckpointStore {
    /// Creates a store that keeps this many calls; zero keeps nothing.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, checkpoints: Arc::default() }
    }

    /// Records a call. An earlier record of the same call is replaced; at capacity, the oldest call is
    /// dropped.
    pub fn record(&mut self, checkpoint: ToolCheckpoint) {
        let checkpoints = Arc::make_mut(&mut self.checkpoints);
        checkpoints.retain(|other| other.call_id != checkpoint.call_id);
        checkpoints.push_back(checkpoint);
        while checkpoints.len() > self.capacity {
            checkpoints.pop_front();
        }
    }

    /// Returns the state before a call.
    pub fn get_pre_snapshot(&self, call: CallId) -> Result<&CompositeSnapshot, ExecutionStateError> {
        self.get(call).map(|checkpoint| &checkpoint.pre_snapshot)
    }

    /// Returns the state after a call.
    pub fn get_post_snapshot(&self, call: CallId) -> Result<&CompositeSnapshot, ExecutionStateError> {
        let checkpoint = self.get(call)?;
        checkpoint.post_snapshot.as_ref().ok_or(ExecutionStateError::NoPostSnapshot { call })
    }

    /// The recorded calls, oldest first.
    pub fn list_checkpoints(&self) -> impl DoubleEndedIterator<Item = &ToolCheckpoint> + ExactSizeIterator {
        self.checkpoints.iter()
    }

    fn get(&self, call: CallId) -> Result<&ToolCheckpoint, ExecutionStateError> {
        let found = self.checkpoints.iter().rev().find(|checkpoint| checkpoint.call_id == call);
        found.ok_or(ExecutionStateError::NoCheckpoint { call })
    }
}
