//! How a workspace is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::{Access, FilesystemLimits, Objects};

/// How large an ignored directory may be before it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredBudget {
    /// The most bytes of its files together.
    pub bytes: u64,
    /// The most names in it and below.
    pub entries: u64,
}

impl Default for IgnoredBudget {
    fn default() -> Self {
        Self { bytes: 64 * 1024 * 1024, entries: 5_000 }
    }
}

/// How a workspace is opened. Start with [`OpenOptions::new`] and change what differs.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The directory.
    pub root: PathBuf,
    /// The runtime's own directory, wherever it lies. It is never covered, shown or written to by tools. It is made if it
    /// is not there.
    pub store_directory: PathBuf,
    /// Where objects are stored.
    pub objects: Arc<dyn Objects>,
    /// Who holds the directory, for the error of whoever comes second.
    pub holder: String,
    /// Whether tools may write.
    pub access: Access,
    /// What tools may read and write.
    pub limits: FilesystemLimits,
    /// Patterns of what is not covered, as in a `.gitignore`.
    pub excludes: Vec<String>,
    /// A larger file is not covered.
    pub file_bytes: u64,
    /// The most new content of one capture, which is held in memory until it is stored.
    pub new_bytes: u64,
    /// How large an ignored directory may be before it is not covered.
    pub ignored: IgnoredBudget,
    /// Where the stat cache is kept; a file of its own in the runtime's directory, unless given.
    pub cache: Option<PathBuf>,
    /// Where the locks of all workspaces are kept; one place for each user, unless given.
    pub locks: Option<PathBuf>,
}

impl OpenOptions {
    /// The usual options for a directory.
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
            cache: None,
            locks: None,
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
