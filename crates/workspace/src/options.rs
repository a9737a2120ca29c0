//! Options of a workspace.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::{Access, FilesystemLimits, Objects};

/// Maximum size of an ignored directory; a larger one is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredBudget {
    /// Maximum total size of its files in bytes.
    pub bytes: u64,
    /// Maximum number of names in it and below.
    pub entries: u64,
}

impl Default for IgnoredBudget {
    fn default() -> Self {
        Self { bytes: 64 * 1024 * 1024, entries: 5_000 }
    }
}

/// Options of a workspace. Start with [`OpenOptions::new`] and change single fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Directory of the workspace.
    pub root: PathBuf,
    /// The runtime's own directory, inside or outside the workspace. It is never covered, and tools can
    /// neither see it nor write to it. It is created if it does not exist.
    pub store_directory: PathBuf,
    /// Store of the objects.
    pub objects: Arc<dyn Objects>,
    /// Name of the holder, for the error that a second one gets.
    pub holder: String,
    /// Access of tools: read-write or read-only.
    pub access: Access,
    /// Limits of tools for reading and writing.
    pub limits: FilesystemLimits,
    /// Patterns of paths that are not covered, in the syntax of `.gitignore`.
    pub excludes: Vec<String>,
    /// Maximum size of a covered file in bytes.
    pub file_bytes: u64,
    /// Maximum size of new content of one capture, which is in memory until it is stored.
    pub new_bytes: u64,
    /// Maximum size of a covered directory that is ignored.
    pub ignored: IgnoredBudget,
    /// Whether the files are those of one session, and nobody else works in the directory.
    pub exclusive: bool,
    /// Whether temporary files of interrupted writes are removed, which reads all directories. Captures leave such files out
    /// in any case, so a workspace that is opened only to be captured need not remove them.
    pub sweeps: bool,
    /// Path of the stat cache; by default a file in the runtime's directory.
    pub cache: Option<PathBuf>,
    /// Directory of the locks of all workspaces; by default one per user.
    pub locks: Option<PathBuf>,
    /// Lives as long as the workspace, such as the lock on a copy of a project.
    pub companion: Option<Arc<dyn Any + Send + Sync>>,
}

impl OpenOptions {
    /// Default options for a directory.
    pub fn new(
        root: impl Into<PathBuf>,
        store_directory: impl Into<PathBuf>,
        objects: Arc<dyn Objects>,
    ) -> Self {
        Self {
            root: root.into(),
            store_directory: store_directory.into(),
            objects,
            holder: "another session".to_owned(),
            access: Access::ReadWrite,
            limits: FilesystemLimits::default(),
            excludes: Vec::new(),
            file_bytes: 64 * 1024 * 1024,
            new_bytes: 2 * 1024 * 1024 * 1024,
            ignored: IgnoredBudget::default(),
            exclusive: false,
            sweeps: true,
            cache: None,
            locks: None,
            companion: None,
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenOptions")
            .field("root", &self.root)
            .field("store_directory", &self.store_directory)
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}
