//! Requests to the runner, and their outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{IdempotencyKey, InnerMessage, WorkspaceRevision};
use backstitch_core::message::Arguments;
use backstitch_core::ports::GuardMode;
use tokio_util::sync::CancellationToken;

use super::shares::TurnShares;
use crate::agent::ResumeOptions;
use crate::live::Durable;

/// A request to run a call.
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
    /// The arguments, as the model wrote them or as they were edited since.
    pub arguments: Arguments,
    /// Whether the arguments differ from those of the call's message, so that the intent has to have them.
    pub edited: bool,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Whether a crash interrupted an earlier attempt.
    pub is_resume: bool,
    /// Whether a person has approved the call.
    pub approved: bool,
    /// Why a person denied the call.
    pub refusal: Option<String>,
    /// The key of a discarded call whose effect it must not repeat.
    pub(crate) key: Option<IdempotencyKey>,
    /// The child session to resume.
    pub(crate) continued: Option<ResumedChild>,
    pub(crate) resume: ResumeOptions,
    /// The shares of the calls of the turn in the rest of the budget.
    pub(crate) shares: Arc<TurnShares>,
    /// Stops the call. By default the token of its runner does.
    pub(crate) cancel: Option<CancellationToken>,
    /// The number of calls of the turn that have not ended, including this one. If set, the last call may be
    /// durable with the next commit.
    pub(crate) unfinished: Option<Arc<AtomicUsize>>,
}

impl CallRequest {
    /// Creates the first attempt of a call that is not approved yet.
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
            key: None,
            continued: None,
            resume: ResumeOptions::default(),
            shares: Arc::default(),
            cancel: None,
            unfinished: None,
        }
    }

    /// Returns when its outcome has to be durable. That of the last call of a turn may wait for the next
    /// commit, since no action comes between them. Called once per call.
    pub(super) fn durable(&self) -> Durable {
        match &self.unfinished {
            Some(unfinished) if unfinished.fetch_sub(1, Ordering::SeqCst) == 1 => Durable::WithNext,
            _ => Durable::Now,
        }
    }

    /// Returns what happens if the call changes what git executes.
    pub(super) fn guard_mode(&self) -> GuardMode {
        if self.approved { GuardMode::Keep } else { GuardMode::Restore }
    }

    /// Sets the turn and the step that its result belongs to.
    #[must_use]
    pub fn in_turn(mut self, turn: u64, step_num: Option<u64>) -> Self {
        self.turn = turn;
        self.step_num = step_num;
        self
    }
}

/// A child session that is resumed after a pause or a crash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumedChild {
    pub(crate) session: SessionId,
    /// The files before the call. The child session may have changed them since.
    pub(crate) before: Option<WorkspaceRevision>,
}

/// The outcome of a call.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// It succeeded, and its changes are committed. This is its result.
    Succeeded(Arc<InnerMessage>),
    /// It failed, and its changes are rolled back. This is the error for the model.
    Failed(Arc<InnerMessage>),
    /// Sections of the prompt have to be opened first. The call counts as never made.
    VisibilityExpansion {
        /// The sections.
        sections: Vec<String>,
        /// The reason that the tool gave.
        reason: String,
    },
    /// The evaluation's deadline has passed. The call is rolled back, and the evaluation has to end.
    DeadlineExceeded(Arc<InnerMessage>),
    /// It was cancelled. It is rolled back, and the session is paused.
    Cancelled(Arc<InnerMessage>),
    /// It was stopped with its session, which is paused. It is rolled back, and runs again when the session
    /// is resumed.
    Stopped,
    /// A person has to approve it. The session is paused.
    NeedsApproval,
    /// It would exceed the budget. The session is paused.
    BudgetExhausted,
    /// Its child session waits for a decision. This session is paused, and the call continues afterwards.
    Waits,
}

impl CallOutcome {
    /// Returns the message for the model, if there is one.
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
