//! The context of log items.

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::id::{EvaluationId, SessionId};

/// The session, the evaluation, the attempt and the process that a log item belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation. All attempts share it.
    pub evaluation_id: EvaluationId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The process that ran it, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The trace that it belongs to, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The span within the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RunContext {
    /// Creates the context of the first attempt of an evaluation.
    pub fn new(session_id: SessionId, evaluation_id: EvaluationId) -> Self {
        Self {
            session_id,
            evaluation_id,
            attempt: 1,
            worker_id: None,
            trace_id: None,
            span_id: None,
            extra: Extra::default(),
        }
    }
}
