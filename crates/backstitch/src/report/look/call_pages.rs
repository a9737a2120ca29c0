//! Pages of the calls of a session, and of its requests to models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::ModelUsage;
use crate::digest::Digest;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{CallVerdict, ChangeCounts, Effect, Finish, Point, WorkspaceRoot};
use crate::report::Version;
use crate::time::Timestamp;
use crate::view::CallStatus;

/// A page of the calls of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallsPage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of calls.
    pub total: usize,
    /// Place of the first one.
    pub from: usize,
    /// The calls.
    pub calls: Vec<CallRow>,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// A call of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRow {
    /// The call.
    pub call: CallId,
    /// The evaluation that it belongs to.
    pub evaluation: EvaluationId,
    /// The tool.
    pub name: String,
    /// How far it has come.
    pub status: CallStatus,
    /// Its effect class, if it was started.
    pub effect: Option<Effect>,
    /// The latest attempt, from 1; `null` if it was not started.
    pub attempt: Option<u32>,
    /// The record that starts the latest attempt.
    pub started: Option<Point>,
    /// When the latest attempt started.
    pub started_at: Option<Timestamp>,
    /// The record that ends it.
    pub finished: Option<Point>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How long it took, in microseconds.
    pub elapsed_micros: Option<u64>,
    /// Whether its changes are kept.
    pub outcome: Option<CallVerdict>,
    /// The result in a line.
    pub summary: Option<String>,
    /// The session of a sub-agent.
    pub sub_agent: Option<SessionId>,
    /// The files before it.
    pub root_before: Option<WorkspaceRoot>,
    /// The files after it. After a failed call they are those before it, because they were restored.
    pub root_after: Option<WorkspaceRoot>,
    /// The files as a failed call left them.
    pub rescue: Option<WorkspaceRoot>,
    /// The number of paths that it changed, where that is recorded.
    pub changed: Option<ChangeCounts>,
    /// The person or rule that let it run.
    pub approved_by: Option<String>,
}

/// A page of the requests of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestsPage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of requests.
    pub total: usize,
    /// Place of the first one.
    pub from: usize,
    /// The requests.
    pub requests: Vec<RequestRow>,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRow {
    /// The record of its start. In a fork it may be in the journal of the parent.
    pub started: Point,
    /// When it started.
    pub started_at: Timestamp,
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The turn.
    pub turn: u64,
    /// Whom it went to, and what the answer used.
    #[serde(flatten)]
    pub usage: ModelUsage,
    /// The number of attempts whose end is recorded.
    pub attempts: u32,
    /// The attempts that failed.
    pub failures: Vec<RequestFailure>,
    /// The record of its answer.
    pub finished: Option<Point>,
    /// When it was answered.
    pub finished_at: Option<Timestamp>,
    /// Why the answer ended.
    #[schemars(with = "Option<Value>")]
    pub finish: Option<Finish>,
    /// Digest of the request that was sent.
    pub digest: Option<Digest>,
    /// Its length, in bytes.
    pub length: u64,
}

/// An attempt at a request that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFailure {
    /// Its record.
    pub failed: Point,
    /// When it failed.
    pub at: Timestamp,
    /// A stable word for the kind of error.
    pub kind: String,
    /// The message of the server, without keys.
    pub message: String,
}
