//! Calls: what was asked for, what was started, what came of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, EvaluationId};
use crate::journal::{CallFinished, CallOutcome, CallStarted, Position, WorkspaceRoot};
use crate::time::Timestamp;

/// How far a call has come. It is never stored: it follows from the presence of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// There is no result yet.
    Pending,
    /// There is a result.
    Completed,
    /// There is an error.
    Failed,
}

/// A call of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The call.
    pub call_id: CallId,
    /// The evaluation that it belongs to.
    pub evaluation_id: EvaluationId,
    /// The option.
    pub name: String,
    /// Where its latest intent stands, with the intent.
    pub intent: Option<(Position, Arc<CallStarted>)>,
    /// Where its outcome stands, with the outcome and when it was recorded.
    pub finished: Option<(Position, Timestamp, Arc<CallFinished>)>,
    /// What its result message says: completed or failed.
    pub(super) result: Option<CallStatus>,
}

impl Call {
    pub(super) fn new(call_id: CallId, evaluation_id: EvaluationId, name: &str) -> Self {
        Self { call_id, evaluation_id, name: name.to_owned(), intent: None, finished: None, result: None }
    }

    /// How far the call has come.
    pub fn status(&self) -> CallStatus {
        let finished = self.finished.as_ref().map(|(_, _, finished)| match finished.outcome {
            CallOutcome::Succeeded => CallStatus::Completed,
            CallOutcome::Failed => CallStatus::Failed,
        });
        self.result.or(finished).unwrap_or(CallStatus::Pending)
    }

    /// Whether the call was started and has no outcome: it may have had an effect.
    pub fn is_open(&self) -> bool {
        self.status() == CallStatus::Pending && self.intent.is_some()
    }

    /// The boundaries of the call, once it was started.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let (before, intent) = self.intent.as_ref()?;
        let finished = self.finished.as_ref().filter(|(position, ..)| position > before);
        Some(Checkpoint {
            call_id: self.call_id,
            tool_name: self.name.clone(),
            attempt: intent.attempt,
            before: Boundary { position: *before, root: intent.root },
            after: finished.map(|(position, _, finished)| Boundary {
                position: position.next(),
                root: match finished.outcome {
                    CallOutcome::Succeeded => finished.root.or(intent.root),
                    CallOutcome::Failed => intent.root,
                },
            }),
            status: self.status(),
            result_summary: finished.and_then(|(_, _, finished)| finished.summary.clone()),
            elapsed_micros: finished.map(|(_, _, finished)| finished.elapsed_micros),
            recorded_at: finished.map(|(_, at, _)| *at),
        })
    }
}

/// A tool boundary: the journal cut there gives state and transcript, the root gives the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// The cut.
    pub position: Position,
    /// The workspace, for calls that may write.
    pub root: Option<WorkspaceRoot>,
}

/// The two boundaries of a call. It is constant in size, whatever the session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// The call.
    pub call_id: CallId,
    /// The option.
    pub tool_name: String,
    /// Which attempt it is about.
    pub attempt: u32,
    /// Before the call.
    pub before: Boundary,
    /// After it, once it has ended.
    pub after: Option<Boundary>,
    /// How far it has come.
    pub status: CallStatus,
    /// A line about its result.
    pub result_summary: Option<String>,
    /// How long it took, in microseconds.
    pub elapsed_micros: Option<u64>,
    /// When its outcome was recorded.
    pub recorded_at: Option<Timestamp>,
}
