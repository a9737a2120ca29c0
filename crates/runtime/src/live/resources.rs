//! The snapshotable resources of a session.
//!
//! Their states are recorded: in the first batch, and in the batch of each call that changed one. Opening,
//! rewinding and forking a session restores the recorded states, so a crash loses none of them. A resource
//! that cannot be restored poisons the session.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use backstitch_core::execution::{ExecutionStateError, ResourceSnapshot, Resources, SnapshotableResource};
use backstitch_core::journal::{Batch, ObservationCause, Origin, RecordBody, ResourceChanged};
use backstitch_core::secrets::REDACTED;
use backstitch_core::session::BoxError;
use backstitch_core::storable;
use backstitch_core::time::Timestamp;
use backstitch_core::tool::with_causes;
use backstitch_core::view::{Call, JournalView};
use serde_json::Value;

use super::{LiveSession, LiveState, find_view, release_claim};
use crate::error::{Result, RuntimeError};

/// The state of a snapshotable resource.
pub(crate) struct CapturedResource {
    name: &'static str,
    state: Value,
}

impl CapturedResource {
    /// Captures a resource. Fails if the state cannot be stored or read again.
    pub(crate) fn of(resource: &SnapshotableResource) -> Result<Self, ExecutionStateError> {
        let name = resource.name();
        let captured = || -> Result<Self, BoxError> {
            let state = resource.snapshot()?.to_json()?;
            storable::check(&state)?;
            Ok(Self { name, state })
        };
        // A resource is code of the session's user. A panic counts as a failure.
        let captured = catch_unwind(AssertUnwindSafe(captured));
        let captured = captured.unwrap_or_else(|_| Err("capturing it panicked".into()));
        captured.map_err(|source| ExecutionStateError::Snapshot { resource: name.to_owned(), source })
    }

    /// Captures all resources of a session.
    pub(super) fn all(resources: &Resources) -> Result<Vec<Self>, ExecutionStateError> {
        resources.registered().map(Self::of).collect()
    }

    /// Adds the record of this state, unless the same state is recorded already.
    pub(crate) fn push_to(&self, batch: &mut Batch, at: Timestamp, view: Option<&JournalView>) {
        let record = Batch::at(at).with(ResourceChanged::new(self.name, self.state.clone()));
        let known = view.and_then(|view| view.resource(self.name));
        let is_known = match (record.bodies(), known) {
            ([RecordBody::ResourceChanged(new)], Some(known)) => new.state == known.state,
            _ => false,
        };
        if !is_known {
            batch.extend(record);
        }
    }
}

/// Adds the states of a new session's resources to its first batch. A fork starts from the states that its
/// parent recorded.
pub(super) fn push_first(batch: &mut Batch, at: Timestamp, resources: &[CapturedResource]) {
    let is_fork = batch.bodies().iter().any(|body| match body {
        RecordBody::SessionCreated(created) => matches!(created.origin, Origin::Fork { .. }),
        _ => false,
    });
    for captured in resources.iter().filter(|_| !is_fork) {
        captured.push_to(batch, at, None);
    }
}

impl LiveState {
    /// Adds the states of resources without a record, which were registered after the session was created.
    /// Fails if one cannot be captured, since it could not be restored after it was changed.
    pub(crate) fn push_unrecorded(
        &self,
        batch: &mut Batch,
        at: Timestamp,
    ) -> Result<(), ExecutionStateError> {
        let resources = self.resources.registered();
        for resource in resources.filter(|one| self.view.resource(one.name()).is_none()) {
            CapturedResource::of(resource)?.push_to(batch, at, None);
        }
        Ok(())
    }
}

impl LiveSession {
    /// Restores the resources to their recorded states. A failure poisons the session.
    pub(crate) async fn restore_resources(&self) -> Result<()> {
        if self.resources.registered().next().is_none() {
            return Ok(());
        }
        let _alone = self.files.write().await;
        self.restore_held_resources().await
    }

    /// Like [`restore_resources`](Self::restore_resources), for a caller that holds the resources
    /// exclusively.
    pub(crate) async fn restore_held_resources(&self) -> Result<()> {
        let recorded: Vec<Arc<ResourceChanged>> = self.state.lock().await.view.resources().cloned().collect();
        let mut restored = BTreeMap::new();
        for changed in recorded {
            // Resources that are not registered here are left to a process that has them.
            let resource = self.resources.registered().find(|one| one.name() == changed.name);
            let Some(resource) = resource else { continue };
            let state = self.resource_state(&changed).await?;
            if changed.state.object().is_some() && state == REDACTED {
                tracing::warn!(
                    resource = changed.name,
                    "its recorded state was redacted, so it is not restored"
                );
                continue;
            }
            let is_there = CapturedResource::of(resource).is_ok_and(|present| present.state == state);
            if !is_there {
                restored.insert(changed.name.clone(), ResourceSnapshot::Stored(state));
            }
        }
        if let Err(error) = self.resources.restore(&restored) {
            return Err(self.poison_for(&error, "resources could not be restored").await);
        }
        Ok(())
    }

    /// Returns the state of a resource from its record. Large ones are fetched.
    pub(super) async fn resource_state(&self, changed: &Arc<ResourceChanged>) -> Result<Value> {
        let mut changed = changed.clone();
        self.fetch_large(&mut changed).await?;
        Ok(changed.state.inline().cloned().unwrap_or_default())
    }

    /// Restores resources and files of a new session from a snapshot, and records them. Their earlier state
    /// is recorded already.
    pub(crate) async fn adopt_parts(&self, states: BTreeMap<String, ResourceSnapshot>) -> Result<()> {
        let alone = self.files.write().await;
        let resources = self.resources.clone();
        let restored = tokio::task::spawn_blocking(move || resources.restore(&states)).await;
        if let Err(error) = restored.map_err(|_| RuntimeError::ShuttingDown)? {
            return Err(self.poison_for(&error, "a snapshot could not be restored").await);
        }
        drop(alone);
        let captured = CapturedResource::all(&self.resources)?;
        self.commit(|commit| {
            let (now, view) = (self.clock.now(), commit.view());
            captured.iter().for_each(|one| one.push_to(commit.batch(), now, Some(view)));
            Ok(())
        })
        .await?;
        let known = self.view().await.files().map(|files| files.root);
        match self.capture_files().await? {
            Some(found) if Some(found.root) != known => {
                self.observe_files(found, ObservationCause::Restored).await
            }
            _ => Ok(()),
        }
    }

    /// Poisons the session, because resources have the wrong state.
    pub(crate) async fn poison_for(&self, error: &ExecutionStateError, what: &str) -> RuntimeError {
        let reason = format!("{what}: {}", with_causes(error));
        match self.check_sound() {
            Err(RuntimeError::Poisoned { session, .. }) => RuntimeError::Poisoned { session, reason },
            _ => self.poison(reason).await,
        }
    }

    /// Restores the resources to their recorded states, and returns the session. If that poisons it, driving
    /// it fails.
    pub(super) async fn with_resources(self: Arc<Self>) -> Result<Arc<Self>> {
        match self.restore_resources().await {
            Ok(()) | Err(RuntimeError::Poisoned { .. }) => Ok(self),
            Err(error) => {
                if !self.is_lent {
                    release_claim(&*self.store, self.claim.clone()).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the states in which a child session has left the resources that it was lent.
    pub(crate) async fn resources_left_by(&self, call: &Call) -> Result<Vec<RecordBody>> {
        let Some(child) = call.session() else { return Ok(Vec::new()) };
        let Some(view) = find_view(&*self.store, child).await? else { return Ok(Vec::new()) };
        Ok(view.resources().cloned().map(RecordBody::ResourceChanged).collect())
    }
}
