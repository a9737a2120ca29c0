//! Opening what agents name: models and directories.

use std::path::Path;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{Policy, Workspace};
use backstitch_core::session::BoxError;

/// Opens what agents name. Agents are data; the runtime that drives one opens its model and its directory.
pub trait Adapters: Send + Sync {
    /// The policy that asks this model.
    fn model(&self, name: &str) -> Result<Arc<dyn Policy>, BoxError>;

    /// The files of a directory, for a session.
    fn workspace(&self, directory: &Path, session: SessionId) -> Result<Arc<dyn Workspace>, BoxError>;
}

/// Opens nothing: for runtimes whose agents bring their policies and workspaces along.
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
