//! Errors about trust.

use std::io;
use std::path::PathBuf;

use backstitch::code::ErrorCode;
use backstitch::stores::StoresError;

/// Trust cannot be read or recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("trust cannot be recorded in {}", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is damaged, so nothing is trusted: remove it", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("{} is not used, so nothing is trusted: {remedy}", path.display())]
    Exposed { path: PathBuf, remedy: String },
    #[error("trust cannot be recorded")]
    NoDirectory(#[source] StoresError),
    #[error("the answer cannot be read")]
    NoAnswer(#[source] io::Error),
    #[error("{message}")]
    Refused {
        message: String,
        /// What the user can do.
        hint: String,
    },
}

impl TrustError {
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::NoAnswer(_) => ErrorCode::Io,
            Self::Damaged { .. } | Self::Exposed { .. } | Self::Refused { .. } => ErrorCode::NotTrusted,
            Self::NoDirectory(error) => error.code(),
        }
    }

    /// The commands that help.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } => Some(hint),
            _ => None,
        }
    }
}
