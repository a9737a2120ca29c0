//! Opens a runtime: a store, with adapters for models and directories that agents name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_runtime::Runtime;
use backstitch_store::{MemoryStore, SqliteStore};

use crate::adapters::HostAdapters;
use crate::code::ErrorCode;
use crate::stores::{self, StoresError};

/// A runtime could not be opened.
///
/// ```
/// use backstitch::prelude::*;
///
/// // There is a file at the path of the store's directory.
/// let file = tempfile::NamedTempFile::new()?;
/// let error = Runtime::at(file.path().join("store.db")).unwrap_err();
/// println!("{error}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The location of the default store cannot be used.
    #[error(transparent)]
    Stores(#[from] StoresError),
    /// The store cannot be opened.
    #[error("the store {} cannot be opened", path.display())]
    Store {
        /// The store.
        path: PathBuf,
        /// The error of the store.
        #[source]
        source: backstitch_store::OpenError,
    },
    /// A directory that a store needs cannot be found or created.
    #[error("{} cannot be used", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
}

impl OpenError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Stores(error) => error.code(),
            Self::Store { source, .. } => source.code(),
            Self::Directory { .. } => ErrorCode::Io,
        }
    }
}

/// Opens a [`Runtime`] whose agents may name models and directories. The trait is part of the prelude.
///
/// ```
/// use backstitch::prelude::*;
///
/// let runtime = Runtime::in_memory();
/// # let _ = runtime;
/// ```
pub trait OpenRuntime: Sized {
    /// Opens the store of the current directory's project, which the command line uses too. Creates it if it
    /// is missing.
    fn open_default() -> Result<Self, OpenError>;

    /// Opens the SQLite store at a path. Creates it if it is missing.
    fn at(path: impl AsRef<Path>) -> Result<Self, OpenError>;

    /// Keeps sessions in memory, for tests. They are lost when the process ends.
    fn in_memory() -> Self;
}

impl OpenRuntime for Runtime {
    fn open_default() -> Result<Self, OpenError> {
        let here = std::env::current_dir()
            .map_err(|source| OpenError::Directory { path: PathBuf::from("."), source })?;
        Self::at(stores::existing_or_new(&here)?)
    }

    fn at(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let path = std::path::absolute(path)
            .map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
        stores::prepare(&path)?;
        let store =
            SqliteStore::open(&path).map_err(|source| OpenError::Store { path: path.clone(), source })?;
        let store = Arc::new(store);
        Ok(Self::new(store.clone()).with_adapters(Arc::new(HostAdapters::beside(store, path))))
    }

    fn in_memory() -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::new(store.clone()).with_adapters(Arc::new(HostAdapters::in_memory(store)))
    }
}
