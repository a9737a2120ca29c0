//! What does not fit when a journal is folded.

use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{Position, Record, SequenceError};
use crate::session::{SessionError, SnapshotRestoreError};

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
    /// A fork goes on from a place in another journal, so it needs the view of that one up to there.
    #[error("the session is a fork of {session} at {position} and needs its journal up to there")]
    NeedsParent {
        /// The other session.
        session: SessionId,
        /// The place of the fork.
        position: Position,
    },
    /// The session goes on from nothing, and so not from what was given.
    #[error("the session is no fork, so it does not go on from another journal")]
    NotAFork,
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
    /// An evaluation starts once.
    #[error("evaluation {evaluation} started before")]
    AlreadyStarted {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// An evaluation ends once.
    #[error("evaluation {evaluation} ended before")]
    AlreadyFinished {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// It is about a request that was not the last to start in its evaluation.
    #[error("the last request of evaluation {evaluation} is not that of turn {turn}")]
    UnknownRequest {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The turn.
        turn: u64,
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

impl FoldError {
    pub(super) fn at(record: &Record, problem: impl Into<FoldProblem>) -> Self {
        Self { position: record.position, problem: problem.into() }
    }
}
