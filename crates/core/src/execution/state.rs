//! The root of all mutable state of a session without a journal.

use super::checkpoint::CheckpointStore;
use super::composite::{CompositeSnapshot, SnapshotMetadata};
use super::error::ExecutionStateError;
use super::resources::{Resources, commit_all};
use crate::id::CallId;
use crate::rng::Rng;
use crate::session::Session;

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

    /// Sets the random number generator outside of calls.
    #[must_use]
    pub fn with_rng(mut self, rng: Rng) -> Self {
        self.rng = Some(rng);
        self
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
