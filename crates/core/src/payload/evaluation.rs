//! Records of the start, resumption and end of evaluations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Limits;
use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::EvaluationId;
use crate::message::{Large, PolicyName, large};
use crate::text_form::words;

/// An evaluation starts: a prompt is driven to an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Namespace of the prompt.
    pub prompt_ns: String,
    /// Key of the prompt.
    pub prompt_key: String,
    /// Digest of the prompt's contract: rendered text, tools, output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// Digests of the contracts of the offered tools, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, Digest>>,
    /// The evaluation that this one supersedes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_evaluation: Option<EvaluationId>,
    /// The evaluation whose conversation this one continues. The messages of the whole chain are shown before
    /// those of this one. Journals of older versions have none, and each of their evaluations is shown alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<EvaluationId>,
    /// Spending limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// Limit of active time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_millis: Option<u64>,
    /// The policy that decides. Only its messages can be an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<PolicyName>,
    /// The directory of the session's files from now on, when it is another one or none was recorded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The patterns of paths that the directory is opened without from now on, when they differ from those before. Journals of
    /// older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excludes: Option<Vec<String>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EvaluationStarted {
    /// Creates the start of an evaluation of this prompt, without contracts and limits.
    pub fn new(
        evaluation_id: EvaluationId,
        prompt_ns: impl Into<String>,
        prompt_key: impl Into<String>,
    ) -> Self {
        Self {
            evaluation_id,
            prompt_ns: prompt_ns.into(),
            prompt_key: prompt_key.into(),
            fingerprint: None,
            tools: None,
            parent_evaluation: None,
            follows: None,
            budget: None,
            deadline_millis: None,
            decider: None,
            directory: None,
            excludes: None,
            extra: Extra::default(),
        }
    }
}

/// An interrupted or paused evaluation is resumed. The time before this record is not part of its active
/// time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationResumed {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Process that drives it from here on, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// New spending limits; the earlier ones apply if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// New limit of active time, in milliseconds; the rest of the earlier one applies if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_millis: Option<u64>,
    /// Digest of the contract of the prompt that it is resumed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// The policy that decides from now on, if it differs or none was named before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<PolicyName>,
    /// The directory of the session's files from now on, when it is another one or none was recorded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The patterns of paths that the directory is opened without from now on, when they differ from those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excludes: Option<Vec<String>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EvaluationResumed {
    /// Creates the resumption of an evaluation with unchanged limits.
    pub fn new(evaluation_id: EvaluationId) -> Self {
        Self {
            evaluation_id,
            owner: None,
            budget: None,
            deadline_millis: None,
            fingerprint: None,
            decider: None,
            directory: None,
            excludes: None,
            extra: Extra::default(),
        }
    }
}

/// An evaluation has ended. The text of its answer is in its last message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Kind of end.
    pub outcome: EvaluationOutcome,
    /// The structured answer, if there is one.
    #[serde(flatten, with = "large::output")]
    pub output: Option<Large<Value>>,
    /// The failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationFailure>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EvaluationFinished {
    /// Creates the end of an evaluation without a structured answer and without an error.
    pub fn new(evaluation_id: EvaluationId, outcome: EvaluationOutcome) -> Self {
        Self { evaluation_id, outcome, output: None, error: None, extra: Extra::default() }
    }
}

words! {
    /// Kind of end of an evaluation.
    EvaluationOutcome = "outcome" {
        /// It has an answer.
        Completed = "completed",
        /// It has an error.
        Failed = "failed",
        /// It was ended from outside.
        Cancelled = "cancelled",
        /// Another evaluation took its place.
        Superseded = "superseded",
    }
}

/// Reason why an evaluation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationFailure {
    /// Stable word for the kind of error, mostly an [`ErrorCode`].
    pub kind: String,
    /// Error message for a person.
    pub message: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EvaluationFailure {
    /// Creates a failure of this kind.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), extra: Extra::default() }
    }

    /// The stable code of the failure.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::of_kind(&self.kind, ErrorCode::Unknown)
    }
}

/// A turn of an agent that answers with programs has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Number of the turn.
    pub turn: u64,
    /// Content of the turn.
    #[serde(flatten, with = "large::data", skip_serializing_if = "Large::is_null")]
    pub data: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TurnFinished {
    /// Creates the end of a turn.
    pub fn new(evaluation_id: EvaluationId, turn: u64, data: Value) -> Self {
        Self { evaluation_id, turn, data: data.into(), extra: Extra::default() }
    }
}
