//! Stand-ins for platforms on which host directories cannot be workspaces.

use std::convert::Infallible;
use std::path::Path;

use backstitch_core::ports::{Access, FilesystemLimits, WorkspaceError};

use crate::options::OpenOptions;

/// A host directory as a workspace. Not supported on this platform.
#[derive(Debug)]
pub struct HostWorkspace(Infallible);

/// A host directory from the view of tools. Not supported on this platform.
#[derive(Debug)]
pub struct HostFilesystem(Infallible);

impl HostWorkspace {
    /// Always fails with [`WorkspaceError::Unsupported`].
    pub fn open(_: OpenOptions) -> Result<Self, WorkspaceError> {
        Err(WorkspaceError::Unsupported)
    }
}

impl HostFilesystem {
    /// Always fails with [`WorkspaceError::Unsupported`].
    pub fn open(_: &Path, _: Option<&Path>, _: Access, _: FilesystemLimits) -> Result<Self, WorkspaceError> {
        Err(WorkspaceError::Unsupported)
    }
}
