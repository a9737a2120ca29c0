//! Lists of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{JsonObject, PendingDecision};
use crate::budget::Amounts;
use crate::id::SessionId;
use crate::journal::{
    EvaluationOutcome, Origin, PauseReason, Point, Position, SessionFailure, SessionStopped,
};
use crate::ports::{IndexedSession, IndexedStatus, OriginKind, Owner, SessionQuery};
use crate::report::Version;
use crate::time::Timestamp;

/// Which sessions are listed.
///
/// ```
/// use backstitch::prelude::*;
/// use backstitch::report::ListOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RuntimeError> {
/// let failed = ListOptions::of(SessionQuery::new().with_status(IndexedStatus::Failed)).newest(20);
/// let list = Runtime::in_memory().session_list(failed).await?;
/// assert!(list.sessions.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// What sessions are selected by. Its order, its limit and its cursor are not used.
    pub query: SessionQuery,
    /// The most sessions, of which the newest are listed; `None` lists all.
    pub limit: Option<usize>,
    /// Adds the sub-agents of the listed sessions, and theirs, whether they are selected or not.
    pub with_sub_agents: bool,
    /// Adds the sessions that cannot be read.
    pub with_unreadable: bool,
}

impl ListOptions {
    /// Lists all sessions, and those that cannot be read.
    pub fn all() -> Self {
        Self { with_unreadable: true, ..Self::default() }
    }

    /// Lists the sessions that a query selects.
    pub fn of(query: SessionQuery) -> Self {
        Self { query, ..Self::default() }
    }

    /// Lists at most this many sessions, the newest.
    #[must_use]
    pub fn newest(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// Sessions of a store, oldest first. The command prints each as a line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// Sessions that cannot be read.
    pub unreadable: Vec<UnreadableEntry>,
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// How many older sessions are selected and not listed, because of the limit.
    pub left_out: u64,
}

/// A session that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableEntry {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// Why it cannot be read.
    pub error: String,
}

/// A session of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedSession {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last record was made.
    pub updated_at: Timestamp,
    /// The number of its records.
    pub records: Position,
    /// What it is doing.
    pub status: IndexedStatus,
    /// How its latest evaluation ended; `None` while that is open.
    pub outcome: Option<EvaluationOutcome>,
    /// The first message of the user, in a line.
    pub mission: Arc<str>,
    /// The name of its agent.
    pub agent: Option<Arc<str>>,
    /// The directory of its files.
    pub workspace: Option<Arc<str>>,
    /// The directory that its files are a copy of.
    pub isolated_from: Option<Arc<str>>,
    /// The name that a person gave it.
    pub name: Option<Arc<str>>,
    /// Its labels.
    pub tags: BTreeMap<String, String>,
    /// The process that holds it.
    pub holder: Option<Owner>,
    /// Whether items wait in its inbox.
    pub waiting: bool,
    /// How it came to be.
    pub origin: OriginKind,
    /// The session that it comes from.
    pub parent: Option<SessionId>,
    /// Where a fork begins.
    pub fork_of: Option<Point>,
    /// What keeps its latest evaluation from its answer.
    #[schemars(with = "Option<JsonObject>")]
    pub failure: Option<SessionFailure>,
    /// Why no process drives it, where that is recorded.
    #[schemars(with = "Option<JsonObject>")]
    pub stopped: Option<SessionStopped>,
    /// The number of its turns.
    pub turns: u64,
    /// What it has spent, with its sub-agents. Amounts of zero are left out.
    pub spent: Amounts,
    /// What a paused session waits for. Left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PauseReason>,
}

/// A session that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingSession {
    /// The session.
    #[serde(flatten)]
    pub session: ListedSession,
    /// The decisions that it waits for, with those of its sub-agents. Empty if it only has to be resumed.
    pub decisions: Vec<PendingDecision>,
}

/// A session that got a name, or lost it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSession {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// Its name from now on.
    pub name: Option<String>,
}

/// A session whose tags were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaggedSession {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// All of its tags from now on.
    pub tags: BTreeMap<String, String>,
}

impl From<IndexedSession> for ListedSession {
    fn from(indexed: IndexedSession) -> Self {
        let status = indexed.status();
        let IndexedSession { summary, holder, has_waiting } = indexed;
        let fork_of = match summary.origin {
            Origin::Fork { session, position } => Some(Point { session, position }),
            _ => None,
        };
        Self {
            v: Version,
            session: summary.session,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            records: summary.position,
            status,
            outcome: summary.outcome,
            origin: OriginKind::from(&summary.origin),
            parent: summary.origin.parent(),
            fork_of,
            mission: summary.mission,
            agent: summary.agent,
            workspace: summary.workspace,
            isolated_from: summary.project,
            name: summary.name,
            tags: summary.tags,
            holder,
            waiting: has_waiting,
            failure: summary.failure,
            stopped: summary.stopped,
            turns: summary.turns,
            spent: summary.spent,
            reason: summary.pause,
        }
    }
}
