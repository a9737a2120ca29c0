//! The record of why nobody drives a session.

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::id::EvaluationId;

/// Driving ended before the evaluation did, or on a request from outside.
///
/// A session whose evaluation ended, or that paused by itself, has no such record: the end or the pause is the reason. Nor has
/// one whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStopped {
    /// Why.
    pub reason: StopReason,
    /// The evaluation that was driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_id: Option<EvaluationId>,
    /// A stable word for the kind of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The error, for a person and without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why nobody drives a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// An error stopped it.
    Error,
    /// A signal stopped the process, which paused the session.
    Signal,
    /// The runtime was shut down, which paused the session.
    Shutdown,
    /// Its driver released it in the middle of an evaluation.
    Released,
}

impl StopReason {
    /// A stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Signal => "signal",
            Self::Shutdown => "shutdown",
            Self::Released => "released",
        }
    }
}

impl SessionStopped {
    /// A stop without an error.
    pub fn new(reason: StopReason, evaluation_id: Option<EvaluationId>) -> Self {
        Self { reason, evaluation_id, kind: None, message: None, extra: Extra::default() }
    }

    /// A stop by an error.
    pub fn error(evaluation_id: EvaluationId, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: Some(kind.into()),
            message: Some(message.into()),
            ..Self::new(StopReason::Error, Some(evaluation_id))
        }
    }
}
