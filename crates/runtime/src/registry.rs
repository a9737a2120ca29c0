//! The sessions that this process drives.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use backstitch_core::id::SessionId;
use backstitch_core::journal::StopReason;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::events::EventFeed;
use crate::live::LiveSession;

/// The sessions that a runtime drives in tasks of its own.
#[derive(Default)]
pub(crate) struct Registry {
    sessions: Mutex<HashMap<SessionId, Weak<LiveSession>>>,
    pub(crate) tasks: TaskTracker,
    /// Stops every run, and prevents further ones.
    pub(crate) stop: CancellationToken,
    pub(crate) why: OnceLock<StopReason>,
    /// The feeds of sessions that were followed before a run drove them.
    feeds: Mutex<HashMap<SessionId, Weak<EventFeed>>>,
    /// Operations on sessions, such as rewinds. Each holds the lock of its session.
    operations: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
    /// Sessions that could not be folded when the index was brought up to date.
    pub(crate) unreadable: Mutex<HashSet<SessionId>>,
}

impl Registry {
    /// Stops every run, and prevents further ones. The first reason is the recorded one.
    pub(crate) fn stop(&self, reason: StopReason) {
        let _ = self.why.set(reason);
        self.stop.cancel();
    }

    /// Adds a session that a run drives. Readers that follow it receive its events from now on.
    pub(crate) fn add(&self, live: &Arc<LiveSession>) {
        let mut sessions = self.sessions();
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        if let Some(feed) = feeds.get(&live.id()).and_then(Weak::upgrade) {
            live.channel.publish_to(feed);
        }
        sessions.insert(live.id(), Arc::downgrade(live));
    }

    /// Returns a session while a run drives it in this process, and otherwise the feed of its later runs.
    pub(crate) fn follow(&self, session: SessionId) -> Result<Arc<LiveSession>, Arc<EventFeed>> {
        let sessions = self.sessions();
        if let Some(live) = sessions.get(&session).and_then(Weak::upgrade) {
            return Ok(live);
        }
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = feeds.get(&session).and_then(Weak::upgrade);
        Err(known.unwrap_or_else(|| {
            let feed = Arc::new(EventFeed::default());
            feeds.insert(session, Arc::downgrade(&feed));
            feed
        }))
    }

    /// Removes a session that a run has driven, unless another run has taken it over.
    pub(crate) fn remove(&self, live: &Arc<LiveSession>) {
        let mut sessions = self.sessions();
        if sessions.get(&live.id()).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(live))) {
            sessions.remove(&live.id());
        }
    }

    /// Waits until no other operation of this process has the session open.
    pub(crate) async fn operation(&self, session: SessionId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(session).or_default().clone()
        };
        lock.lock_owned().await
    }

    /// Returns a session while a run drives it in this process.
    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<LiveSession>> {
        self.sessions().get(&session).and_then(Weak::upgrade)
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Weak<LiveSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
