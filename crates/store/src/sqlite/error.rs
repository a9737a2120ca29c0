//! Translation of SQLite errors into those of the port.

use std::path::PathBuf;

use backstitch_core::code::ErrorCode as Code;
use backstitch_core::ports::StoreError;
use rusqlite::ErrorCode;

/// A store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer program wrote the file.
    #[error("the store has schema {found}, but this program supports 1 to {known}: use a newer program")]
    Newer {
        /// Schema version of the file.
        found: u32,
        /// Newest version that this program can read.
        known: u32,
    },
    /// The file is no store.
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
        /// Schema version of the file.
        found: u32,
        /// Version that this program reads.
        known: u32,
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
    /// SQLite or the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Newer { .. } => Code::StoreNewer,
            Self::NotAStore | Self::ChangedMigration { .. } => Code::NotAStore,
            Self::NotFound { .. } => Code::StoreNotFound,
            Self::Exists { .. } => Code::AlreadyExists,
            Self::Older { .. } => Code::StoreOlder,
            Self::Io { .. } => Code::Io,
            Self::Store(error) => error.code(),
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStore,
            _ => Failure::from(error).into(),
        }
    }
}

/// Error of all functions below the port. `?` converts errors of SQLite and of the port into it; the port
/// returns the error inside.
#[derive(Debug)]
pub(super) struct Failure(pub(super) StoreError);

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self(classified(error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<Failure> for StoreError {
    fn from(Failure(error): Failure) -> Self {
        error
    }
}

impl From<Failure> for OpenError {
    fn from(Failure(error): Failure) -> Self {
        Self::Store(error)
    }
}

/// Classifies an error of SQLite as one of the port.
fn classified(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full("the disk is full: free some space, then retry", Some(error)),
        Some(ErrorCode::ReadOnly) => read_only(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { source: error.into() }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { source: error.into() }
        }
        Some(ErrorCode::SystemIoFailure) if is_size_limit(&error) => {
            full("the file size limit of the process is reached: raise it, then retry", Some(error))
        }
        // Text that is not UTF-8, or a number instead of bytes: the tables are strict, so only damage
        // explains it.
        _ if is_conversion(&error) => StoreError::Corrupt { source: error.into() },
        _ => StoreError::Backend(error.into()),
    }
}

pub(super) fn full(reason: impl Into<String>, source: Option<rusqlite::Error>) -> StoreError {
    StoreError::Full { reason: reason.into(), source: source.map(Into::into) }
}

pub(super) fn read_only() -> StoreError {
    StoreError::ReadOnly { reason: "it was opened for reading, or its file or directory is read-only".into() }
}

fn is_conversion(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// Returns whether a file size limit of the process explains a failed write. SQLite cannot tell it from a
/// broken disk.
#[cfg(unix)]
fn is_size_limit(error: &rusqlite::Error) -> bool {
    const IOERR_WRITE: i32 = 10 | (3 << 8);
    const IOERR_TRUNCATE: i32 = 10 | (6 << 8);
    const IOERR_SHMSIZE: i32 = 10 | (19 << 8);
    let writing = |code| [IOERR_WRITE, IOERR_TRUNCATE, IOERR_SHMSIZE].contains(&code);
    let code = error.sqlite_error().is_some_and(|error| writing(error.extended_code));
    code && rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some()
}

#[cfg(not(unix))]
fn is_size_limit(_: &rusqlite::Error) -> bool {
    false
}
