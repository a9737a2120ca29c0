//! Records of what became of a request: an answer, or a failed attempt.
//!
//! They belong to the latest [`RequestStarted`](super::RequestStarted) of their evaluation, and say what happened. What was spent
//! is in [`BudgetCharged`](super::BudgetCharged) alone, so that nothing counts twice.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Finish;
use crate::budget::Amounts;
use crate::extra::Extra;
use crate::id::EvaluationId;

/// A request was answered. Stands in the batch of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number of the answer.
    pub turn: u64,
    /// The attempt that was answered, from 1.
    pub attempt: u32,
    /// Why the answer ended.
    pub finish: Finish,
    /// Why it ended, in the provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Tokens in and out, their parts, and money. The budget is charged apart.
    #[serde(default)]
    pub usage: Amounts,
    /// The time from the first attempt to the answer, waits included, in milliseconds.
    #[serde(default)]
    pub elapsed_millis: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RequestFinished {
    /// The first attempt was answered, free of charge.
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

/// An attempt at a request failed. Appended before the wait that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFailed {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number that the answer would have had.
    pub turn: u64,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// A stable word for the kind of error.
    pub kind: String,
    /// The error in the words of the server, without keys.
    pub message: String,
    /// The wait that the server asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_millis: Option<u64>,
    /// What follows.
    pub then: AfterFailure,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AfterFailure {
    /// Another attempt, after a wait.
    Retry {
        /// The wait, in milliseconds.
        wait_millis: u64,
    },
    /// No other attempt: the session stops, or the evaluation ends.
    Stop,
}

impl AfterFailure {
    /// The wait before the next attempt; `None` when there is none.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Retry { wait_millis } => Some(Duration::from_millis(wait_millis)),
            Self::Stop => None,
        }
    }
}
