//! The channel on which a session publishes its events.

use std::sync::{Arc, OnceLock};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record};
use tokio::sync::{broadcast, watch};

use super::{LiveEvent, LiveKind};

/// The number of live events that are buffered for a slow reader.
const CAPACITY: usize = 1_024;

/// The channel of one session. It knows the durable end of the journal, so that readers see records and live
/// events in order.
pub(crate) struct Channel {
    session: SessionId,
    durable: watch::Sender<Position>,
    /// Created for the first subscriber.
    live: OnceLock<broadcast::Sender<LiveEvent>>,
    /// The channel of the parent session.
    parent: OnceLock<Arc<Channel>>,
    /// Readers that have followed the session since before it was opened.
    feed: OnceLock<Arc<EventFeed>>,
}

/// A channel to readers that follow a session across runs. They keep it open while no run drives the session.
pub(crate) struct EventFeed {
    durable: watch::Sender<Position>,
    live: broadcast::Sender<LiveEvent>,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self { durable: watch::Sender::new(Position::START), live: broadcast::channel(CAPACITY).0 }
    }
}

impl EventFeed {
    pub(super) fn follow(&self) -> (watch::Receiver<Position>, broadcast::Receiver<LiveEvent>) {
        (self.durable.subscribe(), self.live.subscribe())
    }
}

impl Channel {
    pub(crate) fn new(session: SessionId, head: Position) -> Self {
        Self {
            session,
            durable: watch::Sender::new(head),
            live: OnceLock::new(),
            parent: OnceLock::new(),
            feed: OnceLock::new(),
        }
    }

    /// Also publishes events to readers that follow the session across runs.
    pub(crate) fn publish_to(&self, feed: Arc<EventFeed>) {
        // A session is opened once for each run, and a run has one feed.
        let _ = self.feed.set(feed);
    }

    /// Also publishes events of this session to readers of the parent session.
    pub(crate) fn forward_to(&self, parent: Arc<Self>) {
        // The parent of a session never changes.
        let _ = self.parent.set(parent);
    }

    /// True if records of this session are published to a parent.
    pub(crate) fn forwards(&self) -> bool {
        self.parent.get().is_some()
    }

    /// Marks all records before a position as durable.
    pub(crate) fn set_durable(&self, head: Position) {
        self.durable.send_replace(head);
        if let Some(feed) = self.feed.get() {
            feed.durable.send_replace(head);
        }
    }

    /// Publishes a live event.
    pub(crate) fn publish(&self, kind: LiveKind) {
        self.send(self.session, &kind);
    }

    /// Publishes durable records to the parent session's readers.
    pub(crate) fn publish_to_parent(&self, records: Vec<Arc<Record>>) {
        if let Some(parent) = self.parent.get() {
            for record in records {
                parent.send(self.session, &LiveKind::SubAgent(record));
            }
        }
    }

    fn send(&self, session: SessionId, kind: &LiveKind) {
        let readers = self.live.get().into_iter().chain(self.feed.get().map(|feed| &feed.live));
        // Copied, so that its lock is not held while readers are woken.
        let at = *self.durable.borrow();
        for live in readers {
            // Without a reader the event is dropped.
            let _ = live.send(LiveEvent { session, at, kind: kind.clone() });
        }
        if let Some(parent) = self.parent.get() {
            parent.send(session, kind);
        }
    }

    pub(super) fn follow(&self) -> (watch::Receiver<Position>, broadcast::Receiver<LiveEvent>) {
        let live = self.live.get_or_init(|| broadcast::channel(CAPACITY).0);
        (self.durable.subscribe(), live.subscribe())
    }
}
