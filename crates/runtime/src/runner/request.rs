//! Requests to the runner, and their outcomes.
//!
//! Each sub-agent of a turn may spend a share of the budget. The first call of a turn that starts finds out
//! what is left of the budget, and every sub-agent of the turn gets an equal part of that, whether it starts
//! at once or after another one has ended. What a sub-agent does not spend returns to its parent, and not to
//! the sub-agents beside it. The shares of a turn never exceed what is left: a share that was not reserved
//! yet is computed again from what the ledger says at that moment, and can only become smaller.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{ApprovalSubject, IdempotencyKey, InnerMessage, WorkspaceRevision};
use backstitch_core::message::Arguments;
use backstitch_core::ports::GuardMode;
use tokio_util::sync::CancellationToken;

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
    /// What the person approved. If it has changed since, the call does not start, and a person is asked again.
    pub subject: Option<Arc<ApprovalSubject>>,
    /// Why a person denied the call.
    pub refusal: Option<String>,
    /// Whether the call may wait for a time or a signal, because a driver runs it again.
    pub(crate) can_wait: bool,
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
            subject: None,
            refusal: None,
            can_wait: false,
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
    pub fn in_turn(self, turn: u64, step_num: Option<u64>) -> Self {
        Self { turn, step_num, ..self }
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
    /// It waits for a time or a signal, or its child session waits. This session is paused, and the call continues afterwards.
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

/// The calls of a turn that have not started, and the share of each sub-agent among them.
#[derive(Debug, Default)]
pub(crate) struct TurnShares(Mutex<UnstartedCalls>);

#[derive(Debug, Default)]
struct UnstartedCalls {
    calls: Vec<CallId>,
    /// Those of the calls that sub-agents answer.
    agents: Vec<CallId>,
    /// The first share of the turn. Later ones are not larger.
    first: Option<Limits>,
}

impl TurnShares {
    /// Creates the shares of a turn with these calls, of which `agents` are answered by sub-agents.
    pub(crate) fn new(calls: Vec<CallId>, agents: Vec<CallId>) -> Self {
        Self(Mutex::new(UnstartedCalls { calls, agents, first: None }))
    }

    /// Returns the share of a call that starts now. `committed` returns what is spent or reserved for others than the
    /// given calls, which may have reservations from before an interruption.
    pub(super) fn take(
        &self,
        call: CallId,
        limits: Limits,
        committed: impl FnOnce(&[CallId]) -> Amounts,
    ) -> Limits {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !turn.calls.contains(&call) {
            turn.calls.push(call);
        }
        // Each call that has not started costs at least itself.
        let themselves = Amounts { calls: turn.calls.len() as u64, ..Amounts::ZERO };
        let left = limits.left_after(committed(&turn.calls).plus(themselves));
        let share = left.share(turn.agents.len() as u64);
        let share = turn.first.map_or(share, |first| share.within(&first));
        turn.first = Some(share);
        turn.calls.retain(|one| *one != call);
        turn.agents.retain(|one| *one != call);
        share
    }
}
