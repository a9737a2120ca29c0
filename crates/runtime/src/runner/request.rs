//! What the runner is asked, and what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{InnerMessage, WorkspaceRevision};
use backstitch_core::message::Arguments;
use tokio_util::sync::CancellationToken;

use crate::agent::ResumeOptions;
use crate::live::Durable;

/// A call that is to run.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The call.
    pub call_id: CallId,
    /// The evaluation that it belongs to.
    pub evaluation_id: EvaluationId,
    /// The turn that its result belongs to.
    pub turn: u64,
    /// The step that its result belongs to.
    pub step_num: Option<u64>,
    /// The tool, as the model named it.
    pub name: String,
    /// The arguments, as the model gave them or as they were edited since.
    pub arguments: Arguments,
    /// Whether the arguments are not those of the call's message, so that its intent has to hold them.
    pub edited: bool,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whether an earlier attempt was cut off by a crash.
    pub is_resume: bool,
    /// Whether a person has approved the call.
    pub approved: bool,
    /// Why a person does not want it to run.
    pub refusal: Option<String>,
    /// The session that goes on working for it.
    pub(crate) continued: Option<ResumedChild>,
    /// How that session is resumed.
    pub(crate) resume: ResumeOptions,
    /// How many agents share what is left of the budget.
    pub(crate) shares: u64,
    /// Cancelling this stops the call; without it, what cancels its runner does.
    pub(crate) cancel: Option<CancellationToken>,
    /// How many calls of the turn have not ended, this one included, where the last may leave its outcome to the next commit.
    pub(crate) unfinished: Option<Arc<AtomicUsize>>,
}

impl CallRequest {
    /// The first attempt of a call that nobody has approved yet.
    pub fn new(call_id: CallId, evaluation_id: EvaluationId, name: &str, arguments: Arguments) -> Self {
        Self {
            call_id,
            evaluation_id,
            turn: 0,
            step_num: None,
            name: name.to_owned(),
            arguments,
            edited: false,
            attempt: 1,
            is_resume: false,
            approved: false,
            refusal: None,
            continued: None,
            resume: ResumeOptions::default(),
            shares: 1,
            cancel: None,
            unfinished: None,
        }
    }

    /// When its outcome has to be durable. That of the last call of a turn may wait for what comes next, since nothing happens
    /// between. It is asked once.
    pub(super) fn durable(&self) -> Durable {
        match &self.unfinished {
            Some(unfinished) if unfinished.fetch_sub(1, Ordering::SeqCst) == 1 => Durable::WithNext,
            _ => Durable::Now,
        }
    }

    /// The turn and the step that its result belongs to.
    #[must_use]
    pub fn in_turn(mut self, turn: u64, step_num: Option<u64>) -> Self {
        self.turn = turn;
        self.step_num = step_num;
        self
    }
}

/// A session that goes on working for a call, after a pause or a crash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumedChild {
    pub(crate) session: SessionId,
    /// The files before the call. Now they are what the session has made of them.
    pub(crate) before: Option<WorkspaceRevision>,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// It succeeded, and what it did stands. This is its result.
    Succeeded(Arc<InnerMessage>),
    /// It failed, and all that it did is rolled back. This is what the model is told.
    Failed(Arc<InnerMessage>),
    /// Sections of the prompt have to be open first. The call counts as never made.
    VisibilityExpansion {
        /// The sections.
        sections: Vec<String>,
        /// Why.
        reason: String,
    },
    /// The evaluation's deadline has passed: the call is rolled back, and the evaluation has to end.
    DeadlineExceeded(Arc<InnerMessage>),
    /// It was cancelled: it is rolled back, and the session is paused.
    Cancelled(Arc<InnerMessage>),
    /// It was stopped with its session, which is paused: it is rolled back, and made again when the session goes on.
    Stopped,
    /// A person has to approve it: the session is paused.
    NeedsApproval,
    /// It would cost more than is left: the session is paused.
    BudgetExhausted,
    /// A session that works for it waits for a decision: this one is paused, and the call goes on after it.
    Waits,
}

impl CallOutcome {
    /// What the model is told, when it is told something.
    pub fn message(&self) -> Option<&Arc<InnerMessage>> {
        match self {
            Self::Succeeded(message)
            | Self::Failed(message)
            | Self::DeadlineExceeded(message)
            | Self::Cancelled(message) => Some(message),
            Self::VisibilityExpansion { .. }
            | Self::Stopped
            | Self::NeedsApproval
            | Self::BudgetExhausted
            | Self::Waits => None,
        }
    }
}
