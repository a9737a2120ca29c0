//! The workspaces of agents.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::Workspace;

/// The workspace of an agent.
#[derive(Clone)]
pub enum AgentWorkspace {
    /// A directory, which the runtime opens.
    Directory(PathBuf),
    /// An open workspace.
    Open(Arc<dyn Workspace>),
}

impl From<&str> for AgentWorkspace {
    fn from(directory: &str) -> Self {
        Self::Directory(directory.into())
    }
}

impl From<&std::path::Path> for AgentWorkspace {
    fn from(directory: &std::path::Path) -> Self {
        Self::Directory(directory.to_owned())
    }
}

impl From<PathBuf> for AgentWorkspace {
    fn from(directory: PathBuf) -> Self {
        Self::Directory(directory)
    }
}

impl From<String> for AgentWorkspace {
    fn from(directory: String) -> Self {
        Self::Directory(directory.into())
    }
}

impl<W: Workspace + 'static> From<Arc<W>> for AgentWorkspace {
    fn from(workspace: Arc<W>) -> Self {
        Self::Open(workspace)
    }
}
