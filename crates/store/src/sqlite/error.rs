//! Translation of SQLite errors into those of the port.

use backstitch_core::ports::{OpenError, StoreError};
use rusqlite::ErrorCode;

/// Classifies an error of SQLite at the opening of a file. `?` cannot do it, because both types belong to other crates.
pub(super) fn open_error(error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotAStore,
        _ => OpenError::Store(classified(error)),
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

/// Formats an error with its chain of sources.
pub(super) fn chain_of(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
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
