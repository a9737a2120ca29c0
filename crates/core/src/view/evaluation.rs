//! Evaluations with their requests, and the status of a session.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::FoldProblem;
use super::recorded::JournalEntry;
use crate::budget::Limits;
use crate::id::EvaluationId;
use crate::journal::{
    EvaluationFinished, EvaluationOutcome, EvaluationResumed, EvaluationStarted, PauseReason, Point,
    ProgramStarted, RequestFailed, RequestFinished, RequestStarted, TaskFinished, TurnFinished,
};
use crate::message::PolicyName;

/// An evaluation of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Namespace of the prompt.
    pub prompt_ns: String,
    /// Key of the prompt.
    pub prompt_key: String,
    /// Position of its first record.
    pub started: Point,
    /// Its start record. An evaluation that was loaded from a snapshot has none.
    pub start: Option<Arc<EvaluationStarted>>,
    /// The policy that decides; none in journals that do not name it.
    pub decider: Option<PolicyName>,
    /// Its start record in another session, if it was adopted with a snapshot or a conversation.
    pub adopted_start: Option<Arc<EvaluationStarted>>,
    /// Spending limits.
    pub budget: Option<Limits>,
    /// Limit of active time, compared with `active`.
    pub allotted: Option<Duration>,
    /// Time during which it was driven, since its limit was last set.
    pub active: Duration,
    /// Number of responses.
    pub turns: u64,
    /// The turn whose answer reached its token limit and was accepted by a decision.
    pub accepted: Option<u64>,
    /// Number of messages.
    pub messages: u64,
    /// The request that was started after the last response, if there is one.
    pub open_request: Option<Arc<RequestStarted>>,
    /// The requests to its policy, in order.
    pub requests: imbl::Vector<Arc<Request>>,
    /// The programs that were started, of an agent that answers with programs.
    pub programs: imbl::Vector<Arc<ProgramStarted>>,
    /// The finished tasks of its programs.
    pub tasks: imbl::Vector<Arc<TaskFinished>>,
    /// The finished turns of its programs.
    pub finished_turns: imbl::Vector<Arc<TurnFinished>>,
    /// Record of its end.
    pub finished: Option<JournalEntry<EvaluationFinished>>,
    /// Index of its first message in the transcript.
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

    /// Returns the remaining active time; `None` without a limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.allotted.map(|allotted| allotted.saturating_sub(self.active))
    }

    /// Returns the first start record, from here or elsewhere; `None` if there is none.
    pub fn started_with(&self) -> Option<&Arc<EvaluationStarted>> {
        self.adopted_start.as_ref().or(self.start.as_ref())
    }

    pub(super) fn begin(&mut self, started: &Arc<EvaluationStarted>) {
        self.decider = started.decider.clone();
        self.budget = started.budget;
        self.allotted = started.deadline_millis.map(Duration::from_millis);
        self.start = Some(started.clone());
    }

    pub(super) fn resume(&mut self, resumed: &EvaluationResumed) {
        self.decider = resumed.decider.clone().or(self.decider.take());
        self.budget = resumed.budget.or(self.budget);
        if let Some(millis) = resumed.deadline_millis {
            (self.allotted, self.active) = (Some(Duration::from_millis(millis)), Duration::ZERO);
        }
    }

    /// Returns the latest request of a turn.
    pub(super) fn edit_request(&mut self, turn: u64) -> Result<&mut Request, FoldProblem> {
        let unknown = FoldProblem::UnknownRequest { evaluation: self.evaluation_id, turn };
        let last = self.requests.back_mut().filter(|request| request.started.record.turn == turn);
        last.map(Arc::make_mut).ok_or(unknown)
    }

    /// Returns the number of requests whose cost is not known.
    pub fn unpriced_requests(&self) -> u64 {
        self.requests.iter().filter(|request| request.is_unpriced()).count() as u64
    }

    /// Returns the kind of its end; `None` while it is open.
    pub fn outcome(&self) -> Option<EvaluationOutcome> {
        self.finished.as_ref().map(|finished| finished.record.outcome)
    }
}

/// Status of a session. It depends on pauses and on the latest evaluation, which is the one that a resume
/// continues.
///
/// ```
/// use backstitch_core::journal::PauseReason;
/// use backstitch_core::view::SessionStatus;
///
/// fn next_step(status: SessionStatus) -> &'static str {
///     match status {
///         SessionStatus::Running => "follow its events",
///         SessionStatus::Paused { reason: PauseReason::Approval } => "approve or deny",
///         SessionStatus::Paused { .. } | SessionStatus::Interrupted | SessionStatus::New => "resume",
///         SessionStatus::Idle => "ask",
///         SessionStatus::Poisoned => "repair the files",
///     }
/// }
/// assert_eq!(next_step(SessionStatus::Idle), "ask");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SessionStatus {
    /// A process drives the session.
    Running,
    /// The session waits for a decision.
    Paused {
        /// Reason for the pause.
        reason: PauseReason,
    },
    /// An evaluation has not ended, and no process drives it.
    Interrupted,
    /// The session is a fork with an evaluation to continue, and nobody has driven it yet.
    New,
    /// The latest evaluation has ended, or there is none.
    Idle,
    /// The files could not be restored.
    Poisoned,
}

/// Whether a process drives the session, which a journal cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverPresence {
    /// A process drives it.
    Present,
    /// No process drives it.
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

/// A request to a policy: its start, the attempts that failed, and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Record of its start.
    pub started: JournalEntry<RequestStarted>,
    /// The attempts that failed, in order.
    pub failures: Vec<JournalEntry<RequestFailed>>,
    /// The answer. Absent for a request that is open, was abandoned or interrupted, and in journals that do
    /// not record it.
    pub finished: Option<JournalEntry<RequestFinished>>,
}

impl Request {
    pub(super) fn new(started: JournalEntry<RequestStarted>) -> Self {
        Self { started, failures: Vec::new(), finished: None }
    }

    /// Returns the number of attempts whose end is recorded.
    pub fn attempts(&self) -> u32 {
        let failed = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
        self.finished.as_ref().map_or(failed, |finished| finished.record.attempt)
    }

    /// Whether it has tokens and no cost, because the price of its model is not known, or zero.
    pub fn is_unpriced(&self) -> bool {
        let usage = self.finished.as_ref().map(|finished| finished.record.usage).unwrap_or_default();
        usage.money_micros == 0 && usage.total_tokens() > 0
    }

    /// Returns the last failed attempt.
    pub fn last_failure(&self) -> Option<&RequestFailed> {
        self.failures.last().map(|failure| &*failure.record)
    }
}
