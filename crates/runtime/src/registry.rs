//! The sessions that this process drives.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError, Weak};

use backstitch_core::id::SessionId;
use backstitch_core::journal::StopReason;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::live::LiveSession;

/// The sessions that a runtime drives in tasks of its own.
#[derive(Default)]
pub(crate) struct Registry {
    sessions: Mutex<HashMap<SessionId, Weak<LiveSession>>>,
    pub(crate) tasks: TaskTracker,
    /// Stops every run, and prevents further ones.
    pub(crate) stop: CancellationToken,
    why: OnceLock<StopReason>,
    /// Sessions that could not be folded when the index was brought up to date.
    pub(crate) unreadable: Mutex<HashSet<SessionId>>,
}

impl Registry {
    /// Stops every run, and prevents further ones. The first reason is the recorded one.
    pub(crate) fn stop(&self, reason: StopReason) {
        let _ = self.why.set(reason);
        self.stop.cancel();
    }

    /// Returns the reason for which every run was stopped.
    pub(crate) fn stopped_by(&self) -> Option<StopReason> {
        self.why.get().copied()
    }

    pub(crate) fn add(&self, session: SessionId, live: Weak<LiveSession>) {
        self.sessions().insert(session, live);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// Returns a session while a run drives it in this process.
    pub(crate) fn get(&self, session: SessionId) -> Option<std::sync::Arc<LiveSession>> {
        self.sessions().get(&session).and_then(Weak::upgrade)
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Weak<LiveSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
