//! The record of why a session is not driven any more.

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::id::EvaluationId;
use crate::text_form::words;

/// The session is no longer driven, before the evaluation ended or on a request from outside.
///
/// A session whose evaluation ended, or that paused by itself, has no such record: the end or the pause is
/// the reason. Neither has a session whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStopped {
    /// Reason for the stop.
    pub reason: StopReason,
    /// The evaluation that was driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_id: Option<EvaluationId>,
    /// Stable code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Error message for a person, without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

words! {
    /// Reason why a session is not driven any more.
    StopReason = "reason of a stop" {
        /// An error occurred.
        Error = "error",
        /// The process received a signal and paused the session.
        Signal = "signal",
        /// The runtime was shut down and paused the session.
        Shutdown = "shutdown",
        /// The driver released the session in the middle of an evaluation.
        Released = "released",
    }
}

impl SessionStopped {
    /// Creates a stop without an error.
    pub fn new(reason: StopReason, evaluation_id: Option<EvaluationId>) -> Self {
        Self { reason, evaluation_id, kind: None, message: None, extra: Extra::default() }
    }

    /// Creates a stop because of an error.
    pub fn error(evaluation_id: EvaluationId, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: Some(kind.into()),
            message: Some(message.into()),
            ..Self::new(StopReason::Error, Some(evaluation_id))
        }
    }
}
