//! The runtime: a store, the models and directories that agents name, and every operation on them.
//!
//! Operations on one session are those of [`backstitch_runtime::Runtime`], to which this one dereferences. What concerns the
//! whole store, shows sessions, or needs the directories of this machine, is added here. Each operation opens, claims and
//! releases by itself.

mod adapters;
mod checkouts;
mod find;
mod history;
mod look;
mod open;
mod setup;
mod store;
mod workspace_event;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_runtime::{AgentSource, Engines, Worker};

use crate::ports::Owner;
use crate::stores::{self, OpenedStore, StoreAddress, StoresError};
use crate::time::Clock;
use adapters::HostAdapters;
use workspace_event::Report;

pub use adapters::{check_apart, check_workspace};
pub use checkouts::Checkouts;
pub use find::{FindError, IdPart, NameError};
pub use history::{interrupted_applies, resolve_beginning};
pub use look::*;
pub use store::*;
pub use workspace_event::WorkspaceEvent;

/// Sessions on a store, whose agents may name models and directories.
///
/// ```
/// use backstitch::prelude::*;
///
/// let runtime = Runtime::in_memory();
/// # let _ = runtime;
/// ```
#[derive(Clone)]
pub struct Runtime {
    engine: backstitch_runtime::Runtime,
    store: OpenedStore,
    adapters: Arc<HostAdapters>,
    /// The file with messages that were typed in sessions of the store.
    input_history: Option<PathBuf>,
}

impl Runtime {
    /// Opens the store of the current directory's project, which the command line uses too. Creates it if it
    /// is missing.
    pub fn open_default() -> Result<Self, StoresError> {
        let here = std::env::current_dir()
            .map_err(|source| StoresError::Unusable { path: PathBuf::from("."), source })?;
        Self::at(stores::existing_or_new(&here)?)
    }

    /// Opens the store at an address: a path, `postgres://…`, or `memory:` ([`StoreAddress`]). Creates it if it is missing. Blocks the thread until a
    /// server has answered; [`connect`](Self::connect) does not.
    pub fn at(address: impl AsRef<Path>) -> Result<Self, StoresError> {
        Ok(Self::over(stores::open(&StoreAddress::new(address))?))
    }

    /// Opens the store at an address like [`at`](Self::at), without blocking the thread.
    pub async fn connect(address: impl AsRef<Path>) -> Result<Self, StoresError> {
        let address = StoreAddress::new(address);
        match tokio::task::spawn_blocking(move || stores::open(&address)).await {
            Ok(opened) => Ok(Self::over(opened?)),
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
    }

    /// Keeps sessions in memory, for tests. They are lost when the process ends.
    pub fn in_memory() -> Self {
        Self::over(OpenedStore::in_memory())
    }

    /// Uses a store that is open.
    pub fn over(store: OpenedStore) -> Self {
        let engine = backstitch_runtime::Runtime::new(store.store.clone()).with_queue(store.queue.clone());
        Self::reporting(store, engine, Arc::new(|_| {}), None)
    }

    fn reporting(
        store: OpenedStore,
        engine: backstitch_runtime::Runtime,
        report: Arc<Report>,
        checkouts: Option<Checkouts>,
    ) -> Self {
        let adapters = Arc::new(HostAdapters::new(store.clone(), report, checkouts));
        let input_history = input_history_of(&store.address);
        Self { engine: engine.with_adapters(adapters.clone()), store, adapters, input_history }
    }

    /// Calls a function for everything that happens while directories are opened.
    #[must_use]
    pub fn with_report(self, report: impl Fn(WorkspaceEvent) + Send + Sync + 'static) -> Self {
        let (input_history, checkouts) = (self.input_history, self.adapters.checkouts.clone());
        Self { input_history, ..Self::reporting(self.store, self.engine, Arc::new(report), checkouts) }
    }

    /// Lets sessions that [workers](Self::worker) of this runtime drive work in checkouts, so that they can move between machines. By
    /// default they work in the directories that they name.
    #[must_use]
    pub fn with_checkouts(self, checkouts: Checkouts) -> Self {
        let (input_history, report) = (self.input_history, self.adapters.report.clone());
        Self { input_history, ..Self::reporting(self.store, self.engine, report, Some(checkouts)) }
    }

    /// Names the file with messages that people typed in sessions of the store. Redactions and removals change it too. By default,
    /// a store in the user's state directory has the input history of the command, and others have none.
    #[must_use]
    pub fn with_input_history(self, path: Option<PathBuf>) -> Self {
        Self { input_history: path, ..self }
    }

    /// Replaces the system's clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { engine: self.engine.with_clock(clock), ..self }
    }

    /// Sets the owner that claims sessions. Other processes see its name.
    #[must_use]
    pub fn with_owner(self, owner: Owner) -> Self {
        Self { engine: self.engine.with_owner(owner), ..self }
    }

    /// Sets the engines that agents may name.
    #[must_use]
    pub fn with_engines(self, engines: Arc<dyn Engines>) -> Self {
        Self { engine: self.engine.with_engines(engines), ..self }
    }

    /// Sets the agents that workers and [`drive`](backstitch_runtime::Runtime::drive) find by the names that sessions have.
    #[must_use]
    pub fn with_agents(self, agents: Arc<dyn AgentSource>) -> Self {
        Self { engine: self.engine.with_agents(agents), ..self }
    }

    /// Returns a worker that drives the sessions of the store's queue, with the agents of this runtime.
    pub fn worker(&self) -> Worker {
        Worker::new(self.engine.clone())
    }

    /// Sets the minimum number of records between two snapshots of a session.
    #[must_use]
    pub fn with_snapshot_interval(self, records: u64) -> Self {
        Self { engine: self.engine.with_snapshot_interval(records), ..self }
    }

    /// Returns the ports of the store.
    pub fn opened_store(&self) -> &OpenedStore {
        &self.store
    }

    /// Returns the directory of the store, which no tool may touch. That of a store in memory is created now, and removed
    /// with the runtime.
    pub fn store_directory(&self) -> std::io::Result<PathBuf> {
        self.adapters.directory()
    }
}

/// Returns the input history of the command for a store in the state directory.
fn input_history_of(address: &StoreAddress) -> Option<PathBuf> {
    let state = stores::state_directory().ok()?;
    address.directory()?.starts_with(&state).then(stores::input_history::path)?
}

impl Deref for Runtime {
    type Target = backstitch_runtime::Runtime;

    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").field("store", &self.store).finish_non_exhaustive()
    }
}
