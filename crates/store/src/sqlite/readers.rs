//! Connections for reading. They never wait: each sees the store as it was when its statement began. A store in memory has
//! only the connection of its writer, and readers take turns with it.
//!
//! If the store is also open for writing, a new connection must read the same files that are written to, or
//! it is refused.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::ports::{OpenError, StoreError};
use rusqlite::Connection;

use super::error::Failure;
use super::open::{self, Reading};
use super::watch::WatchedFiles;

/// Maximum number of idle connections to keep.
const IDLE: usize = 4;

/// A pool of connections for reading.
pub(super) struct Readers {
    path: PathBuf,
    /// Files that the writer uses; `None` in a read-only store.
    files: Option<Arc<WatchedFiles>>,
    idle: Mutex<Vec<Connection>>,
    /// The connection of the writer, which is the only one to a store in memory.
    shared: Option<Arc<Mutex<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, files: Option<Arc<WatchedFiles>>) -> Self {
        Self { path, files, idle: Mutex::default(), shared: None }
    }

    /// Readers of a store in memory.
    pub(super) fn sharing(connection: Arc<Mutex<Connection>>) -> Self {
        Self { shared: Some(connection), ..Self::new(PathBuf::new(), None) }
    }

    fn open(&self) -> Result<Reading, StoreError> {
        let opened = open::read_only(&self.path);
        self.check_in_place()?;
        opened.map_err(as_store_error)
    }

    /// Fails if the store's path names other files than those that are written to. Connections are opened first.
    pub(super) fn check_in_place(&self) -> Result<(), StoreError> {
        match &self.files {
            Some(files) if !files.are_in_place() => Err(files.replaced()),
            _ => Ok(()),
        }
    }

    /// Reads with an exclusive connection.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if let Some(shared) = &self.shared {
            let connection = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if !connection.is_autocommit() {
                // A thread died in the middle of a transaction, whose changes must not be seen.
                connection.execute_batch("ROLLBACK").map_err(Failure::from)?;
            }
            return Ok(read(&connection)?);
        }
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

    /// Runs several reads in one snapshot of the store.
    pub(super) fn at_once<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            connection.execute_batch("BEGIN")?;
            let result = read(connection);
            // Nothing was written, so a failed rollback loses nothing.
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
