//! Evaluations, and where a session stands.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::FoldProblem;
use super::recorded::JournalEntry;
use super::request::Request;
use crate::budget::Limits;
use crate::id::EvaluationId;
use crate::journal::{
    EvaluationFinished, EvaluationOutcome, EvaluationResumed, EvaluationStarted, PauseReason, Point,
    ProgramStarted, RequestStarted, TaskFinished, TurnFinished,
};
use crate::message::PolicyName;

/// An evaluation of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The namespace of the prompt.
    pub prompt_ns: String,
    /// The key of the prompt.
    pub prompt_key: String,
    /// Where its first record stands.
    pub started: Point,
    /// How it was started. An evaluation that was loaded from a snapshot has no such record.
    pub start: Option<Arc<EvaluationStarted>>,
    /// The policy that decides; none in journals that do not say.
    pub decider: Option<PolicyName>,
    /// How it was started elsewhere, when it was adopted with a snapshot or a conversation.
    pub adopted_start: Option<Arc<EvaluationStarted>>,
    /// What it may spend.
    pub budget: Option<Limits>,
    /// How much active time it has from `active` on.
    pub allotted: Option<Duration>,
    /// How much time has passed while it was driven, since it was last given some.
    pub active: Duration,
    /// How many responses it has had.
    pub turns: u64,
    /// The turn whose answer reached its token limit and was taken as it is, if somebody decided so.
    pub accepted: Option<u64>,
    /// How many messages it has.
    pub messages: u64,
    /// The request that was started after the last response, if one was.
    pub open_request: Option<Arc<RequestStarted>>,
    /// The requests to its policy, in order.
    pub requests: imbl::Vector<Arc<Request>>,
    /// The programs that were started, of an agent that answers with programs.
    pub programs: imbl::Vector<Arc<ProgramStarted>>,
    /// The tasks that its programs have done.
    pub tasks: imbl::Vector<Arc<TaskFinished>>,
    /// The turns of its programs that have ended.
    pub finished_turns: imbl::Vector<Arc<TurnFinished>>,
    /// Where and how it ended.
    pub finished: Option<JournalEntry<EvaluationFinished>>,
    /// Where its first message stands in the transcript.
    pub(super) first_message: usize,
}

impl Evaluation {
    pub(super) fn new(evaluation_id: EvaluationId, ns: &str, key: &str, started: Point) -> Self {
        Self {
            evaluation_id,
            prompt_ns: ns.to_owned(),
            prompt_key: key.to_owned(),
            started,
            start: None,
            decider: None,
            adopted_start: None,
            budget: None,
            allotted: None,
            active: Duration::ZERO,
            turns: 0,
            accepted: None,
            messages: 0,
            open_request: None,
            requests: imbl::Vector::new(),
            programs: imbl::Vector::new(),
            tasks: imbl::Vector::new(),
            finished_turns: imbl::Vector::new(),
            finished: None,
            first_message: 0,
        }
    }

    /// How much active time it has left; `None` when it has all the time.
    pub fn time_left(&self) -> Option<Duration> {
        self.allotted.map(|allotted| allotted.saturating_sub(self.active))
    }

    /// How it was first started, here or elsewhere; `None` when nobody recorded it.
    pub fn started_with(&self) -> Option<&Arc<EvaluationStarted>> {
        self.adopted_start.as_ref().or(self.start.as_ref())
    }

    pub(super) fn begin(&mut self, started: &Arc<EvaluationStarted>) {
        self.decider = started.decider.clone();
        self.budget = started.budget;
        self.allotted = started.deadline_millis.map(Duration::from_millis);
        self.start = Some(started.clone());
    }

    pub(super) fn go_on(&mut self, resumed: &EvaluationResumed) {
        self.decider = resumed.decider.clone().or(self.decider.take());
        self.budget = resumed.budget.or(self.budget);
        if let Some(millis) = resumed.deadline_millis {
            (self.allotted, self.active) = (Some(Duration::from_millis(millis)), Duration::ZERO);
        }
    }

    /// The request of a turn that was started last.
    pub(super) fn edit_request(&mut self, turn: u64) -> Result<&mut Request, FoldProblem> {
        let unknown = FoldProblem::UnknownRequest { evaluation: self.evaluation_id, turn };
        let last = self.requests.back_mut().filter(|request| request.started.record.turn == turn);
        last.map(Arc::make_mut).ok_or(unknown)
    }

    /// How it ended; `None` while it has not.
    pub fn outcome(&self) -> Option<EvaluationOutcome> {
        self.finished.as_ref().map(|finished| finished.record.outcome)
    }
}

/// What a session is doing. It depends on what it waits for and on its latest evaluation, which is what a resume goes on with.
///
/// ```
/// use backstitch_core::journal::PauseReason;
/// use backstitch_core::view::SessionStatus;
///
/// fn next_step(status: SessionStatus) -> &'static str {
///     match status {
///         SessionStatus::Running => "follow its events",
///         SessionStatus::Paused { reason: PauseReason::Approval } => "approve or deny",
///         SessionStatus::Paused { .. } | SessionStatus::Interrupted => "resume",
///         SessionStatus::Idle => "ask",
///         SessionStatus::Poisoned => "repair the files",
///     }
/// }
/// assert_eq!(next_step(SessionStatus::Idle), "ask");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SessionStatus {
    /// Someone drives it.
    Running,
    /// It waits for a decision.
    Paused {
        /// Which one.
        reason: PauseReason,
    },
    /// An evaluation has not ended, and nobody drives it.
    Interrupted,
    /// There is nothing to do.
    Idle,
    /// Its files could not be put back.
    Poisoned,
}

/// Whether someone holds the session, which no journal can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverPresence {
    /// A process drives it.
    Present,
    /// Nobody does.
    Absent,
}

impl SessionStatus {
    pub(super) fn of(
        pause: Option<PauseReason>,
        latest: Option<&Evaluation>,
        driver: DriverPresence,
    ) -> Self {
        match (pause, latest) {
            (Some(PauseReason::Poisoned), _) => Self::Poisoned,
            (Some(reason), _) => Self::Paused { reason },
            (None, Some(latest)) if latest.finished.is_none() => match driver {
                DriverPresence::Present => Self::Running,
                DriverPresence::Absent => Self::Interrupted,
            },
            (None, _) => Self::Idle,
        }
    }
}
