//! Connections for reading. They wait for nobody: each sees the store as it was when its statement began.
//!
//! Where the store is also written, a new connection reads the files that are written to, or it is refused.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::error::{Failure, OpenError};
use super::open::{self, Reading};
use super::watch::WatchedFiles;

/// How many connections are kept for the next reader.
const IDLE: usize = 4;

/// Connections for reading.
pub(super) struct Readers {
    path: PathBuf,
    /// The files that are written to.
    files: Option<Arc<WatchedFiles>>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, files: Option<Arc<WatchedFiles>>) -> Self {
        Self { path, files, idle: Mutex::default() }
    }

    fn open(&self) -> Result<Reading, StoreError> {
        let opened = open::read_only(&self.path);
        match &self.files {
            Some(files) if !files.are_in_place() => Err(files.replaced()),
            _ => opened.map_err(as_store_error),
        }
    }

    /// Reads with a connection of one's own.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let Reading { connection, is_stand_in } = match kept {
            Some(connection) => Reading { connection, is_stand_in: false },
            None => self.open()?,
        };
        let result = read(&connection);
        let mut idle = idle();
        if idle.len() < IDLE && connection.is_autocommit() && !is_stand_in {
            idle.push(connection);
        }
        Ok(result?)
    }

    /// Reads several times from one state of the store.
    pub(super) fn at_once<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            connection.execute_batch("BEGIN")?;
            let result = read(connection);
            // Nothing was written, so there is nothing that ending could lose.
            let _ = connection.execute_batch("ROLLBACK");
            result
        })
    }
}

fn as_store_error(error: OpenError) -> StoreError {
    match error {
        OpenError::Store(error) => error,
        other => StoreError::Backend(other.into()),
    }
}
