//! Why a call of a caller outside has no result.

use crate::error::RuntimeError;

/// Why a call of a caller outside has no result. None of these changes anything.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutsideError {
    /// Another call has the same id.
    #[error("the call id {id:?} was used before, for another tool or with other arguments; nothing was run")]
    Reused {
        /// The caller's id.
        id: String,
    },
    /// The call was made before, and a rewind has undone it.
    #[error("call {id:?} was made before and undone by a rewind; it is not run again under the same id")]
    Undone {
        /// The caller's id.
        id: String,
    },
    /// A change of history was begun under this id, and it is not known whether it was completed.
    #[error(
        "call {id:?} was interrupted before its result was recorded; look at the log before you repeat it under another id"
    )]
    Interrupted {
        /// The caller's id.
        id: String,
    },
    /// A change of history was requested while calls run.
    #[error("{count} calls are running; history cannot change until they have ended")]
    Busy {
        /// The number of calls that run.
        count: usize,
    },
    /// No more calls are accepted.
    #[error("the session is being closed")]
    Closed,
    /// The runtime failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}
