//! The reader of a session's events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record, RecordBody};
use backstitch_core::ports::Store;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use super::channel::{Channel, EventFeed};
use super::{LiveEvent, SessionEvent};
use crate::content::with_content;
use crate::error::Result;

/// The number of records that are read at once.
const PAGE: usize = 256;

/// The interval between two reads of the store, for a session that another process drives.
const POLL: Duration = Duration::from_millis(100);

/// The events of a session, in order. A reader that was disconnected continues from its last
/// [position](EventStream::position), and misses no record.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let run = runtime.start(&agent, "Mend the coat.").await?;
/// run.outcome().await?;
/// let mut events = runtime.events(run.session());
/// let first = events.next().await?.expect("a session has records");
/// assert_eq!(first.record().map(|record| record.body.kind()), Some("session_created"));
/// // A reader that lost its connection continues here.
/// let again = runtime.events(run.session()).from(events.position());
/// assert_eq!(again.position().number(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct EventStream {
    store: Arc<dyn Store>,
    session: SessionId,
    next: Position,
    page: VecDeque<Record>,
    here: Option<Here>,
    ends_when_idle: bool,
    has_content: bool,
}

/// Additional sources in the process that drives the session.
struct Here {
    durable: watch::Receiver<Position>,
    live: broadcast::Receiver<LiveEvent>,
    /// A live event that comes after records which were not returned yet.
    ahead: Option<LiveEvent>,
    /// Live events before `ahead` that were missed and not reported yet.
    missed: u64,
    /// Set if the session is followed across runs.
    feed: Option<Arc<EventFeed>>,
}

impl EventStream {
    /// Returns the records of a session from its first on, regardless of the process that drives it.
    pub fn of_store(store: Arc<dyn Store>, session: SessionId) -> Self {
        Self::new(store, session, Position::START, None)
    }

    /// Returns the events of a session across runs, from its first record on. Live events are those of runs that
    /// publish to the feed.
    pub(crate) fn of_feed(store: Arc<dyn Store>, session: SessionId, feed: Arc<EventFeed>) -> Self {
        let (durable, live) = feed.follow();
        let here = Here { durable, live, ahead: None, missed: 0, feed: Some(feed) };
        Self::new(store, session, Position::START, Some(here))
    }

    /// Returns the events of a session that this process drives, from now on.
    pub(crate) fn of_channel(store: Arc<dyn Store>, session: SessionId, channel: &Channel) -> Self {
        let (durable, live) = channel.follow();
        let next = *durable.borrow();
        Self::new(store, session, next, Some(Here { durable, live, ahead: None, missed: 0, feed: None }))
    }

    fn new(store: Arc<dyn Store>, session: SessionId, next: Position, here: Option<Here>) -> Self {
        let page = VecDeque::new();
        Self { store, session, next, page, here, ends_when_idle: false, has_content: false }
    }

    /// Makes the stream end once all records were returned and no process drives the session. Without this, a
    /// stream of a session that is not driven waits for the next run.
    pub fn until_idle(self) -> Self {
        Self { ends_when_idle: true, ..self }
    }

    /// Includes content that is too large for a record, such as texts above 64 KiB, in the messages of records. By
    /// default such records refer to it.
    pub fn with_content(self) -> Self {
        Self { has_content: true, ..self }
    }

    /// Continues with the record at this position.
    pub fn from(mut self, position: Position) -> Self {
        (self.next, self.page) = (position, VecDeque::new());
        self
    }

    /// Returns the session whose events these are.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the position of the next record, from which another reader can continue.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Returns the next event. A stream that was opened while a run of this process drove the session returns `None`
    /// once that run has ended. Any other one does not end, and includes the live events of later runs of this
    /// process, unless it ends [when the session is idle](Self::until_idle). Cancel safe.
    pub async fn next(&mut self) -> Result<Option<SessionEvent>> {
        loop {
            if let Some(event) = self.ready().await? {
                return Ok(Some(event));
            }
            if self.ends_when_idle && self.store.holder(self.session).await?.is_none() {
                // What the last holder has stored before it released the session.
                return self.ready().await;
            }
            if !self.wait().await {
                return self.ready().await;
            }
        }
    }

    /// Returns the next event if it has happened already. Cancel safe.
    pub async fn ready(&mut self) -> Result<Option<SessionEvent>> {
        loop {
            if let Some(here) = &mut self.here {
                while here.ahead.is_none() {
                    match here.live.try_recv() {
                        Ok(event) => here.ahead = Some(event),
                        // The next event is one that was not missed.
                        Err(TryRecvError::Lagged(missed)) => here.missed += missed,
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    }
                }
                if here.ahead.as_ref().is_some_and(|event| event.at <= self.next) {
                    if here.missed > 0 {
                        return Ok(Some(SessionEvent::Missed(std::mem::take(&mut here.missed))));
                    }
                    return Ok(here.ahead.take().map(|event| SessionEvent::Live(Box::new(event))));
                }
                if here.feed.is_none() && self.next >= *here.durable.borrow() {
                    return Ok(None);
                }
            }
            if !self.page.is_empty() {
                return Ok(self.record().await?.map(|record| SessionEvent::Record(Arc::new(record))));
            }
            self.page = self.store.read(self.session, self.next, PAGE).await?.into();
            if self.page.is_empty() {
                return Ok(None);
            }
            // The pieces of an answer are published before its record is stored. So those that were published while the store was
            // read are received now, and are returned before the records.
        }
    }

    /// Returns the next record of the page.
    async fn record(&mut self) -> Result<Option<Record>> {
        let Some(record) = self.page.front() else { return Ok(None) };
        let large = match &record.body {
            RecordBody::MessageAppended(message) if self.has_content && !message.object_refs().is_empty() => {
                Some(with_content(&*self.store, message).await?)
            }
            _ => None,
        };
        let record = self.page.pop_front().map(|mut record| {
            if let Some(message) = large {
                record.body = RecordBody::MessageAppended(Arc::new(message));
            }
            record
        });
        if let Some(record) = &record {
            self.next = record.position.next();
        }
        Ok(record)
    }

    /// Waits until there may be more events. Returns false if there are none to come.
    pub(crate) async fn wait(&mut self) -> bool {
        let Some(here) = &mut self.here else {
            tokio::time::sleep(POLL).await;
            return true;
        };
        tokio::select! {
            biased;
            event = here.live.recv(), if here.ahead.is_none() => match event {
                Ok(event) => {
                    here.ahead = Some(event);
                    true
                }
                Err(RecvError::Lagged(missed)) => {
                    here.missed += missed;
                    true
                }
                // All records were durable before the channel was closed.
                Err(RecvError::Closed) => self.next < *here.durable.borrow(),
            },
            changed = here.durable.changed() => changed.is_ok() || self.next < *here.durable.borrow(),
            // Another process may drive the session.
            () = tokio::time::sleep(POLL), if here.feed.is_some() => true,
        }
    }
}

debug_fields!(EventStream { session, next });
