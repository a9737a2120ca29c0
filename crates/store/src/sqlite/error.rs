//! What SQLite says, in the words of the port.

use std::path::PathBuf;

use backstitch_core::ports::StoreError;
use rusqlite::ErrorCode;

/// A store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer program wrote it.
    #[error("the store has schema {found}, and this program knows 1 to {known}: use a newer program")]
    Newer {
        /// The file's version.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// It is something else.
    #[error("the file is not a store of Backstitch")]
    NotAStore,
    /// The tables in it are not those that this program made.
    #[error("migration {number} in the store is not the one that this program knows: somebody changed it")]
    ChangedMigration {
        /// Which one.
        number: u32,
    },
    /// There is nothing to read.
    #[error("there is no store at {path}")]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Something is in the way where a new store was to be written.
    #[error("{path} exists already, and nothing is ever written over")]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The store is of an older version, and was opened for reading only.
    #[error(
        "the store has the older schema {found}: open it for writing once, so that it is brought to {known}"
    )]
    Older {
        /// The file's version.
        found: u32,
        /// The version that is read here.
        known: u32,
    },
    /// Its file or directory could not be reached.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
    /// What is below failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStore,
            _ => Failure::from(error).into(),
        }
    }
}

/// The error of all functions below the port. `?` makes it of an error of SQLite as well as of one of the port, and the port gives
/// the error of its own that it holds.
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

/// The error of the port that an error of SQLite is.
fn classified(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full("the disk is full: make room, then go on", Some(error)),
        Some(ErrorCode::ReadOnly) => read_only(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { source: error.into() }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { source: error.into() }
        }
        Some(ErrorCode::SystemIoFailure) if is_size_limit(&error) => full(
            "the limit of this process on the size of a file is reached: raise it, then go on",
            Some(error),
        ),
        // A text that is no text, a number where bytes should be: the tables are strict, so only damage does that.
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

/// Whether a failed write is one that a limit on the size of files explains. SQLite does not tell it from a broken disk.
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
