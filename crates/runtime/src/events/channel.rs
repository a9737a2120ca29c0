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
}

impl Channel {
    pub(crate) fn new(session: SessionId, head: Position) -> Self {
        Self { session, durable: watch::Sender::new(head), live: OnceLock::new(), parent: OnceLock::new() }
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

    /// Returns the position after the last durable record.
    pub(crate) fn durable(&self) -> Position {
        *self.durable.borrow()
    }

    /// Marks all records before a position as durable.
    pub(crate) fn set_durable(&self, head: Position) {
        self.durable.send_replace(head);
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
        if let Some(live) = self.live.get() {
            // Without a reader the event is dropped.
            let _ = live.send(LiveEvent { session, at: self.durable(), kind: kind.clone() });
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
