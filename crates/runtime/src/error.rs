//! What can go wrong while a session is driven.

use backstitch_core::execution::ExecutionStateError;
use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::ports::{StoreError, WorkspaceError};
use backstitch_core::session::SessionError;
use backstitch_core::view::FoldError;

/// A session could not be opened or driven on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
    /// Someone else drives the session now. Nothing more of ours is written.
    #[error("session {session} was taken over; nothing more is written here")]
    LeaseLost {
        /// The session.
        session: SessionId,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// The journal does not make sense.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The session refused a change.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Execution state could not be captured or put back.
    #[error(transparent)]
    State(#[from] ExecutionStateError),
    /// Files could not be captured.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Files could not be put back, or a stopped call does not end: nothing goes on until a person has looked.
    #[error("session {session} is poisoned: {reason}")]
    Poisoned {
        /// The session.
        session: SessionId,
        /// What happened.
        reason: String,
    },
    /// There is no such evaluation.
    #[error("there is no evaluation {evaluation}")]
    NoEvaluation {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// A task of the runtime was cut off, because the async runtime shuts down.
    #[error("the async runtime is shutting down")]
    ShuttingDown,
}
