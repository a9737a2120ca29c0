//! Errors of execution state.

use crate::id::CallId;
use crate::session::{BoxError, SessionError, SnapshotMismatchError};

/// Execution state could not be captured or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionStateError {
    /// The session could not be captured.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A resource could not be captured.
    #[error("the resource {resource:?} could not be captured")]
    Snapshot {
        /// The resource's stored name.
        resource: String,
        /// Error of the resource.
        #[source]
        source: BoxError,
    },
    /// A snapshot does not fit the state. Nothing was changed.
    #[error(transparent)]
    Mismatch(#[from] SnapshotMismatchError),
    /// A resource refused a snapshot before anything was changed.
    #[error("the resource {resource:?} cannot be restored")]
    Unprepared {
        /// The resource's stored name.
        resource: String,
        /// Error of the resource.
        #[source]
        source: BoxError,
    },
    /// A snapshot holds the state of a resource that does not exist. Nothing was changed.
    #[error("there is no resource {resource:?} to restore")]
    UnknownResource {
        /// The resource's stored name.
        resource: String,
    },
    /// A restore failed half-way. The state is partly restored.
    #[error(transparent)]
    RestoreFailed(#[from] RestoreFailedError),
    /// There is no checkpoint of the call.
    #[error("there is no checkpoint of call {call}")]
    NoCheckpoint {
        /// The call.
        call: CallId,
    },
    /// The call failed, so there is no state after it.
    #[error("call {call} failed, so there is no state after it")]
    NoPostSnapshot {
        /// The call.
        call: CallId,
    },
    /// An earlier restore failed, so this state cannot be used any more.
    #[error("an earlier restore could not be completed; open the session again")]
    Poisoned,
}

/// A restore could not be completed.
#[derive(Debug, thiserror::Error)]
#[error("the resource {resource:?} could not be restored, after others were")]
pub struct RestoreFailedError {
    /// The resource's stored name.
    pub resource: String,
    /// Error of the resource.
    #[source]
    pub source: BoxError,
}
