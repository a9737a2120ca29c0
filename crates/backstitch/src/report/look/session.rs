//! A session at a point: its conversation, calls, evaluations, and what it waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_runtime::KeptAttempt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;
use crate::budget::Amounts;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{
    EvaluationFailure, EvaluationOutcome, InnerMessage, PauseReason, Position, SessionFailure, SessionPaused,
    WorkspaceRoot,
};
use crate::repl::Turn;
use crate::report::Version;
use crate::time::Timestamp;
use crate::view::{CallStatus, Checkpoint, SessionStatus};

/// Parts of a session that are shown on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionParts {
    /// The items of all slices.
    pub state: bool,
    /// The paths of its files.
    pub files: bool,
    /// The turns of an agent that answers with programs.
    pub turns: bool,
}

/// A session at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of its records.
    pub records: Position,
    /// What it is doing.
    #[schemars(with = "JsonObject")]
    pub status: SessionStatus,
    /// Its pauses, as they are recorded.
    #[schemars(with = "Vec<JsonObject>")]
    pub pauses: Vec<Arc<SessionPaused>>,
    /// What it has spent. Amounts of zero are left out.
    pub spent: Amounts,
    /// The messages of the conversation, as they are recorded, with content that is too large for their records.
    #[schemars(with = "Vec<JsonObject>")]
    pub messages: Vec<Arc<InnerMessage>>,
    /// The calls of the conversation.
    pub calls: Vec<CallLine>,
    /// Its files, as far as they are known.
    pub root: Option<WorkspaceRoot>,
    /// What keeps its latest evaluation from its answer.
    #[schemars(with = "Option<JsonObject>")]
    pub failure: Option<SessionFailure>,
    /// The latest record of why no process drives it any more.
    pub last_stop: Option<LastStop>,
    /// Its evaluations, with their requests.
    pub evaluations: Vec<EvaluationReport>,
    /// The decisions that it waits for, with those of its sub-agents.
    pub waiting: Vec<PendingDecision>,
    /// What its agent may do that a person should know. Empty for a session of another program.
    pub rights: Vec<String>,
    /// The items of its slices without the transcript, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<BTreeMap<String, Vec<Value>>>,
    /// The paths of its files, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The turns of an agent that answers with programs, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<JsonObject>>")]
    pub turns: Option<Vec<Turn>>,
}

/// A call of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallLine {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// How far it has come.
    pub status: CallStatus,
    /// Its boundaries, if it was started.
    #[schemars(with = "Option<JsonObject>")]
    pub checkpoint: Option<Checkpoint>,
}

/// The latest record of why no process drives a session any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastStop {
    /// The record.
    #[serde(flatten)]
    pub record: RecordEntry,
    /// Whether it is the reason why no process drives the session now.
    pub current: bool,
}

/// A record of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordEntry {
    /// The session whose journal has it. In a fork it may be the parent.
    pub session: SessionId,
    /// Its position.
    pub position: Position,
    /// When it was made.
    pub at: Timestamp,
    /// Its data.
    pub data: Value,
}

/// An evaluation of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationReport {
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The number of its responses.
    pub turns: u64,
    /// How it ended; `None` while it is open.
    pub outcome: Option<EvaluationOutcome>,
    /// Why it failed.
    #[schemars(with = "Option<JsonObject>")]
    pub error: Option<EvaluationFailure>,
    /// The requests to its policy.
    pub requests: Vec<RequestEntry>,
}

/// A request of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestEntry {
    /// The number of attempts whose end is recorded.
    pub attempts: u32,
    /// Record of its start.
    pub started: RecordEntry,
    /// Records of the attempts that failed.
    pub failures: Vec<RecordEntry>,
    /// Record of its answer.
    pub finished: Option<RecordEntry>,
    /// What arrived of attempts that did not come to their end. Left out if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptAttempt>,
}

/// A decision that a session waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingDecision {
    /// The session that records the decision: this one, or a child session of one of its calls.
    pub session: SessionId,
    /// What has to be decided.
    pub reason: PauseReason,
    /// Details for a person.
    pub detail: String,
    /// The call that it is about.
    pub call: Option<CallId>,
    /// The tool of the call.
    pub name: Option<String>,
    /// The arguments that the call ran with, or would run with.
    pub arguments: Option<Value>,
    /// Whether a result of the call is recorded that can be used again. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_offer: bool,
    /// Whether files changed while the machine was restarted. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_changed: bool,
    /// The files of which it is unknown whether the interrupted call or others changed them. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}
