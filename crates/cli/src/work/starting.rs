//! Starting a session: its store, its id, its files and its first run, for `run` and `chat`.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch::agent_file::AgentDefinition;
use backstitch::host::OpenedWorkspace;
use backstitch::id::SessionId;
use backstitch::ports::Workspace;
use backstitch::{Agent, Mission, SessionOptions};

use crate::common::Common;
use crate::open::place::{OpenStore, uncovered};

/// A session that is not stored yet.
pub(crate) struct NewSession {
    pub(crate) place: OpenStore,
    /// The id, so that an error about a directory in use names the session that holds it.
    pub(crate) id: SessionId,
}

/// A session that was started, with its files.
pub(crate) struct StartedSession {
    pub(crate) run: backstitch::Run,
    pub(crate) files: Option<OpenedWorkspace>,
}

impl NewSession {
    /// Opens the store of the directory that an agent works in, or creates one.
    pub(crate) fn open(common: &Common, definition: &AgentDefinition) -> anyhow::Result<Self> {
        let here = std::env::current_dir()?;
        let files = definition.workspace.path.as_deref();
        let place = OpenStore::existing_or_new_for(common, files.unwrap_or(&here), files)?;
        let id = place.runtime.new_id()?;
        Ok(Self { place, id })
    }

    /// Starts the session. Its mission is durable once this returns, so an announced session can be resumed.
    pub(crate) async fn start(
        &self,
        agent: &Agent,
        mission: impl Into<Mission>,
        tags: BTreeMap<String, String>,
    ) -> anyhow::Result<StartedSession> {
        let files = self.place.open_files(agent, self.id).await?;
        let options = SessionOptions {
            workspace: files.as_ref().map(|files| files.workspace.clone()),
            isolation: files.as_ref().and_then(|files| files.isolation.clone()),
            id: Some(self.id),
            tags,
            ..SessionOptions::default()
        };
        let run = self.place.runtime.start_with(agent, mission, options).await?;
        Ok(StartedSession { run, files })
    }
}

impl StartedSession {
    pub(crate) fn workspace(&self) -> Option<Arc<dyn Workspace>> {
        self.files.as_ref().map(|files| files.workspace.clone())
    }

    /// Says which paths are not covered; `None` if all are.
    pub(crate) fn uncovered_line(&self) -> Option<String> {
        let paths = uncovered(&*self.files.as_ref()?.workspace)?;
        Some(format!("not covered, so neither captured nor restored: {paths}"))
    }
}
