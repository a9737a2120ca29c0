//! Opens a runtime: a store, with adapters for models and directories that agents name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use backstitch_runtime::{Adapters, IsolatedWorkspace, Isolation, PrivateDirectory, Runtime};
use backstitch_store::{MemoryStore, SqliteStore};
use backstitch_workspace::{HostWorkspace, OpenOptions, restore_copy};

use crate::agent_file::AgentDefinition;
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::isolated;
use crate::ports::{Objects, Policy, Store, Workspace, directory_holder};
use crate::session::BoxError;
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
        let directory = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        Ok(over(Arc::new(store), Private::Beside(directory)))
    }

    fn in_memory() -> Self {
        over(
            Arc::new(MemoryStore::new()),
            Private::Temporary { own: OnceLock::new(), copies: OnceLock::new() },
        )
    }
}

fn over<S: Store + Objects + 'static>(store: Arc<S>, private: Private) -> Runtime {
    let objects: Arc<dyn Objects> = store.clone();
    Runtime::new(store).with_adapters(Arc::new(HostAdapters { objects, private }))
}

/// Directory for data of workspaces besides their objects, such as stat caches.
enum Private {
    /// The directory of the store.
    Beside(PathBuf),
    /// Directories that are created when they are needed, and removed with the runtime.
    Temporary {
        own: OnceLock<PrivateDirectory>,
        /// Copies of projects.
        copies: OnceLock<PrivateDirectory>,
    },
}

/// Opens models with keys from the environment, and host directories.
struct HostAdapters {
    objects: Arc<dyn Objects>,
    private: Private,
}

impl HostAdapters {
    fn private(&self) -> std::io::Result<PathBuf> {
        match &self.private {
            Private::Beside(directory) => Ok(directory.clone()),
            Private::Temporary { own, .. } => temporary(own),
        }
    }
}

fn temporary(made: &OnceLock<PrivateDirectory>) -> std::io::Result<PathBuf> {
    if let Some(made) = made.get() {
        return Ok(made.path().to_owned());
    }
    let new = PrivateDirectory::new()?;
    Ok(made.get_or_init(|| new).path().to_owned())
}

impl Adapters for HostAdapters {
    fn model(&self, name: &str) -> Result<Arc<dyn Policy>, BoxError> {
        Ok(AgentDefinition::of_model(name)?.policy()?)
    }

    fn workspace(&self, directory: &Path, session: SessionId) -> Result<Arc<dyn Workspace>, BoxError> {
        std::fs::create_dir_all(directory)?;
        let private = self.private()?;
        if directory.canonicalize()?.starts_with(private.canonicalize()?) {
            let directory = directory.display();
            return Err(
                format!("{directory} lies in the directory of the store, which no agent works in").into()
            );
        }
        let mut options = OpenOptions::new(directory, private, self.objects.clone());
        options.holder = directory_holder(session);
        Ok(Arc::new(HostWorkspace::open(options)?))
    }

    fn isolated(&self, project: &Path, session: SessionId) -> Result<IsolatedWorkspace, BoxError> {
        let private = self.private()?;
        let copy = match &self.private {
            Private::Beside(_) => isolated::copy_for(&private, project, session)?,
            Private::Temporary { copies, .. } => {
                // Not the directory itself, which is locked for its process.
                let place = temporary(copies)?.join("copies");
                isolated::copy_into(&place, &private, project, session)?
            }
        };
        let copy = Arc::new(copy);
        let mut options = OpenOptions::new(&copy.directory, private, self.objects.clone());
        options.holder = directory_holder(session);
        options.companion = Some(copy.clone());
        let left_out = copy.left_out.iter().map(|one| one.path.clone()).collect();
        let project = project.canonicalize()?;
        let workspace = Arc::new(HostWorkspace::open(options)?);
        Ok(IsolatedWorkspace { workspace, isolation: Isolation { project, left_out } })
    }

    fn isolated_again(
        &self,
        project: &Path,
        directory: &Path,
        session: SessionId,
    ) -> Result<Arc<dyn Workspace>, BoxError> {
        if !directory.is_dir() {
            restore_copy(project, directory)?;
        }
        self.workspace(directory, session)
    }
}

impl fmt::Debug for HostAdapters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HostAdapters").finish_non_exhaustive()
    }
}
