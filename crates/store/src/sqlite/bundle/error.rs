//! Errors of moving sessions.

use std::path::PathBuf;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::StoreError;

use crate::sqlite::error::{Failure, OpenError};
use crate::sqlite::verify::chain_of;

/// A session could not be moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The file is a store, but no bundle.
    #[error("{} is no bundle", path.display())]
    NotABundle {
        /// Path of the file.
        path: PathBuf,
    },
    /// The bundle is damaged, incomplete or was not written by a program of Backstitch. Nothing of it was
    /// imported.
    #[error("the bundle is invalid: {reason}")]
    Invalid {
        /// Description of the problem.
        reason: String,
    },
    /// The bundle would take more space than its size can account for, or than a limit allows.
    #[error("the bundle is invalid: {what} has {found}, but at most {limit} are accepted")]
    Excessive {
        /// Description of the content.
        what: String,
        /// The size or number, with its unit.
        found: String,
        /// The limit in the same unit.
        limit: u64,
    },
    /// The session is the sub-agent of a call, and is moved with its parent.
    #[error("session {session} is a sub-agent of session {parent}, and is moved together with it")]
    SubAgent {
        /// The session.
        session: SessionId,
        /// The session whose call it belongs to.
        parent: SessionId,
    },
    /// The store has a session with the same id and another journal.
    #[error("session {session} has other records in this store from position {position} on")]
    Conflict {
        /// The session.
        session: SessionId,
        /// The first position at which the journals differ.
        position: Position,
    },
    /// A file could not be opened or created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BundleError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotABundle { .. } | Self::Invalid { .. } | Self::Excessive { .. } => {
                ErrorCode::BundleInvalid
            }
            Self::SubAgent { .. } => ErrorCode::SubAgent,
            Self::Conflict { .. } => ErrorCode::SessionConflict,
            Self::Open(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }

    /// Reports an error about the content of a bundle as one of the bundle.
    pub(super) fn of_bundle(self) -> Self {
        match self {
            Self::Store(error) => Self::invalid(chain_of(&error)),
            other => other,
        }
    }
}

impl From<Failure> for BundleError {
    fn from(Failure(error): Failure) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for BundleError {
    fn from(error: rusqlite::Error) -> Self {
        Failure::from(error).into()
    }
}
