//! Everything that is recorded about one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;
use super::files::ChangedFile;
use crate::budget::Amounts;
use crate::id::{CallId, SessionId};
use crate::journal::{CallVerdict, Decision, Effect, OmittedFile, PauseReason, Position, WorkspaceRoot};
use crate::message::OptionResult;
use crate::report::Version;
use crate::time::Timestamp;

/// A call: what the model asked for, who decided about it, what ran, and its outcome. It has every attempt, also those before a
/// rewind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallReport {
    /// Version of the form.
    pub v: Version,
    /// The session whose journal has the call.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// How far it has come.
    pub status: CallState,
    /// False for a call before a rewind.
    pub visible: bool,
    /// The turn of the model that asked for it.
    pub turn: u64,
    /// When the model asked for it.
    pub asked_at: Option<Timestamp>,
    /// The arguments of the model: an object, or a text if they are not one.
    pub arguments: Value,
    /// The arguments that ran, if a person edited them.
    pub edited: Option<Value>,
    /// Its effect class.
    pub effect: Option<Effect>,
    /// Its runs.
    pub attempts: Vec<CallAttempt>,
    /// The pauses that it was the reason for.
    pub pauses: Vec<CallPause>,
    /// The decisions about it.
    pub decisions: Vec<CallDecision>,
    /// The result as the model receives it.
    pub output: Option<String>,
    /// The result as it is recorded.
    #[schemars(with = "Option<JsonObject>")]
    pub result: Option<OptionResult>,
    /// Its finished steps.
    pub steps: Vec<CallStep>,
    /// The session of a sub-agent.
    pub sub_agent: Option<SessionId>,
    /// What was charged for it. Amounts of zero are left out.
    pub spent: Amounts,
    /// The request whose answer asked for it. All calls of the answer share it.
    pub request: Option<ModelUsage>,
    /// The files that the latest attempt changed. Those of a failed attempt were restored.
    pub files: Vec<ChangedFile>,
    /// Whether the latest attempt failed, so that its changes were undone.
    pub rolled_back: bool,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CallState {
    /// It has a result.
    #[serde(rename = "ok")]
    Succeeded,
    /// It has an error.
    #[serde(rename = "failed")]
    Failed,
    /// Its latest attempt has ended, and no result is recorded.
    #[serde(rename = "ended without a result")]
    WithoutResult,
    /// Its latest attempt has not ended.
    #[serde(rename = "interrupted or running")]
    Open,
    /// It was not started.
    #[serde(rename = "not started")]
    NotStarted,
}

impl CallState {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "ok",
            Self::Failed => "failed",
            Self::WithoutResult => "ended without a result",
            Self::Open => "interrupted or running",
            Self::NotStarted => "not started",
        }
    }
}

/// One run of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Position of its start.
    pub position: Position,
    /// False for an attempt before a rewind.
    pub visible: bool,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Whether its changes are kept; `None` if no end is recorded.
    pub outcome: Option<CallVerdict>,
    /// How long it took, in microseconds.
    pub elapsed_micros: Option<u64>,
    /// The files as a failed attempt left them.
    pub rescue: Option<WorkspaceRoot>,
    /// Files that the rescue omits because of their size; `None` if no end is recorded.
    pub left_out: Option<Vec<OmittedFile>>,
}

/// A pause that a call was the reason for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPause {
    /// When it began.
    pub at: Timestamp,
    /// What the session waited for.
    pub reason: PauseReason,
}

/// A decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDecision {
    /// When it was made.
    pub at: Timestamp,
    /// The decision.
    #[schemars(with = "JsonObject")]
    pub decision: Decision,
    /// The person or process that decided.
    pub by: Option<String>,
}

/// A finished step of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallStep {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// A request to a model, and what it used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsage {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What the answer used. Amounts of zero are left out.
    pub usage: Amounts,
}
