//! Adapters: how a runtime opens the models and directories that agents name.

use std::path::Path;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{Policy, Workspace};
use backstitch_core::session::BoxError;

use crate::isolation::IsolatedWorkspace;

/// Opens the models and directories that agents name. An agent is data, and the runtime that drives it opens
/// them.
pub trait Adapters: Send + Sync {
    /// Returns the policy that calls the model of this name.
    fn model(&self, name: &str) -> Result<Arc<dyn Policy>, BoxError>;

    /// Opens a directory as the workspace of a session.
    fn workspace(&self, directory: &Path, session: SessionId) -> Result<Arc<dyn Workspace>, BoxError>;

    /// Copies a project, and opens the copy as the workspace of a new session.
    fn isolated(&self, project: &Path, session: SessionId) -> Result<IsolatedWorkspace, BoxError> {
        let _ = (project, session);
        Err("this runtime makes no copies of projects".into())
    }

    /// Opens the copy of a project that a session was started in. A copy that was deleted is created again, without files.
    fn isolated_again(
        &self,
        project: &Path,
        directory: &Path,
        session: SessionId,
    ) -> Result<Arc<dyn Workspace>, BoxError> {
        let _ = project;
        self.workspace(directory, session)
    }
}

/// Opens nothing. For runtimes whose agents come with their policies and workspaces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoAdapters;

impl Adapters for NoAdapters {
    fn model(&self, _: &str) -> Result<Arc<dyn Policy>, BoxError> {
        Err("this runtime opens no models: give the agent a policy, or the runtime adapters".into())
    }

    fn workspace(&self, _: &Path, _: SessionId) -> Result<Arc<dyn Workspace>, BoxError> {
        Err("this runtime opens no directories: give the agent an open workspace, or the runtime adapters"
            .into())
    }
}
