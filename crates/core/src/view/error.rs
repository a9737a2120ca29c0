//! Errors of folding a journal.

use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{Position, Record, SequenceError};
use crate::session::{SessionError, SnapshotRestoreError};

/// A record does not fit the ones before it.
#[derive(Debug, thiserror::Error)]
#[error("the record at position {position} does not fit the journal before it")]
pub struct FoldError {
    /// Position of the record.
    pub position: Position,
    /// Reason why it does not fit.
    #[source]
    pub problem: FoldProblem,
}

/// Reason why a record does not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldProblem {
    /// Records are missing before this one.
    #[error("the record expected here is that of position {expected}")]
    Gap {
        /// Next position of the journal.
        expected: Position,
    },
    /// A journal has to begin with the creation of its session.
    #[error("a journal begins with session_created and has it nowhere else")]
    Beginning,
    /// A rewind goes to a cut that does not exist yet, or to before the session existed.
    #[error("there is no cut {to} to rewind to")]
    NoSuchCut {
        /// Target of the rewind.
        to: Position,
    },
    /// A rewind needs the view of the journal up to the cut.
    #[error("a rewind to {to} needs the journal up to there")]
    NeedsPrefix {
        /// Target of the rewind.
        to: Position,
    },
    /// A fork shares the records of another journal, so it needs the view of that journal at the fork.
    #[error("the session is a fork of {session} at {position} and needs its journal up to there")]
    NeedsParent {
        /// The forked session.
        session: SessionId,
        /// Position of the fork.
        position: Position,
    },
    /// A parent's journal was passed for a session that is not a fork.
    #[error("the session is not a fork, so it has no parent journal")]
    NotAFork,
    /// A message is out of place.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// A slice cannot change in this way.
    #[error(transparent)]
    Slice(#[from] SessionError),
    /// The initial state cannot be read.
    #[error(transparent)]
    InitialState(#[from] SnapshotRestoreError),
    /// The record belongs to an evaluation that never started.
    #[error("evaluation {evaluation} never started")]
    UnknownEvaluation {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// An evaluation is started twice.
    #[error("evaluation {evaluation} started before")]
    AlreadyStarted {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// An evaluation is ended twice.
    #[error("evaluation {evaluation} ended before")]
    AlreadyFinished {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// The record belongs to a request that is not the latest of its evaluation.
    #[error("the last request of evaluation {evaluation} is not that of turn {turn}")]
    UnknownRequest {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The turn.
        turn: u64,
    },
    /// The record belongs to a call that never started.
    #[error("call {call} never started")]
    UnknownCall {
        /// The call.
        call: CallId,
    },
    /// The transcript was changed by another record than a message.
    #[error("the transcript grows by message_appended only")]
    TranscriptChanged,
}

impl FoldError {
    pub(super) fn at(record: &Record, problem: impl Into<FoldProblem>) -> Self {
        Self { position: record.position, problem: problem.into() }
    }
}
