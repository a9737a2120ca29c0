//! Opens a runtime: a store, with adapters for models and directories that agents name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_runtime::Runtime;

use crate::adapters::HostAdapters;
use crate::code::ErrorCode;
use crate::ports;
use crate::stores::{self, OpenedStore, StoreAddress, StoresError};

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
    #[error("the store {address} cannot be opened")]
    Store {
        /// The store.
        address: StoreAddress,
        /// The error of the store.
        #[source]
        source: ports::OpenError,
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

    /// Opens the store at an address: a path, or `memory:` ([`StoreAddress`]). Creates it if it is missing.
    fn at(address: impl AsRef<Path>) -> Result<Self, OpenError>;

    /// Keeps sessions in memory, for tests. They are lost when the process ends.
    fn in_memory() -> Self;
}

impl OpenRuntime for Runtime {
    fn open_default() -> Result<Self, OpenError> {
        let here = std::env::current_dir()
            .map_err(|source| OpenError::Directory { path: PathBuf::from("."), source })?;
        Self::at(stores::existing_or_new(&here)?)
    }

    fn at(address: impl AsRef<Path>) -> Result<Self, OpenError> {
        let address = StoreAddress::new(address);
        let opened = stores::open(&address).map_err(|error| match error {
            StoresError::Open(source) => OpenError::Store { address, source },
            other => OpenError::Stores(other),
        })?;
        Ok(over(opened))
    }

    fn in_memory() -> Self {
        over(OpenedStore::in_memory())
    }
}

fn over(store: OpenedStore) -> Runtime {
    Runtime::new(store.store.clone()).with_adapters(Arc::new(HostAdapters::new(store)))
}
