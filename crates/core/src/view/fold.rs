//! The fold: from records to everything that is derived from them.
//!
//! [`JournalView`] can be folded from a whole journal or grown record by record, with the same result. What a rewind cuts
//! (state, transcript, evaluations, calls, a pause) is kept apart from what it does not (logs, the ledger, the lineage).
//! Whatever does not fit, a gap, a second beginning, a message out of place, is an error: a journal is never folded with
//! holes in it.

use std::sync::Arc;

use super::call::{Call, CallStatus, Checkpoint};
use super::evaluation::{Driver, Evaluation, SessionStatus};
use super::ledger::Ledger;
use super::lineage::Lineage;
use super::transcript::Transcript;
use super::visible::Visible;
use crate::digest::Digest;
use crate::id::{CallId, EvaluationId, IdStream, SessionId};
use crate::journal::{
    InnerMessage, Paused, Position, Record, RecordBody, SequenceError, SessionCreated, inner_message_append,
};
use crate::session::{Capture, Session, SessionError, SessionInfo, SlicePolicy, SnapshotRestoreError};
use crate::time::Clock;

/// Everything that follows from the records of a journal.
#[derive(Debug, Clone)]
pub struct JournalView {
    created: Arc<SessionCreated>,
    head: Position,
    lineage: Lineage,
    ledger: Ledger,
    visible: Visible,
}

/// A record does not fit the ones before it.
#[derive(Debug, thiserror::Error)]
#[error("the record at position {position} does not fit the journal before it")]
pub struct FoldError {
    /// The record's place.
    pub position: Position,
    /// What does not fit.
    #[source]
    pub problem: FoldProblem,
}

/// What does not fit about a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldProblem {
    /// Records are missing before it.
    #[error("the record expected here is that of position {expected}")]
    Gap {
        /// The place that is next.
        expected: Position,
    },
    /// A journal has to begin with the creation of its session.
    #[error("a journal begins with session_created and has it nowhere else")]
    Beginning,
    /// It goes back to a place that does not exist yet, or to before the session existed.
    #[error("there is no cut {to} to go back to")]
    NoSuchCut {
        /// The cut.
        to: Position,
    },
    /// Going back needs the view of the journal up to the cut.
    #[error("going back to {to} needs the journal up to there")]
    NeedsPrefix {
        /// The cut.
        to: Position,
    },
    /// A message is out of place.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// A slice cannot change like that.
    #[error(transparent)]
    Slice(#[from] SessionError),
    /// The initial state cannot be read.
    #[error(transparent)]
    InitialState(#[from] SnapshotRestoreError),
    /// It is about an evaluation that never started.
    #[error("evaluation {evaluation} never started")]
    UnknownEvaluation {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// It is about a call that never started.
    #[error("call {call} never started")]
    UnknownCall {
        /// The call.
        call: CallId,
    },
    /// The transcript grows by messages only.
    #[error("the transcript grows by message_appended only")]
    TranscriptChanged,
}

impl JournalView {
    /// Folds a whole journal, or any prefix of one.
    pub fn fold(records: &[Record]) -> Result<Self, FoldError> {
        Self::fold_from(None, records)
    }

    /// Folds the journal of a fork, whose parent's view at the place of the fork is `base`.
    pub fn fold_fork(base: &Self, records: &[Record]) -> Result<Self, FoldError> {
        Self::fold_from(Some(base), records)
    }

    fn fold_from(base: Option<&Self>, records: &[Record]) -> Result<Self, FoldError> {
        let (first, rest) = records.split_first().ok_or_else(|| beginning(Position::START))?;
        let mut view = Self::begin(base, first)?;
        // What the head shows is known before anything is folded, so that rewinds cost nothing.
        let mut lineage = Lineage::default();
        for record in rest {
            if let RecordBody::Rewound(rewound) = &record.body {
                lineage.add(record.position, rewound.to);
            }
        }
        let ranges = lineage.visible(first.position.after(records.len()));
        let mut ranges = ranges.iter().peekable();
        for record in rest {
            while ranges.next_if(|range| range.end <= record.position).is_some() {}
            let is_visible = ranges.peek().is_some_and(|range| range.contains(&record.position));
            view.take_in(record, is_visible).map_err(|problem| at(record, problem))?;
        }
        Ok(view)
    }

    /// The view of a journal that has only its first record. For a fork, `base` is its parent's view at the place of the fork.
    pub fn begin(base: Option<&Self>, record: &Record) -> Result<Self, FoldError> {
        let RecordBody::SessionCreated(created) = &record.body else {
            return Err(beginning(record.position));
        };
        if record.position != Position::START {
            return Err(at(record, FoldProblem::Gap { expected: Position::START }));
        }
        let mut visible = base.map(|base| base.visible.clone()).unwrap_or_default();
        visible.load(&created.state).map_err(|problem| at(record, problem))?;
        Ok(Self {
            created: Arc::new(SessionCreated::clone(created)),
            head: Position::START.next(),
            lineage: Lineage::default(),
            ledger: Ledger::default(),
            visible,
        })
    }

    /// Takes in the next record. A rewind needs [`Self::rewind`] instead. After an error the view is as before.
    pub fn apply(&mut self, record: &Record) -> Result<(), FoldError> {
        if let RecordBody::Rewound(rewound) = &record.body {
            return Err(at(record, FoldProblem::NeedsPrefix { to: rewound.to }));
        }
        self.take_in(record, true).map_err(|problem| at(record, problem))
    }

    /// Takes in a rewind, given the view of the journal up to its cut.
    pub fn rewind(&mut self, record: &Record, prefix: &Self) -> Result<(), FoldError> {
        let RecordBody::Rewound(rewound) = &record.body else { return self.apply(record) };
        if prefix.head != rewound.to || prefix.session_id() != self.session_id() {
            return Err(at(record, FoldProblem::NeedsPrefix { to: rewound.to }));
        }
        self.take_in(record, false).map_err(|problem| at(record, problem))?;
        self.visible = self.visible.rewound_to(&prefix.visible);
        Ok(())
    }

    fn take_in(&mut self, record: &Record, is_visible: bool) -> Result<(), FoldProblem> {
        if record.position != self.head {
            return Err(FoldProblem::Gap { expected: self.head });
        }
        if is_visible {
            self.visible.take_in(record)?;
        } else if let RecordBody::SliceChanged(change) = &record.body
            && change.policy == SlicePolicy::Log
        {
            self.visible.state.apply_stored(change)?;
        }
        match &record.body {
            RecordBody::SessionCreated(_) => return Err(FoldProblem::Beginning),
            RecordBody::RequestStarted(request) => self.ledger.reserve(None, request.reservation),
            RecordBody::CallStarted(call) => self.ledger.reserve(Some(call.call_id), call.reservation),
            RecordBody::CallFinished(call) => self.ledger.release(call.call_id),
            RecordBody::BudgetCharged(charge) => self.ledger.charge(charge),
            RecordBody::Rewound(rewound) => {
                if rewound.to == Position::START || rewound.to > record.position {
                    return Err(FoldProblem::NoSuchCut { to: rewound.to });
                }
                self.lineage.add(record.position, rewound.to);
            }
            _ => {}
        }
        self.head = self.head.next();
        Ok(())
    }

    /// The first record.
    pub fn created(&self) -> &SessionCreated {
        &self.created
    }

    /// The session.
    pub fn session_id(&self) -> SessionId {
        self.created.session_id
    }

    /// The place of the next record.
    pub fn head(&self) -> Position {
        self.head
    }

    /// The rewinds, and what is visible where.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// What was spent.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A live session with the state of the journal's head. Its ids continue from there.
    pub fn session(&self, clock: Arc<dyn Clock>) -> Session {
        let info = SessionInfo {
            id: self.created.session_id,
            created_at: self.created.created_at,
            tags: self.created.tags.clone(),
            parent: self.created.origin.parent(),
            children: Vec::new(),
        };
        let ids = IdStream::new(info.id, self.head.number(), clock);
        let mut session = Session::with_state(info, ids, self.visible.state.clone());
        session.register::<InnerMessage, InnerMessage>(inner_message_append);
        session
    }

    /// The transcript.
    pub fn transcript(&self) -> Result<Transcript, SessionError> {
        self.visible.state.items().map(Transcript::new)
    }

    /// The evaluations, in the order in which they started.
    pub fn evaluations(&self) -> impl DoubleEndedIterator<Item = &Evaluation> {
        self.visible.evaluations.iter().map(|evaluation| &**evaluation)
    }

    /// The evaluation that started last.
    pub fn latest_evaluation(&self) -> Option<&Evaluation> {
        self.evaluations().next_back()
    }

    /// One evaluation.
    pub fn evaluation(&self, evaluation: EvaluationId) -> Option<&Evaluation> {
        self.evaluations().find(|one| one.evaluation_id == evaluation)
    }

    /// The calls, in the order in which they were made.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.visible.calls.iter().map(|call| &**call)
    }

    /// One call.
    pub fn call(&self, call: CallId) -> Option<&Call> {
        self.visible.call(call)
    }

    /// The calls without a result, in the order in which they were made.
    pub fn pending_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls().filter(|call| call.status() == CallStatus::Pending)
    }

    /// The boundaries of all calls that were started, in order.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let mut checkpoints: Vec<_> = self.calls().filter_map(Call::checkpoint).collect();
        checkpoints.sort_by_key(|checkpoint| checkpoint.before.position);
        checkpoints
    }

    /// What the session waits for, if it waits.
    pub fn pause(&self) -> Option<&Paused> {
        self.visible.pause.as_deref()
    }

    /// What the session is doing, given whether someone drives it.
    pub fn status(&self, driver: Driver) -> SessionStatus {
        SessionStatus::of(self.pause().map(|pause| pause.reason), self.latest_evaluation(), driver)
    }

    /// A digest of all slices, whatever their policy.
    pub fn content_digest(&self, clock: Arc<dyn Clock>) -> Result<Digest, SessionError> {
        self.session(clock).snapshot_with(Capture::include_all()).content_digest()
    }
}

fn at(record: &Record, problem: FoldProblem) -> FoldError {
    FoldError { position: record.position, problem }
}

fn beginning(position: Position) -> FoldError {
    FoldError { position, problem: FoldProblem::Beginning }
}
