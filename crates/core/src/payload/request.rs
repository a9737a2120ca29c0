//! Records of the end of a request: an answer, or a failed attempt.
//!
//! They belong to the latest [`RequestStarted`](super::RequestStarted) of their evaluation. Costs are charged
//! only by [`BudgetCharged`](super::BudgetCharged), so that nothing counts twice.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Finish;
use crate::budget::Amounts;
use crate::extra::Extra;
use crate::id::EvaluationId;

/// A request was answered. This record is in the batch of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Turn of the answer.
    pub turn: u64,
    /// Number of the attempt that was answered, from 1.
    pub attempt: u32,
    /// Reason for the end of the answer.
    pub finish: Finish,
    /// Reason for the end, in the provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Tokens in and out, their parts, and money. The budget is charged separately.
    #[serde(default)]
    pub usage: Amounts,
    /// Time from the first attempt to the answer, including backoff, in milliseconds.
    #[serde(default)]
    pub elapsed_millis: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RequestFinished {
    /// Creates the record of a first attempt that was answered, free of charge.
    pub fn new(evaluation_id: EvaluationId, turn: u64, finish: Finish) -> Self {
        Self {
            evaluation_id,
            turn,
            attempt: 1,
            finish,
            finish_reason: None,
            usage: Amounts::ZERO,
            elapsed_millis: 0,
            extra: Extra::default(),
        }
    }
}

/// An attempt at a request failed. This record is appended before the backoff that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFailed {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Turn that the answer would have had.
    pub turn: u64,
    /// Number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Stable word for the kind of error.
    pub kind: String,
    /// Error message of the server, without keys.
    pub message: String,
    /// Delay that the server asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_millis: Option<u64>,
    /// Context window of the model in tokens, if the server named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether the server refused the request for a reason that is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unexplained: bool,
    /// Tokens and money that the failed attempt cost. The budget is charged separately.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub usage: Amounts,
    /// Reaction to the failure.
    pub then: AfterFailure,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RequestFailed {
    /// Creates the record of a first attempt that failed, free of charge, and that no other one follows.
    pub fn new(evaluation_id: EvaluationId, turn: u64, kind: &str, message: &str) -> Self {
        Self {
            evaluation_id,
            turn,
            attempt: 1,
            kind: kind.to_owned(),
            message: message.to_owned(),
            retry_after_millis: None,
            window: None,
            unexplained: false,
            usage: Amounts::ZERO,
            then: AfterFailure::Stop,
            extra: Extra::default(),
        }
    }
}

fn is_zero(amounts: &Amounts) -> bool {
    *amounts == Amounts::ZERO
}

/// Reaction to a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AfterFailure {
    /// Another attempt, after a delay.
    Retry {
        /// The delay, in milliseconds.
        wait_millis: u64,
    },
    /// No other attempt: the session stops, or the evaluation ends.
    Stop,
}

impl AfterFailure {
    /// Returns the delay before the next attempt; `None` if there is none.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Retry { wait_millis } => Some(Duration::from_millis(wait_millis)),
            Self::Stop => None,
        }
    }
}
