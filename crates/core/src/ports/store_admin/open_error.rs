//! Errors of opening and creating stores, backups and bundles.

use std::path::PathBuf;

use crate::code::ErrorCode;
use crate::ports::store_error::StoreError;

/// A store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer program wrote the store.
    #[error("the store has schema {found}, but this program supports 1 to {known}: use a newer program")]
    Newer {
        /// Schema version of the store.
        found: u32,
        /// Newest version that this program can read.
        known: u32,
    },
    /// The file is not a store.
    #[error("the file is not a Backstitch store")]
    NotAStore,
    /// The checksum of an applied migration differs from that of this program.
    #[error("migration {number} of the store differs from this program's: the store was modified")]
    ChangedMigration {
        /// Number of the migration.
        number: u32,
    },
    /// No file exists at the path.
    #[error("there is no store at {path}")]
    NotFound {
        /// Path that was opened.
        path: PathBuf,
    },
    /// A file exists where a new store was to be written.
    #[error("{path} already exists, and existing files are never overwritten")]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
    },
    /// The store has an older version and was opened read-only, so it cannot be migrated.
    #[error("the store has the older schema {found}: open it for writing once to migrate it to {known}")]
    Older {
        /// Schema version of the store.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// No store of this program has an address of this kind.
    #[error("stores with addresses that begin with `{scheme}` are not available")]
    UnknownAddress {
        /// The beginning of the address. The rest may hold a password, and is not repeated.
        scheme: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// The address of a server cannot be used.
    #[error("the address of the store is not valid: {reason}")]
    InvalidAddress {
        /// What is wrong with it, without the rest of it.
        reason: String,
    },
    /// The file or its directory could not be accessed.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Newer { .. } => ErrorCode::StoreNewer,
            Self::NotAStore | Self::ChangedMigration { .. } => ErrorCode::NotAStore,
            Self::NotFound { .. } => ErrorCode::StoreNotFound,
            Self::Exists { .. } => ErrorCode::AlreadyExists,
            Self::Older { .. } => ErrorCode::StoreOlder,
            Self::UnknownAddress { .. } => ErrorCode::StoreUnsupported,
            Self::InvalidAddress { .. } => ErrorCode::Usage,
            Self::Io { .. } => ErrorCode::Io,
            Self::Store(error) => error.code(),
        }
    }

    /// What to do instead, for something that is not supported.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownAddress { hint, .. } => Some(hint),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}
