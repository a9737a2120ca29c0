//! The events of sessions, read once for all streams of a session.
//!
//! A feed exists as long as its session is followed. It reads the store for all of them, so a thousand streams cost as much as one. Each
//! stream reads old records itself, and those that it was too slow for; a feed keeps only the last events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::Position;
use backstitch::report::{RecordLine, Version};
use backstitch::{LiveEvent, LiveKind, Runtime, RuntimeError, SessionEvent};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::problem::Problem;

/// The number of events that a feed keeps for slow streams.
const KEPT: usize = 512;

/// The largest record that a feed keeps, in bytes. Streams read larger ones themselves.
const LARGEST_KEPT: usize = 8 * 1024;

/// Interval at which a feed looks whether it is still followed.
const LINGER: Duration = Duration::from_secs(1);

/// Delay before a feed reads again, after a run has ended or the store was busy.
const PAUSE: Duration = Duration::from_millis(50);

/// An event of a session, ready to be sent.
#[derive(Debug)]
pub(crate) enum FeedEvent {
    /// The feed begins here: earlier records have to be read.
    Begin(Position),
    /// A record, unless it is too large to be kept.
    Record { position: Position, text: Option<Bytes> },
    /// A live event, and the number of records before it.
    Live { at: Position, text: Bytes },
    /// The feed itself missed live events.
    Missed(u64),
    /// The session was removed.
    Removed,
    /// The session cannot be read.
    Failed(Box<Problem>),
}

type Sender = broadcast::Sender<Arc<FeedEvent>>;

/// The feeds of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct Feeds {
    runtime: Runtime,
    open: Arc<Mutex<HashMap<SessionId, Sender>>>,
}

impl Feeds {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime, open: Arc::default() }
    }

    /// Follows a session from now on.
    pub(crate) fn follow(&self, session: SessionId) -> broadcast::Receiver<Arc<FeedEvent>> {
        self.with(|open| match open.get(&session) {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = broadcast::channel(KEPT);
                open.insert(session, sender.clone());
                let feeds = self.clone();
                tokio::spawn(async move { feeds.publish(session, sender).await });
                receiver
            }
        })
    }

    /// The number of sessions that are followed.
    pub(crate) fn count(&self) -> usize {
        self.with(|open| open.len())
    }

    /// Publishes the events of a session as long as it is followed.
    async fn publish(&self, session: SessionId, sender: Sender) {
        let last = match self.read(session, &sender).await {
            Ok(()) => return,
            Err(error) if error.code() == ErrorCode::SessionNotFound => FeedEvent::Removed,
            Err(error) => FeedEvent::Failed(Box::new(error.into())),
        };
        // Streams that begin later have a feed of their own.
        self.with(|open| open.remove(&session));
        let _ = sender.send(Arc::new(last));
    }

    async fn read(&self, session: SessionId, sender: &Sender) -> Result<(), RuntimeError> {
        let head = self.runtime.head(session).await?;
        let _ = sender.send(Arc::new(FeedEvent::Begin(head)));
        let mut events = self.runtime.events(session).from(head);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = tokio::time::sleep(LINGER) => {
                    if self.close_unused(session, sender) {
                        return Ok(());
                    }
                    continue;
                }
            };
            let event = match event {
                Ok(Some(SessionEvent::Record(record))) => record_event(&RecordLine::of(&record)),
                Ok(Some(SessionEvent::Live(live))) => live_event(&live),
                Ok(Some(SessionEvent::Missed(count))) => FeedEvent::Missed(count),
                Ok(Some(_)) => continue,
                // The run that drove it has ended. Others may follow, here or in another process.
                Ok(None) => {
                    tokio::time::sleep(PAUSE).await;
                    events = self.runtime.events(session).from(events.position());
                    continue;
                }
                Err(error) if error.code() == ErrorCode::StoreBusy => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let _ = sender.send(Arc::new(event));
        }
    }

    /// Closes a feed that is not followed any more.
    fn close_unused(&self, session: SessionId, sender: &Sender) -> bool {
        self.with(|open| {
            let is_unused = sender.receiver_count() == 0;
            if is_unused {
                open.remove(&session);
            }
            is_unused
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<SessionId, Sender>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes a record as an event whose id is its position.
pub(crate) fn record_text(line: &RecordLine) -> Bytes {
    let data = serde_json::to_string(line).unwrap_or_default();
    format!("event: record\nid: {}\ndata: {data}\n\n", line.position).into()
}

/// Writes an event without an id.
pub(crate) fn event_text(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn record_event(line: &RecordLine) -> FeedEvent {
    let text = Some(record_text(line)).filter(|text| text.len() <= LARGEST_KEPT);
    FeedEvent::Record { position: line.position, text }
}

fn live_event(live: &LiveEvent) -> FeedEvent {
    let mut data = match &live.kind {
        LiveKind::Text { evaluation, turn, text } => {
            json!({ "kind": "text", "evaluation": evaluation, "turn": turn, "text": text })
        }
        LiveKind::Reasoning { evaluation, turn, text } => {
            json!({ "kind": "reasoning", "evaluation": evaluation, "turn": turn, "text": text })
        }
        LiveKind::Output { call, text } => json!({ "kind": "output", "call": call, "text": text }),
        LiveKind::Progress { call, progress } => json!({
            "kind": "progress", "call": call, "message": progress.message, "fraction": progress.fraction,
        }),
        LiveKind::Retry(retry) => json!({
            "kind": "retry", "evaluation": retry.evaluation, "turn": retry.turn, "attempt": retry.attempt,
            "wait_millis": u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX),
            "error_kind": retry.kind, "message": retry.message,
        }),
        LiveKind::SubAgent(record) => json!({ "kind": "sub_agent", "record": RecordLine::of(record) }),
        other => json!({ "kind": "other", "text": other.to_string() }),
    };
    if let Value::Object(fields) = &mut data {
        fields.insert("v".to_owned(), json!(Version));
        fields.insert("session".to_owned(), json!(live.session));
        fields.insert("at".to_owned(), json!(live.at));
    }
    FeedEvent::Live { at: live.at, text: event_text("live", &data) }
}
