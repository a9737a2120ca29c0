//! Saving of checkpoints while a session is driven.
//!
//! A checkpoint is saved before every action and after every call. So the calls of an answer are saved before
//! they run, and their results as soon as they are known. If a checkpoint cannot be saved, the next action
//! does not run, since a caller that uses checkpoints has no other durability.

use std::sync::{Arc, Mutex, PoisonError};

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
