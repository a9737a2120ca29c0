//! The one stream of events of a session.
//!
//! A session's events are its [records](SessionEvent::Record), which are durable and numbered, and [live events](LiveEvent), which only
//! the process that drives the session sees: pieces of answers, output of tools, progress, retries. An [`EventStream`] gives both
//! in the order in which they happened. Records are read from the store, so a slow reader never misses one. Live events pass
//! through a bounded channel: a slow reader misses the oldest, and learns how many.

mod channel;
mod describe;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{Position, Record};
use backstitch_core::tool::Progress;

pub(crate) use channel::Channel;
pub use describe::{describe, one_line, reason_word, unfinished};
pub use stream::EventStream;

/// Something that happened in a session.
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
    /// Something that is not recorded.
    Live(Box<LiveEvent>),
    /// The number of live events that the reader was too slow for.
    Missed(u64),
}

/// An event that is not recorded. It is lost when nobody reads it.
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
    /// The session that it happened in: the one that is followed, or that of a sub-agent.
    pub session: SessionId,
    /// The number of records of the followed session that came before it. It follows the record at the position before this one.
    pub at: Position,
    /// What happened.
    pub kind: LiveKind,
}

impl LiveEvent {
    /// The record of the followed session that it follows; none when it came before the first one.
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
    /// A policy did not answer, and is asked again after a wait.
    Retry(Box<Retry>),
    /// A running call reports how far it is.
    Progress {
        /// The call.
        call: CallId,
        /// How far it is.
        progress: Progress,
    },
    /// Output of a running call, as it comes.
    Output {
        /// The call.
        call: CallId,
        /// The output.
        text: String,
    },
    /// A durable record of a sub-agent's session.
    SubAgent(Arc<Record>),
}

/// A failed request that is sent again after a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The number that the answer will have.
    pub turn: u64,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// The wait before the next attempt.
    pub wait: Duration,
    /// A stable word for the kind of error.
    pub kind: String,
    /// The error, for a person.
    pub message: String,
}

impl SessionEvent {
    /// The record, where it is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The live event, where it is one.
    pub fn live(&self) -> Option<&LiveEvent> {
        match self {
            Self::Live(event) => Some(event),
            _ => None,
        }
    }

    /// A piece of the text of an answer of the followed session or of a sub-agent, where it is one.
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

/// What a record says, or the name of its kind.
fn named(record: &Record) -> String {
    describe(record).unwrap_or_else(|| record.body.kind().to_owned())
}
