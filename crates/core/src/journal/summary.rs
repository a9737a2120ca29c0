//! Summaries of sessions: what a list shows of a session, and what queries select it by.
//!
//! A summary repeats what a journal says at its head, so that sessions are listed and queried without reading their journals. It
//! is a cache: the writer of a batch has the folded view, so the batch carries the summary, and a store writes it together with
//! the records and never folds anything itself. It holds only what the journal says. Whether a process drives the session, and
//! whether items wait in its inbox, is joined when summaries are read
//! ([`IndexedSession`](crate::ports::IndexedSession)).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lifecycle::{Origin, PauseReason};
use super::position::Position;
use super::stop::SessionStopped;
use crate::budget::Amounts;
use crate::id::SessionId;
use crate::payload::EvaluationOutcome;
use crate::text::one_line;
use crate::text_form::words;
use crate::time::Timestamp;

/// What a journal says about its session at its head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The version of the summary's form and of the rules that it follows from: see [`SessionSummary::VERSION`].
    #[serde(rename = "v")]
    pub version: u32,
    /// The session.
    pub session: SessionId,
    /// The head that is described: the position after the last record.
    pub position: Position,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When its last record was made.
    pub updated_at: Timestamp,
    /// What the session is doing, as far as the journal says.
    pub state: JournalState,
    /// What it waits for, if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseReason>,
    /// How its latest evaluation ended; none while that is open, and before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EvaluationOutcome>,
    /// What keeps the latest evaluation from its answer. The message is cut to a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SessionFailure>,
    /// Why no process drives it, where that is recorded and nothing happened since. The message is cut to a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<SessionStopped>,
    /// The name of the agent: that of its recorded definition, else the key of the latest evaluation's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The directory of its files, where they are on a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// The directory that its files are a copy of, if the session is isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Origin::is_root")]
    pub origin: Origin,
    /// The name that a person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The first thing that a user said, cut to a line. Empty for a text that is stored as an object.
    #[serde(default)]
    pub mission: Arc<str>,
    /// How many turns its evaluations have, as far as they are visible.
    #[serde(default)]
    pub turns: u64,
    /// What it has spent, with what its sub-agents have.
    #[serde(default)]
    pub spent: Amounts,
}

impl SessionSummary {
    /// The version that this program writes. It is raised when a summary follows from a journal in another way; sessions whose
    /// summaries have an earlier version count as not indexed.
    pub const VERSION: u32 = 2;

    /// The most characters of a mission that a summary holds.
    pub const MISSION_LENGTH: usize = 100;

    /// The most characters of an error's message that a summary holds.
    pub const MESSAGE_LENGTH: usize = 300;
}

words! {
    /// What a session is doing, as far as its journal says.
    JournalState = "state of a session" {
        /// No evaluation is open, and the latest one did not fail.
        Idle = "idle",
        /// The latest evaluation failed.
        Failed = "failed",
        /// An evaluation is open, and nothing says why it should not be driven.
        Open = "open",
        /// A fork whose evaluation was open at its point, and which nobody has driven yet.
        New = "new",
        /// An evaluation is open, and the reason why it is no longer driven is recorded.
        Stopped = "stopped",
        /// It waits for a decision.
        Paused = "paused",
        /// Its files could not be restored.
        Poisoned = "poisoned",
    }
}

/// What keeps the latest evaluation of a session from its answer: the failure that it ended with, the error that stopped the
/// session, or the last attempt to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFailure {
    /// A stable word for the kind of error, mostly an [`ErrorCode`](crate::code::ErrorCode).
    pub kind: String,
    /// What happened, for a person.
    pub message: String,
    /// The number of attempts, where a request failed.
    #[serde(default)]
    pub attempts: Option<u32>,
}

/// In one line.
impl fmt::Display for SessionFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind)?;
        match self.attempts {
            None => {}
            Some(1) => formatter.write_str(" after 1 attempt")?,
            Some(attempts) => write!(formatter, " after {attempts} attempts")?,
        }
        write!(formatter, ": {}", one_line(&self.message, 200))
    }
}
