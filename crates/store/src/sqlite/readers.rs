//! Connections for reading. They wait for nobody: each sees the store as it was when its statement began.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::error::{OpenError, failed};
use super::open;

/// How many connections are kept for the next reader.
const IDLE: usize = 4;

/// Connections for reading.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    /// Reads with a connection of one's own.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => open::read_only(&self.path).map_err(as_store_error)?,
        };
        let result = read(&connection);
        let mut idle = idle();
        if idle.len() < IDLE && connection.is_autocommit() {
            idle.push(connection);
        }
        result
    }

    /// Reads several times from one state of the store.
    pub(super) fn at_once<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            connection.execute_batch("BEGIN").map_err(failed)?;
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
