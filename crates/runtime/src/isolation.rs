//! Isolated workspaces: copies of projects that sessions work in.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::Workspace;

/// The project that a session works in a copy of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Directory of the project.
    pub project: PathBuf,
    /// Paths of the project that were not copied.
    pub left_out: Vec<String>,
}

/// A copy of a project, as the workspace of a session.
#[derive(Clone)]
pub struct IsolatedWorkspace {
    /// The copy.
    pub workspace: Arc<dyn Workspace>,
    /// The project.
    pub isolation: Isolation,
}
