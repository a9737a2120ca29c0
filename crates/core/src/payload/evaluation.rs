//! Records of how evaluations begin, go on and end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Limits;
use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::EvaluationId;
use crate::message::{Large, PolicyName, large};

/// A prompt starts to be driven to an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The namespace of the prompt.
    pub prompt_ns: String,
    /// The key of the prompt.
    pub prompt_key: String,
    /// A digest of the prompt's contract: rendered text, tools, output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// A digest of the contract of each tool that is offered, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, Digest>>,
    /// The evaluation that this one goes on from, when that one was superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_evaluation: Option<EvaluationId>,
    /// The evaluation whose conversation this one continues: its messages, and those that it continues itself, are shown before
    /// this one's. Journals of older versions have none, and each of their evaluations is shown alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<EvaluationId>,
    /// What it may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// How much active time it has, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_millis: Option<u64>,
    /// The policy that decides. Only what it says can be an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<PolicyName>,
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
            extra: Extra::default(),
        }
    }
}

/// An evaluation that was interrupted or paused goes on. The time before this record is not part of its active time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationResumed {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Who drives it from here on, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What it may spend from now on; without it, what it might before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// How much active time it has from now on, in milliseconds; without it, what is left of what it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_millis: Option<u64>,
    /// A digest of the contract of the prompt that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// The policy that decides from now on, when it is another one or none was named before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<PolicyName>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EvaluationResumed {
    /// Creates the resumption of an evaluation with what it had before.
    pub fn new(evaluation_id: EvaluationId) -> Self {
        Self {
            evaluation_id,
            owner: None,
            budget: None,
            deadline_millis: None,
            fingerprint: None,
            decider: None,
            extra: Extra::default(),
        }
    }
}

/// An evaluation has ended. Its answer's text is its last message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// How it ended.
    pub outcome: EvaluationOutcome,
    /// The structured answer, where there is one.
    #[serde(flatten, with = "large::output")]
    pub output: Option<Large<Value>>,
    /// What went wrong, when something did.
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

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationOutcome {
    /// With an answer.
    Completed,
    /// With an error.
    Failed,
    /// Because someone ended it.
    Cancelled,
    /// Because another evaluation took its place.
    Superseded,
}

/// Why an evaluation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationFailure {
    /// A stable word for the kind of error, mostly an [`ErrorCode`].
    pub kind: String,
    /// What happened, for a person.
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
    /// The number of the turn.
    pub turn: u64,
    /// The turn.
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
