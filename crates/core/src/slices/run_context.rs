//! Within what something happened.

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::id::{EvaluationId, SessionId};

/// The session, the evaluation and the attempt within which something happened, and who worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation. It stays the same over attempts.
    pub evaluation_id: EvaluationId,
    /// Which attempt it is, from 1 on.
    pub attempt: u32,
    /// The process that worked on it, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The trace that it belongs to, where there is one.
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
    /// The first attempt of an evaluation.
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
