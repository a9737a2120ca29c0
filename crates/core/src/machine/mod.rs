//! The evaluation as a machine without IO.
//!
//! A [`Machine`] is told what happened and says what to do: ask the policy, run calls, record something, finish. It waits for
//! nobody and touches nothing, so it can be driven by a runtime, by a simulation or by a test alike. Everything it knows
//! follows from the journal: a machine that is rebuilt from the records of an interrupted evaluation goes on exactly where
//! the one before it stopped.

mod followed;
mod past;
mod tool_loop;
mod turn_state;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

pub use followed::{FollowedConversation, TurnNumbers, conversation};
pub use past::EvaluationHistory;
pub use tool_loop::{ToolLoop, ToolLoopFactory};
pub use turn_state::{TurnState, answers_of, final_text};

use crate::code::ErrorCode;
use crate::id::{CallId, EvaluationId};
use crate::journal::{EvaluationFailure, EvaluationOutcome, InnerMessage, RecordBody};
use crate::message::Arguments;
use crate::session::{Items, SessionError};

/// Something that happened, and is recorded.
#[derive(Debug, Clone)]
pub enum MachineEvent {
    /// Somebody said something to the policy.
    Said(Arc<InnerMessage>),
    /// The policy answered, with these messages and perhaps a structured answer.
    Answered {
        /// The words and the calls, in order.
        messages: Vec<Arc<InnerMessage>>,
        /// The structured answer.
        output: Option<Value>,
    },
    /// A call has its result.
    CallEnded {
        /// The call.
        call: CallId,
        /// The result, as it was recorded.
        result: Arc<InnerMessage>,
    },
}

/// A call that is to run.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// The option.
    pub name: String,
    /// What it is called with.
    pub arguments: Arguments,
    /// The turn that its result belongs to.
    pub turn: u64,
    /// The step that its result belongs to.
    pub step_num: Option<u64>,
    /// Where in a program it is made, if no message makes it yet: the message that does is recorded before it runs.
    pub made_at: Option<String>,
    /// Why it is not to run any more. It gets this for its result.
    pub refusal: Option<String>,
}

/// How an evaluation ends.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationResult {
    /// How it ended.
    pub outcome: EvaluationOutcome,
    /// The structured answer.
    pub output: Option<Value>,
    /// What went wrong.
    pub error: Option<EvaluationFailure>,
}

impl EvaluationResult {
    /// It has its answer.
    pub fn completed(output: Option<Value>) -> Self {
        Self { outcome: EvaluationOutcome::Completed, output, error: None }
    }

    /// It failed.
    pub fn failed(kind: impl Into<String>, message: impl Into<String>) -> Self {
        let (kind, message, extra) = (kind.into(), message.into(), Default::default());
        let error = Some(EvaluationFailure { kind, message, extra });
        Self { outcome: EvaluationOutcome::Failed, output: None, error }
    }

    /// Someone ended it.
    pub fn cancelled() -> Self {
        Self { outcome: EvaluationOutcome::Cancelled, output: None, error: None }
    }
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq)]
pub enum MachineAction {
    /// Ask the policy.
    Ask,
    /// Run these calls. They are side by side; their results may come in any order.
    Call(Vec<PendingCall>),
    /// Append these records.
    Record(Vec<RecordBody>),
    /// Nothing, until a call has ended.
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
    /// What the journal holds of it cannot be gone on from.
    #[error("{what} of evaluation {evaluation} cannot be read: {reason}")]
    Damaged {
        /// The evaluation.
        evaluation: EvaluationId,
        /// What cannot be read.
        what: String,
        /// Why.
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

/// An evaluation that is told what happened and says what to do.
pub trait Machine: Send {
    /// Takes in something that happened. It must already be recorded.
    fn take_in(&mut self, event: MachineEvent);

    /// What is to be done now. An action is given once; what it was given for is told by [`Machine::take_in`].
    fn next(&mut self) -> MachineAction;

    /// What is to be done now, or nothing if `stop` is set before that is known. What was under way is then given up, and
    /// begins anew when the machine is asked again. A machine that takes long looks at it often; see
    /// [`Machine::takes_long`].
    fn next_unless(&mut self, stop: &Arc<AtomicBool>) -> Option<MachineAction> {
        let _ = stop;
        Some(self.next())
    }

    /// Whether saying what is to be done takes long, so that nobody should wait for it who has other things to do.
    fn takes_long(&self) -> bool {
        false
    }

    /// What whoever decides is shown when they are asked now; none when that is the whole evaluation, as it was said. It follows
    /// from what the machine has taken in, so that it can be shown again. The budget may leave fewer answers than the machine
    /// knows of.
    fn show(&self, answers_left: Option<u64>) -> Option<VisibleHistory> {
        let _ = answers_left;
        None
    }
}

/// What whoever decides is shown of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisibleHistory {
    /// What is shown, in order.
    pub messages: Items<InnerMessage>,
    /// What rendered it, with its version; none when all is shown as it was said.
    pub renderer: Option<String>,
    /// What was left out, a line each.
    pub left_out: Vec<String>,
    /// Whether the tools stand in the text, so that they are not offered beside it.
    pub tools_in_text: bool,
}

/// Builds the machine of an evaluation from its journal, at whatever place that ends.
pub trait MachineFactory: Send + Sync {
    /// The machine of an evaluation.
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError>;

    /// Whether an answer that reached its token limit is continued by the next one. Where it is not, its machines ask for a whole
    /// one themselves.
    fn continues_answers(&self) -> bool {
        true
    }
}
