//! Writes snapshots of a session's view in the background.
//!
//! A snapshot only makes opening the session faster. It is encoded from a clone of the view, which is cheap, on
//! a thread for blocking work: no lock is held, and no caller waits. Releasing the session waits for it. A
//! process that is killed leaves the old snapshot or the new one. Failures are logged and harmless.
//!
//! A snapshot is due when the journal has grown by half since the last one, and by a minimum number of records.
//! So all snapshots of a session together cost about three times the last one, however long the session is, and
//! opening it folds at most a third of its journal.
//!
//! The checkpoints of a main loop are snapshots as well. A checkpoint is saved before every action and after
//! every call. So the calls of an answer are saved before they run, and their results as soon as they are
//! known. If a checkpoint cannot be saved, the next action does not run, since a caller that uses checkpoints
//! has no other durability.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{FenceToken, SessionClaim, Store, StoreError};
use backstitch_core::session::Snapshot;
use backstitch_core::view::JournalView;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::LiveSession;
use crate::checkpoint::CheckpointError;
use crate::error::{Result, RuntimeError};

/// Default minimum number of records between two snapshots of a session. Shorter sessions have none.
pub const SNAPSHOT_INTERVAL: u64 = 1_000;

/// Writes the snapshots of a session.
pub(super) struct SnapshotWriter {
    store: Arc<dyn Store>,
    session: SessionId,
    fence: FenceToken,
    /// Minimum number of records between two snapshots.
    pub(super) interval: u64,
    /// Cut of the last snapshot that is usable, or being written, or could not be written; otherwise 0.
    last: AtomicU64,
    tasks: TaskTracker,
}

impl SnapshotWriter {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        claim: &SessionClaim,
        interval: u64,
        last: Option<Position>,
    ) -> Self {
        let tasks = TaskTracker::new();
        tasks.close();
        let last = AtomicU64::new(last.map_or(0, Position::number));
        Self { store: store.clone(), session: claim.session, fence: claim.fence, interval, last, tasks }
    }

    /// Starts writing a snapshot, if one is due and none is being written. The records of the view must be
    /// durable.
    pub(super) fn start_if_due(&self, view: &JournalView) {
        let (head, last) = (view.head(), self.last.load(Ordering::Relaxed));
        let is_due = head.number().saturating_sub(last) >= self.interval.max(last / 2);
        let Ok(handle) = Handle::try_current() else { return };
        if !is_due || !self.tasks.is_empty() {
            return;
        }
        self.last.store(head.number(), Ordering::Relaxed);
        let (store, session, fence, view) = (self.store.clone(), self.session, self.fence, view.clone());
        self.tasks.spawn_blocking_on(
            move || {
                let bytes = match view.encode_snapshot() {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(%session, error, "no snapshot of the session can be made");
                        return;
                    }
                };
                drop(view);
                crash_point!("snapshot.before");
                match Handle::current().block_on(store.save_snapshot(session, fence, head, bytes)) {
                    Ok(()) => crash_point!("snapshot.after"),
                    // The session was released or taken over. Its next owner writes snapshots.
                    Err(StoreError::Fenced { .. }) => {}
                    Err(error) => {
                        tracing::warn!(%session, %error, "the snapshot of the session was not saved")
                    }
                }
            },
            &handle,
        );
    }

    /// Notes a rewind. A snapshot after its target is no longer usable.
    pub(super) fn note_rewind(&self, to: Position) {
        let stands_after = |last: u64| (last > to.number()).then_some(0);
        let _ = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, stands_after);
    }

    /// Waits until no snapshot is being written.
    pub(super) async fn wait(&self) {
        self.tasks.wait().await;
    }
}

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
    pub(crate) async fn save(&self, live: &LiveSession) -> Result<()> {
        let mut saved = self.saved.lock().await;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = failed {
            return Err(error);
        }
        let head = live.view().await.head();
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
