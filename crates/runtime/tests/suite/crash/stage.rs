//! The directory of a session, with its store, its files, and a log of external effects.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::{Owner, Workspace, WorkspaceError};
use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use backstitch_testkit::tool::Counter;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

/// The file of a stage on which no snapshots are written.
const WITHOUT_SNAPSHOTS: &str = "without_snapshots";

/// Where the files of a session are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a directory.
    Host,
    /// In the memory of the process that drives the session: a crash loses them, and they are restored from
    /// the store.
    Memory,
}

/// The kind of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plot {
    /// One agent with many tools.
    Alone,
    /// Sub-agents of sub-agents.
    Agents,
    /// A prompt whose sections are opened.
    Sections,
    /// An agent that answers with programs.
    Programs,
    /// A model that fails, and its fallback.
    Fallbacks,
}

/// The directory of a session.
pub(crate) struct Stage {
    pub(crate) root: PathBuf,
    pub(crate) place: Place,
    pub(crate) plot: Plot,
    _directories: Vec<TempDir>,
}

/// Everything that a process needs to drive the session.
pub(crate) struct Opened {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) workspace: Arc<dyn Workspace>,
}

impl Stage {
    /// A new stage for the session of one agent.
    pub(crate) fn new(place: Place) -> Self {
        Self::of(place, Plot::Alone)
    }

    /// A new stage for a plot.
    pub(crate) fn of(place: Place, plot: Plot) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let memory = in_memory();
        if let Some(memory) = &memory {
            std::os::unix::fs::symlink(memory.path(), root.join("store")).unwrap();
        }
        std::fs::create_dir(root.join("files")).unwrap();
        std::fs::write(root.join("files/old.txt"), "what was there before\n").unwrap();
        Self { root, place, plot, _directories: memory.into_iter().chain([directory]).collect() }
    }

    /// The existing stage of another process.
    pub(crate) fn existing(root: PathBuf, place: Place, plot: Plot) -> Self {
        Self { root, place, plot, _directories: Vec::new() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Lets no process write snapshots in the background.
    pub(crate) fn leave_out_snapshots(&self) {
        std::fs::write(self.path(WITHOUT_SNAPSHOTS), "").unwrap();
    }

    /// A file of the session.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.root.join("files").join(path)
    }

    /// Opens the store and the files.
    pub(crate) fn open(&self) -> Opened {
        self.open_at("files")
    }

    /// Opens the store, and files in another directory of the stage.
    pub(crate) fn open_at(&self, files: &str) -> Opened {
        let store = Arc::new(SqliteStore::open(self.path("store/store.db")).unwrap());
        self.open_over(store, files)
    }

    pub(crate) fn open_over(&self, store: Arc<SqliteStore>, files: &str) -> Opened {
        self.try_open_over(store, files).unwrap()
    }

    /// Opens the store and the files. Fails if another process holds the files.
    pub(crate) fn try_open(&self) -> Result<Opened, WorkspaceError> {
        self.try_open_over(Arc::new(SqliteStore::open(self.path("store/store.db")).unwrap()), "files")
    }

    fn try_open_over(&self, store: Arc<SqliteStore>, files: &str) -> Result<Opened, WorkspaceError> {
        let workspace: Arc<dyn Workspace> = match self.place {
            Place::Host => {
                std::fs::create_dir_all(self.path(files)).unwrap();
                let mut options = OpenOptions::new(self.path(files), self.path("store"), store.clone());
                options.locks = Some(self.path("locks"));
                options.holder = format!("process {}", std::process::id());
                Arc::new(HostWorkspace::open(options)?)
            }
            Place::Memory => Arc::new(MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), store.clone())),
        };
        let owner = Owner::new(format!("process {}", std::process::id()));
        // Often enough that snapshots are written, and opened from, in the course of a short session.
        let interval = if self.path(WITHOUT_SNAPSHOTS).exists() { u64::MAX } else { 12 };
        let runtime = Runtime::new(store.clone()).with_owner(owner).with_snapshot_interval(interval);
        Ok(Opened { runtime, store, workspace })
    }
}

/// A directory for a store. A process that is killed loses no completed write, synced or not, so a file
/// system in memory is enough, and faster than a disk.
fn in_memory() -> Option<TempDir> {
    tempfile::tempdir_in("/dev/shm").ok()
}

impl Opened {
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions {
            id: Some(super::session::id()),
            seed: Some(backstitch_core::rng::Seed::new(7)),
            ..self.plain_options()
        }
    }

    /// The files, and resources in their initial state.
    pub(crate) fn plain_options(&self) -> SessionOptions {
        let resources = Counter::default().resources();
        SessionOptions { resources, ..SessionOptions::with_workspace(self.workspace.clone()) }
    }
}
