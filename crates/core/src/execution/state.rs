//! The root of all mutable state.

use std::sync::Arc;

use super::checkpoint::CheckpointStore;
use super::composite::{CompositeSnapshot, SnapshotMetadata};
use super::error::ExecutionStateError;
use super::resources::{Resources, commit_all};
use crate::extra::Extra;
use crate::id::CallId;
use crate::rng::Rng;
use crate::session::Session;
use crate::time::Clock;

/// All state that can change while a prompt is evaluated.
#[derive(Debug)]
pub struct ExecutionState {
    /// The typed slices.
    pub session: Session,
    /// Resources that tools use.
    pub resources: Resources,
    /// Injected clock.
    pub clock: Arc<dyn Clock>,
    /// Random number generator outside of calls; each call has its own.
    pub rng: Option<Rng>,
    /// Snapshots at tool boundaries, for a state without a journal. Those of a journaled session are in its journal.
    pub checkpoints: CheckpointStore,
    poisoned: bool,
}

impl ExecutionState {
    /// Creates the state of a session with these resources.
    pub fn new(session: Session, resources: Resources) -> Self {
        let clock = session.ids().clock().clone();
        Self {
            session,
            resources,
            clock,
            rng: None,
            checkpoints: CheckpointStore::default(),
            poisoned: false,
        }
    }

    /// Sets the random number generator outside of calls.
    #[must_use]
    pub fn with_rng(mut self, rng: Rng) -> Self {
        self.rng = Some(rng);
        self
    }

    /// Copies the state for reading: an independent session, and the same resources. For the runtime, which
    /// passes it by reference only.
    #[doc(hidden)]
    #[must_use]
    pub fn copy_to_read(&self) -> Self {
        Self {
            session: self.session.clone(),
            resources: self.resources.clone(),
            clock: self.clock.clone(),
            rng: self.rng.clone(),
            checkpoints: self.checkpoints.clone(),
            poisoned: self.poisoned,
        }
    }

    /// Captures the session, all snapshotable resources and the random number generator.
    pub fn snapshot(&self, metadata: SnapshotMetadata) -> Result<CompositeSnapshot, ExecutionStateError> {
        self.check_sound()?;
        let resources = self.resources.snapshotable_resources().map(|resource| {
            let name = resource.name().to_owned();
            match resource.snapshot() {
                Ok(snapshot) => Ok((name, snapshot)),
                Err(source) => Err(ExecutionStateError::Snapshot { resource: name, source }),
            }
        });
        Ok(CompositeSnapshot {
            snapshot_id: self.session.ids().next(),
            created_at: self.clock.now(),
            session: self.session.snapshot(),
            resources: resources.collect::<Result<_, _>>()?,
            rng: self.rng.clone(),
            metadata,
            extra: Extra::default(),
        })
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
