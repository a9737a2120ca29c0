//! A real directory as a workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::tool::Tool;
use backstitch_store::MemoryStore;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

use crate::harness::Harness;

/// A directory with a workspace, and the files of the runtime beside it.
pub(crate) struct Disk {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) workspace: Arc<HostWorkspace>,
    pub(crate) directory: TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut OpenOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        std::fs::create_dir(&files).unwrap();
        let store = Arc::new(MemoryStore::new());
        let mut options = OpenOptions::new(&files, directory.path().join("store"), store.clone());
        options.locks = Some(directory.path().join("locks"));
        change(&mut options);
        let workspace = Arc::new(HostWorkspace::open(options).unwrap());
        Self { store, workspace, directory }
    }

    /// The path of a file of the workspace.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join("files").join(path)
    }

    pub(crate) async fn harness(&self, tools: Vec<Tool>) -> Harness {
        Harness::over(self.store.clone(), tools, Some(self.workspace.clone())).await
    }
}
