//! The sessions that this process drives.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, Weak};

use backstitch_core::id::SessionId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::live::LiveSession;

/// The sessions that a runtime drives in tasks of its own.
#[derive(Default)]
pub(crate) struct Registry {
    sessions: Mutex<HashMap<SessionId, Weak<LiveSession>>>,
    pub(crate) tasks: TaskTracker,
    /// Stops every run, and lets no other begin.
    pub(crate) stop: CancellationToken,
}

impl Registry {
    pub(crate) fn add(&self, session: SessionId, live: Weak<LiveSession>) {
        self.sessions().insert(session, live);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// The session, while a run drives it here.
    pub(crate) fn get(&self, session: SessionId) -> Option<std::sync::Arc<LiveSession>> {
        self.sessions().get(&session).and_then(Weak::upgrade)
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Weak<LiveSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
