//! The store itself: what it holds, and how it is opened. All other modules add to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::ports::{OpenError, StoreError};
use backstitch_core::session::BoxError;

use super::claims::Locks;
use super::counters::Counters;
use super::error;
use super::objects::Packer;
use super::open::{self, absolute};
use super::options::SqliteOptions;
use super::readers::Readers;
use super::writer::Writer;

/// A [`Store`](backstitch_core::ports::Store) in one SQLite file, or [in memory](Self::new).
pub struct SqliteStore {
    pub(super) path: PathBuf,
    // Dropped before the writer. The writer is then the last connection, and closing it copies the log into
    // the file.
    pub(super) readers: Readers,
    /// `None` in a read-only store.
    writer: Option<Writer>,
    pub(super) locks: Arc<Locks>,
    pub(super) packer: Packer,
    pub(super) options: SqliteOptions,
}

impl SqliteStore {
    /// Opens the store at a path, and creates it if it does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens the store at a path with these options, and creates it if it does not exist.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = absolute(path.as_ref())?;
        let locks = Locks::beside(&path);
        let (connection, files) = open::for_writing(&path, &locks, &options)?;
        let files = Arc::new(files);
        let readers = Readers::new(path.clone(), Some(Arc::clone(&files)));
        let writer = Writer::new(connection, Some(files), &options)?;
        Ok(Self::over(path, readers, Some(writer), locks, options))
    }

    /// Creates an empty store in memory, which ends with this value.
    pub fn new() -> Self {
        let options = SqliteOptions::default();
        let connection = open::in_memory().expect("invariant: SQLite creates databases in memory");
        let writer = Writer::new(connection, None, &options).expect("invariant: a connection has hooks");
        let readers = Readers::sharing(writer.shared_connection());
        Self::over(PathBuf::new(), readers, Some(writer), Locks::default(), options)
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// Opens an existing store for reading. Nothing is changed, and every write is refused. An empty file,
    /// which an unfinished creation leaves, counts as an empty store.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let store = Self::for_rescue(path)?;
        drop(open::read_only(&store.path)?);
        Ok(store)
    }

    /// Names a store that may be damaged, or have an older version, without opening it. It serves
    /// [`StoreAdmin::backup`](backstitch_core::ports::StoreAdmin::backup) and
    /// [`StoreAdmin::salvage`](backstitch_core::ports::StoreAdmin::salvage); everything else opens it for reading first, and fails if
    /// that is not possible.
    pub fn for_rescue(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = absolute(path.as_ref())?;
        let (locks, readers) = (Locks::beside(&path), Readers::new(path.clone(), None));
        Ok(Self::over(path, readers, None, locks, SqliteOptions::default()))
    }

    fn over(
        path: PathBuf,
        readers: Readers,
        writer: Option<Writer>,
        locks: Locks,
        options: SqliteOptions,
    ) -> Self {
        Self { path, readers, writer, locks: Arc::new(locks), packer: Packer::default(), options }
    }

    /// Absolute path of the database file. It is empty if the store is in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts of operations since the store was opened in this process.
    pub fn counters(&self) -> Counters {
        self.writer.as_ref().map(|writer| *writer.counters()).unwrap_or_default()
    }

    pub(super) fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(error::read_only)
    }

    /// Names the store's own limit in a `Full` error, if that was the limit reached.
    pub(super) fn explain(&self, error: StoreError) -> StoreError {
        let is_full = |source: &BoxError| {
            let error = source.downcast_ref::<rusqlite::Error>();
            error.and_then(rusqlite::Error::sqlite_error_code) == Some(rusqlite::ErrorCode::DiskFull)
        };
        match (error, self.options.max_bytes) {
            (StoreError::Full { source: Some(source), .. }, Some(most)) if is_full(&source) => {
                let reason = format!(
                    "its file has reached the limit of {most} bytes: collect garbage or raise the limit"
                );
                StoreError::Full { reason, source: Some(source) }
            }
            (error, _) => error,
        }
    }
}

impl Default for SqliteStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
