//! Saving of checkpoints while a session is driven.
//!
//! A checkpoint is saved before every action and after every call. So the calls of an answer are saved before
//! they run, and their results as soon as they are known. If a checkpoint cannot be saved, the next action
//! does not run, since a caller that uses checkpoints has no other durability.

use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::crash_point;
use backstitch_core::journal::Position;
use backstitch_core::session::Snapshot;

use super::LiveSession;
use crate::checkpoint::CheckpointError;
use crate::error::RuntimeError;

type Save = dyn Fn(&Snapshot) -> Result<(), CheckpointError> + Send + Sync;

/// Saves checkpoints of one session.
pub(crate) struct Saver {
    save: Box<Save>,
    /// The head of the journal at the last checkpoint. Locked during a save, so that an older checkpoint
    /// never replaces a newer one.
    saved: tokio::sync::Mutex<Option<Position>>,
    failed: Mutex<Option<RuntimeError>>,
}

impl Saver {
    pub(crate) fn new(
        save: impl Fn(&Snapshot) -> Result<(), CheckpointError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            save: Box::new(save),
            saved: tokio::sync::Mutex::default(),
            failed: Mutex::default(),
        })
    }

    /// Saves the current state of the session, unless nothing happened since the last checkpoint.
    pub(crate) async fn save(&self, live: &LiveSession) -> Result<(), RuntimeError> {
        let mut saved = self.saved.lock().await;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = failed {
            return Err(error);
        }
        let head = live.state().await.view.head();
        if *saved == Some(head) {
            return Ok(());
        }
        let snapshot = live.export_snapshot().await?;
        (self.save)(&snapshot).map_err(|error| RuntimeError::Checkpoint(Box::new(error)))?;
        *saved = Some(head);
        Ok(())
    }

    /// Saves the session after a call. A failure is returned before the next action, so that no sibling's
    /// result is lost.
    pub(crate) async fn save_after_call(&self, live: &LiveSession) {
        if let Err(error) = self.save(live).await {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

impl LiveSession {
    /// Stores a snapshot beside the journal, so that the state can be read without folding all records. The
    /// next one is stored once the journal is twice as long, so that all snapshots together cost no more than
    /// the journal. Failures are logged and harmless.
    pub(crate) async fn keep_snapshot(&self) {
        let kept = match self.store().snapshot(self.id()).await {
            Ok(kept) => kept.map_or(0, |kept| kept.position.number()),
            Err(_) => 0,
        };
        let (position, json) = {
            let state = self.state().await;
            if state.view.head().number() < kept.saturating_mul(2) {
                return;
            }
            (state.view.head(), state.execution.session.snapshot().with_provenance(None).to_json())
        };
        let Ok(json) = json else { return };
        crash_point!("snapshot.before");
        let (store, lease) = (self.store(), self.lease());
        let saved = store.save_snapshot(self.id(), lease.fence, position, json.into_bytes()).await;
        if let Err(error) = saved {
            tracing::warn!(session = %self.id(), %error, "the snapshot of the session could not be kept");
        }
        crash_point!("snapshot.after");
    }
}
