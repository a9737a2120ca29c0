//! Directories without an agent, and agents without a file.
//!
//! A directory that another program works in is opened only to capture it. The agent of a session is opened from what the
//! session has recorded, so that any process can resume it.

use std::path::Path;
use std::sync::Arc;

use backstitch_runtime::DirectoryError;
use backstitch_workspace::HostWorkspace;

use super::Runtime;
use super::adapters::{blocking, check_directory};
use crate::RuntimeError;
use crate::agent_file::{AgentDefinition, AgentFileError, recorded_definition};
use crate::id::SessionId;
use crate::ports::{UncoveredPath, Workspace, directory_holder};
use crate::session::BoxError;

/// Holder of a directory that is captured without a session.
const NO_SESSION: &str = "a command that captures it";

impl Runtime {
    /// Returns the definition of the agent that a session was last driven with, which is sufficient to resume it. Keys are read
    /// from the environment when it is built. Fails for a session whose agent is not defined by data.
    ///
    /// ```no_run
    /// use backstitch::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Resumes what the command has started.
    /// let runtime = Runtime::open_default()?;
    /// let session = runtime.latest_session().await?;
    /// let agent = runtime.recorded_agent(session).await?.build()?.agent;
    /// let run = runtime.resume(session, &agent).await?;
    /// println!("{}", run.answer::<String>().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recorded_agent(&self, session: SessionId) -> Result<AgentDefinition, AgentFileError> {
        let view = self.view(session).await?;
        recorded_definition(&*self.store.store, &view, None).await
    }

    /// Records that a session continues with another definition of its agent. It applies from the current point on. Fails if
    /// another process drives the session.
    pub async fn record_agent(
        &self,
        session: SessionId,
        definition: &AgentDefinition,
    ) -> Result<(), RuntimeError> {
        self.add_note(session, definition.change_note()).await
    }

    /// Opens the directory of a session that another program works in, to capture it as fast as possible. It has to exist.
    pub async fn open_to_capture(
        &self,
        directory: &Path,
        session: SessionId,
    ) -> Result<Arc<dyn Workspace>, RuntimeError> {
        check_directory(directory, None, session)?;
        let opened = self.adapters.open_to_capture(directory, directory_holder(session)).await;
        let workspace: Arc<dyn Workspace> = opened.map_err(|error| unopened(directory, error))?;
        Ok(workspace)
    }

    /// Returns the paths of a directory that its last capture did not cover. Fails if the directory cannot be captured.
    pub async fn uncovered_paths(&self, directory: &Path) -> Result<Vec<UncoveredPath>, RuntimeError> {
        Ok(self.alone(directory).await?.uncovered())
    }

    /// Captures a directory without a session, and keeps only a cache of what was read, so that the next capture reads only
    /// files that have changed. Returns the paths that are not covered.
    pub async fn prepare_captures(&self, directory: &Path) -> Result<Vec<UncoveredPath>, RuntimeError> {
        let workspace = self.alone(directory).await?;
        let captured = blocking(move || {
            workspace.capture()?;
            workspace.save_cache()?;
            Ok(workspace.uncovered())
        });
        captured.await.map_err(|error| unopened(directory, error))
    }

    /// Opens a directory to capture it without a session.
    async fn alone(&self, directory: &Path) -> Result<Arc<HostWorkspace>, RuntimeError> {
        let opened = self.adapters.open_to_capture(directory, NO_SESSION.to_owned()).await;
        opened.map_err(|error| unopened(directory, error))
    }
}

/// Names the directory that cannot be opened.
fn unopened(directory: &Path, error: BoxError) -> RuntimeError {
    match error.downcast::<DirectoryError>() {
        Ok(error) => RuntimeError::OpenDirectory(*error),
        Err(error) => RuntimeError::Directory { directory: directory.to_owned(), cause: Arc::from(error) },
    }
}
