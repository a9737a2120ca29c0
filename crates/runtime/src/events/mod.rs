//! The event stream of a session.
//!
//! The events of a session are its [records](SessionEvent::Record), which are durable and numbered, and [live
//! events](LiveEvent), which are transient and only visible in the process that drives the session: pieces of
//! answers, output of tools, progress, retries. An [`EventStream`] returns both in the order in which they
//! happened. Records are read from the store, so a slow reader never misses one. Live events pass through a
//! bounded channel: a slow reader misses the oldest ones, and receives their number right before the next live event. A
//! reader that shows answers as they arrive shows nothing more of the answer then, and the rest of it once its
//! record arrives, which has the whole text.

mod channel;
mod describe;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{Position, Record};
use backstitch_core::tool::Progress;

pub use backstitch_core::text::one_line;
pub(crate) use channel::{Channel, EventFeed};
pub(crate) use describe::{FILES_RESTORED, REPOSITORY_CHANGED, UNFINISHED, short};
pub use describe::{describe, message_text, reason_word, unfinished};
pub use stream::EventStream;

/// An event of a session.
///
/// ```
/// use backstitch_runtime::SessionEvent;
///
/// fn show(event: &SessionEvent) {
///     match event {
///         SessionEvent::Record(record) => println!("{} {}", record.position, record.body.kind()),
///         SessionEvent::Live(live) => println!("{}", live.kind),
///         SessionEvent::Missed(count) => println!("{count} live events missed"),
///         _ => {}
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A durable record of the session.
    Record(Arc<Record>),
    /// A transient event.
    Live(Box<LiveEvent>),
    /// The number of live events that a slow reader missed. They happened before the live event that follows, and
    /// after the live event before; records between the two were returned already.
    Missed(u64),
}

/// A transient event. It is dropped if there is no reader.
///
/// ```
/// use backstitch_runtime::{LiveEvent, LiveKind};
///
/// /// Prints text of the followed session, and marks that of its sub-agents.
/// fn show(event: &LiveEvent, followed: backstitch_core::id::SessionId) {
///     if let LiveKind::Text { text, .. } = &event.kind {
///         let mark = if event.session == followed { "" } else { "> " };
///         print!("{mark}{text}");
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEvent {
    /// The session that it happened in: the followed one, or that of a sub-agent.
    pub session: SessionId,
    /// The number of records of the followed session before it. The last of them is at the position before
    /// this one.
    pub at: Position,
    /// The event itself.
    pub kind: LiveKind,
}

impl LiveEvent {
    /// Returns the position of the last record of the followed session before it, if there is one.
    pub fn follows(&self) -> Option<Position> {
        self.at.number().checked_sub(1).map(Position::new)
    }
}

/// The kinds of live events.
///
/// ```
/// use backstitch_runtime::LiveKind;
///
/// fn show(kind: &LiveKind) {
///     match kind {
///         LiveKind::Text { text, .. } | LiveKind::Output { text, .. } => print!("{text}"),
///         LiveKind::Retry(retry) => eprintln!("attempt {} failed: {}", retry.attempt, retry.message),
///         other => eprintln!("{other}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LiveKind {
    /// A piece of the text of an answer.
    Text {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The number that the answer will have.
        turn: u64,
        /// The piece.
        text: String,
    },
    /// A piece of a model's reasoning.
    Reasoning {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The number that the answer will have.
        turn: u64,
        /// The piece.
        text: String,
    },
    /// A failed request that is retried after a delay.
    Retry(Box<Retry>),
    /// Progress of a running call.
    Progress {
        /// The call.
        call: CallId,
        /// The reported progress.
        progress: Progress,
    },
    /// Output of a running call, while it is produced.
    Output {
        /// The call.
        call: CallId,
        /// The output.
        text: String,
    },
    /// A durable record of a sub-agent's session.
    SubAgent(Arc<Record>),
}

/// A failed request that is retried after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The number that the answer will have.
    pub turn: u64,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// The delay before the next attempt.
    pub wait: Duration,
    /// A stable word for the kind of error.
    pub kind: String,
    /// The error, for a person.
    pub message: String,
}

impl SessionEvent {
    /// Returns the record of a durable event.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }

    /// Returns a live event.
    pub fn live(&self) -> Option<&LiveEvent> {
        match self {
            Self::Live(event) => Some(event),
            _ => None,
        }
    }

    /// Returns the piece of text of a [`LiveKind::Text`] event, of the followed session or of a sub-agent.
    pub fn text(&self) -> Option<&str> {
        match &self.live()?.kind {
            LiveKind::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for SessionEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(record) => write!(formatter, "{:>5}  {}", record.position, named(record)),
            Self::Live(event) => fmt::Display::fmt(&event.kind, formatter),
            Self::Missed(count) => write!(formatter, "({count} live events were missed)"),
        }
    }
}

impl fmt::Display for LiveKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, .. } => write!(formatter, "text: {}", one_line(text, 200)),
            Self::Reasoning { text, .. } => write!(formatter, "reasoning: {}", one_line(text, 200)),
            Self::Retry(retry) => {
                let Retry { attempt, wait, kind, message, .. } = &**retry;
                let (wait, message) = (wait.as_secs_f64(), one_line(message, 200));
                write!(formatter, "attempt {attempt} failed ({kind}): {message}; retrying in {wait:.1} s")
            }
            Self::Progress { progress: Progress { message, fraction }, .. } => {
                let share = fraction.map(|share| format!(" ({:.0} %)", share * 100.0));
                write!(formatter, "progress: {}{}", one_line(message, 200), share.unwrap_or_default())
            }
            Self::Output { text, .. } => write!(formatter, "output: {}", one_line(text, 200)),
            Self::SubAgent(record) => write!(formatter, "sub-agent: {}", named(record)),
        }
    }
}

/// Returns the description of a record, or the name of its kind.
fn named(record: &Record) -> String {
    describe(record).unwrap_or_else(|| record.body.kind().to_owned())
}
