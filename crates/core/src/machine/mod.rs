//! The evaluation as a state machine without IO.
//!
//! A [`Machine`] receives events and returns actions: ask the policy, run calls, record something, finish. It
//! never blocks and has no side effects, so a runtime, a simulation or a test can drive it. Its state follows
//! from the journal: a machine that is rebuilt from the records of an interrupted evaluation resumes exactly
//! where the previous one stopped.

mod followed;
mod tool_loop;
mod turn_state;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

pub use followed::{EvaluationHistory, FollowedConversation, TurnNumbers, conversation};
pub use tool_loop::{ToolLoop, ToolLoopFactory};
pub use turn_state::{TurnState, answers_of, final_media, final_text};

use crate::code::ErrorCode;
use crate::id::{CallId, EvaluationId};
use crate::journal::{EvaluationFailure, EvaluationOutcome, InnerMessage, RecordBody};
use crate::message::Arguments;
use crate::session::{Items, SessionError};

/// A recorded event.
#[derive(Debug, Clone)]
pub enum MachineEvent {
    /// A message to the policy was recorded.
    MessageAdded(Arc<InnerMessage>),
    /// The policy answered with messages and an optional structured answer.
    Answered {
        /// Texts and calls, in order.
        messages: Vec<Arc<InnerMessage>>,
        /// The structured answer.
        output: Option<Value>,
    },
    /// A call has ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// The recorded result.
        result: Arc<InnerMessage>,
    },
}

/// A call that has to run.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// Name of the option.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Arguments,
    /// Turn of the result.
    pub turn: u64,
    /// Step of the result.
    pub step_num: Option<u64>,
    /// Place of the call in a program, if no message holds the call yet. That message is recorded before the
    /// call runs.
    pub made_at: Option<String>,
    /// Why the call must not run any more. The text becomes its result.
    pub refusal: Option<String>,
}

/// The end of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationResult {
    /// Outcome of the evaluation.
    pub outcome: EvaluationOutcome,
    /// The structured answer.
    pub output: Option<Value>,
    /// The failure, if it failed.
    pub error: Option<EvaluationFailure>,
}

impl EvaluationResult {
    /// Creates the result of a completed evaluation.
    pub fn completed(output: Option<Value>) -> Self {
        Self { outcome: EvaluationOutcome::Completed, output, error: None }
    }

    /// Creates the result of a failed evaluation.
    pub fn failed(kind: impl Into<String>, message: impl Into<String>) -> Self {
        let (kind, message, extra) = (kind.into(), message.into(), Default::default());
        let error = Some(EvaluationFailure { kind, message, extra });
        Self { outcome: EvaluationOutcome::Failed, output: None, error }
    }

    /// Creates the result of a cancelled evaluation.
    pub fn cancelled() -> Self {
        Self { outcome: EvaluationOutcome::Cancelled, output: None, error: None }
    }
}

/// The next action of a machine's driver.
#[derive(Debug, Clone, PartialEq)]
pub enum MachineAction {
    /// Ask the policy for an answer.
    Ask,
    /// Run these calls concurrently. Their results may arrive in any order.
    Call(Vec<PendingCall>),
    /// Append these records.
    Record(Vec<RecordBody>),
    /// Wait until a call has ended.
    Wait,
    /// End the evaluation.
    Finish(EvaluationResult),
}

/// An evaluation could not be rebuilt from its journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// There is no such evaluation.
    #[error("there is no evaluation {evaluation}")]
    NoEvaluation {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// The transcript cannot be read.
    #[error(transparent)]
    Transcript(#[from] SessionError),
    /// A record of the evaluation cannot be read, so it cannot be resumed.
    #[error("{what} of evaluation {evaluation} cannot be read: {reason}")]
    Damaged {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The record that cannot be read.
        what: String,
        /// Reason for the failure.
        reason: String,
    },
}

impl MachineError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoEvaluation { .. } => ErrorCode::EvaluationNotFound,
            Self::Transcript(_) => ErrorCode::State,
            Self::Damaged { .. } => ErrorCode::JournalInvalid,
        }
    }
}

/// The state machine of an evaluation: receives events and returns actions.
pub trait Machine: Send {
    /// Updates the state by an event, which must already be recorded.
    fn handle(&mut self, event: MachineEvent);

    /// Returns the next action. Each action is returned once; its outcome arrives by [`Machine::handle`].
    fn next(&mut self) -> MachineAction;

    /// Returns the next action, or nothing if `stop` is set while it is computed. The computation is then
    /// abandoned, and starts again on the next call. A machine whose computations are long checks `stop`
    /// often; see [`Machine::takes_long`].
    fn next_unless(&mut self, stop: &Arc<AtomicBool>) -> Option<MachineAction> {
        let _ = stop;
        Some(self.next())
    }

    /// Returns whether computing the next action takes long, so that callers should not block on it.
    fn takes_long(&self) -> bool {
        false
    }

    /// Returns the messages to show to the policy for its next answer; `None` for all messages of the
    /// evaluation, unchanged. The result follows from the events received, so it can be reproduced. The
    /// budget may allow fewer answers than the limit of the machine.
    fn show(&self, answers_left: Option<u64>) -> Option<VisibleHistory> {
        let _ = answers_left;
        None
    }
}

/// The part of an evaluation that its policy is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisibleHistory {
    /// The messages to show, in order.
    pub messages: Items<InnerMessage>,
    /// Name and version of the renderer; `None` if the messages are unchanged.
    pub renderer: Option<String>,
    /// Descriptions of omitted content, a line each.
    pub left_out: Vec<String>,
    /// Whether the text describes the tools, so that they are not offered separately.
    pub tools_in_text: bool,
}

/// Builds the machine of an evaluation from its journal, which may end at any record.
pub trait MachineFactory: Send + Sync {
    /// Builds the machine of an evaluation.
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError>;

    /// Returns whether the next answer continues one that reached its token limit. Otherwise the machine
    /// itself requests a whole answer.
    fn continues_answers(&self) -> bool {
        true
    }
}
