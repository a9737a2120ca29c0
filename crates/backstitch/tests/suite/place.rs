//! Files in memory or in a real directory, as a workspace of a session.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch::filesystem::{FileOperations, FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch::journal::WorkspaceRoot;
use backstitch::ports::{Filesystem, Workspace, WriteMode};
use backstitch::store::MemoryStore;
use backstitch::tool::Tool;
use backstitch::workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

use crate::harness::Harness;

/// A workspace in memory or in a temporary directory.
pub(crate) struct Place {
    store: Arc<MemoryStore>,
    workspace: Arc<dyn Workspace>,
    directory: Option<TempDir>,
}

impl Place {
    pub(crate) fn in_memory() -> Self {
        let store = Arc::new(MemoryStore::new());
        let files = Arc::new(MemoryFilesystem::new());
        let workspace = Arc::new(MemoryWorkspace::new(files, store.clone()));
        Self { store, workspace, directory: None }
    }

    pub(crate) fn on_disk() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        std::fs::create_dir(&files).unwrap();
        let store = Arc::new(MemoryStore::new());
        let mut options = OpenOptions::new(&files, directory.path().join("store"), store.clone());
        options.locks = Some(directory.path().join("locks"));
        let workspace = Arc::new(HostWorkspace::open(options).unwrap());
        Self { store, workspace, directory: Some(directory) }
    }

    /// Creates one of each kind, with the same files.
    pub(crate) fn both(files: &[(&str, &str)]) -> [Self; 2] {
        let places = [Self::in_memory(), Self::on_disk()];
        for place in &places {
            for (path, text) in files {
                place.write(path, text);
            }
        }
        places
    }

    pub(crate) async fn harness(&self, tools: Vec<Tool>) -> Harness {
        Harness::over(self.store.clone(), tools, Some(self.workspace.clone())).await
    }

    /// Captures the root of all files.
    pub(crate) fn root(&self) -> WorkspaceRoot {
        self.workspace.capture().unwrap().root
    }

    pub(crate) fn files(&self) -> Arc<dyn Filesystem> {
        self.workspace.filesystem()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.files().write(&FilePath::new(path).unwrap(), text, WriteMode::Overwrite).unwrap();
    }

    pub(crate) fn write_bytes(&self, path: &str, bytes: &[u8]) {
        self.files().write_bytes(&FilePath::new(path).unwrap(), bytes, WriteMode::Overwrite).unwrap();
    }

    /// Reads a text file; `None` if it does not exist.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        self.files().read_text(&FilePath::new(path).unwrap()).ok()
    }

    /// Returns the host path of a file.
    #[cfg(unix)]
    pub(crate) fn host_path(&self, path: &str) -> PathBuf {
        self.directory.as_ref().unwrap().path().join("files").join(path)
    }
}
