//! Constructors of the in-memory filesystem, and its operations beyond the port.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::ports::{Access, FilesystemError, FilesystemLimits};
use backstitch_core::time::{Clock, Timestamp};

use super::MemoryFiles;
use super::node::{File, FileNode, Lookup};
use crate::FilePath;

/// A filesystem in memory. Clones share its files.
#[derive(Debug, Clone)]
pub struct MemoryFilesystem {
    pub(super) files: Arc<Mutex<MemoryFiles>>,
    pub(super) access: Access,
    pub(super) limits: FilesystemLimits,
    pub(super) total_bytes: u64,
    pub(super) clock: Option<Arc<dyn Clock>>,
}

impl Default for MemoryFilesystem {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryFilesystem {
    /// Default limit for the total size of all files in bytes.
    pub const TOTAL_BYTES: u64 = 1024 * 1024 * 1024;

    /// Creates a filesystem without files.
    pub fn new() -> Self {
        Self::from_files(MemoryFiles::new())
    }

    /// Creates a filesystem with these files.
    pub fn from_files(files: MemoryFiles) -> Self {
        Self {
            files: Arc::new(Mutex::new(files)),
            access: Access::ReadWrite,
            limits: FilesystemLimits::default(),
            total_bytes: Self::TOTAL_BYTES,
            clock: None,
        }
    }

    /// Stamps files with the time of their last change.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets limits. Paths are never allowed more than by default.
    #[must_use]
    pub fn with_limits(mut self, limits: FilesystemLimits) -> Self {
        self.limits = super::narrowed(limits);
        self
    }

    /// Limits the total size of all files in bytes.
    #[must_use]
    pub fn with_total_bytes(mut self, limit: u64) -> Self {
        self.total_bytes = limit;
        self
    }

    /// Returns a read-only handle to the same files. It sees changes that are made elsewhere.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self { access: Access::ReadOnly, ..self.clone() }
    }

    /// Returns another handle to the same files.
    pub fn same_files(&self) -> Self {
        self.clone()
    }

    /// Takes a snapshot of the files, in constant time.
    pub fn snapshot(&self) -> MemoryFiles {
        self.lock().clone()
    }

    /// Replaces all files. This is not an operation of tools, so it ignores read-only access.
    pub fn restore(&self, files: MemoryFiles) {
        *self.lock() = files;
    }

    /// Sets or clears the executable bit of a file.
    pub fn set_executable(&self, path: &FilePath, executable: bool) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        let mut files = self.lock();
        let file = found_file(files.find(path), path)?;
        let changed = File::new(file.bytes.clone(), executable, self.now());
        files.put(path, FileNode::File(Arc::new(changed)));
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, MemoryFiles> {
        // A change is prepared before it is made, so a panic leaves consistent files behind.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    pub(super) fn check(&self, path: &FilePath) -> Result<(), FilesystemError> {
        FilePath::within(path.as_str(), self.limits)?;
        Ok(())
    }

    pub(super) fn check_write(&self, path: &FilePath) -> Result<(), FilesystemError> {
        match self.access {
            Access::ReadWrite => self.check(path),
            Access::ReadOnly => Err(FilesystemError::ReadOnly { path: path.to_string() }),
        }
    }

    pub(super) fn check_size(&self, path: &FilePath, bytes: u64, total: u64) -> Result<(), FilesystemError> {
        for (bytes, limit) in [(bytes, self.limits.file_bytes), (total, self.total_bytes)] {
            if bytes > limit {
                return Err(FilesystemError::TooLarge { path: path.to_string(), bytes, limit });
            }
        }
        Ok(())
    }
}

pub(super) fn found_file(found: Lookup<'_>, path: &FilePath) -> Result<Arc<File>, FilesystemError> {
    match found_node(found, path)? {
        FileNode::File(file) => Ok(file),
        FileNode::Directory(_) => Err(FilesystemError::IsDirectory { path: path.to_string() }),
    }
}

/// Returns the file or directory that was found at a path.
pub(super) fn found_node(found: Lookup<'_>, path: &FilePath) -> Result<FileNode, FilesystemError> {
    match found {
        Lookup::File(file) => Ok(FileNode::File(file.clone())),
        Lookup::Directory(directory) => Ok(FileNode::Directory(directory.clone())),
        Lookup::Nothing => Err(FilesystemError::NotFound { path: path.to_string() }),
        Lookup::BelowFile => Err(FilesystemError::NotDirectory { path: path.to_string() }),
    }
}
