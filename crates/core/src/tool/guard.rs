//! A filesystem that a revoked call cannot use.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::host::ToolHost;
use crate::ports::{
    Access, DirectoryEntry, FilePath, Filesystem, FilesystemError, FilesystemLimits, Recursion, Stat,
    WriteMode,
};
use crate::tool_spec::WorkspaceUse;

/// A filesystem that refuses everything after its call has ended or its session is not held any more, and all writes of a call
/// that declared only reads.
pub(super) struct GuardedFilesystem {
    files: Arc<dyn Filesystem>,
    workspace: WorkspaceUse,
    revoked: Arc<AtomicBool>,
    host: Arc<dyn ToolHost>,
}

impl GuardedFilesystem {
    pub(super) fn new(
        files: Arc<dyn Filesystem>,
        workspace: WorkspaceUse,
        revoked: Arc<AtomicBool>,
        host: Arc<dyn ToolHost>,
    ) -> Self {
        Self { files, workspace, revoked, host }
    }

    fn reading(&self, path: &FilePath) -> Result<&dyn Filesystem, FilesystemError> {
        if self.revoked.load(Ordering::SeqCst) || !self.host.holds_session() {
            return Err(FilesystemError::Revoked { path: path.to_string() });
        }
        Ok(&*self.files)
    }

    fn writing(&self, path: &FilePath) -> Result<&dyn Filesystem, FilesystemError> {
        if self.access() == Access::ReadOnly {
            return Err(FilesystemError::ReadOnly { path: path.to_string() });
        }
        self.reading(path)
    }
}

impl fmt::Debug for GuardedFilesystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GuardedFilesystem").field(&self.files).finish()
    }
}

impl Filesystem for GuardedFilesystem {
    fn access(&self) -> Access {
        match self.workspace {
            WorkspaceUse::Write => self.files.access(),
            WorkspaceUse::None | WorkspaceUse::Read => Access::ReadOnly,
        }
    }

    fn limits(&self) -> FilesystemLimits {
        self.files.limits()
    }

    fn stat(&self, path: &FilePath) -> Result<Stat, FilesystemError> {
        self.reading(path)?.stat(path)
    }

    fn read_bytes(&self, path: &FilePath) -> Result<Vec<u8>, FilesystemError> {
        self.reading(path)?.read_bytes(path)
    }

    fn write_bytes(&self, path: &FilePath, bytes: &[u8], mode: WriteMode) -> Result<(), FilesystemError> {
        self.writing(path)?.write_bytes(path, bytes, mode)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirectoryEntry>, FilesystemError> {
        self.reading(path)?.list(path)
    }

    fn delete(&self, path: &FilePath, recursion: Recursion) -> Result<(), FilesystemError> {
        self.writing(path)?.delete(path, recursion)
    }

    fn make_directory(&self, path: &FilePath) -> Result<(), FilesystemError> {
        self.writing(path)?.make_directory(path)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<(), FilesystemError> {
        self.writing(from)?.rename(from, to)
    }
}
