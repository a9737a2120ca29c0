//! What the server of editors needs from the command: stores, agents, and trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::Runtime;
use backstitch::agent_file::{AgentDefinition, BuildOptions, BuiltAgent};
use backstitch::id::SessionId;
use backstitch::ports::{AnyValue, SessionQuery};
use backstitch::view::JournalView;
use backstitch_acp::{
    AgentRequest, EditorHost, HostError, HostFuture, ListedSession, OfferedServer, PreparedSession,
    SessionAgent,
};

use super::offered::OfferedValues;
use crate::common::Common;
use crate::error::{CommandError, ErrorCode, advice_of, code_of, message_of};
use crate::open::definition::{
    AgentFlags, build_agent_with, change_mode, definition_of, pin_servers_with, with_served_models,
};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, trusted, user_name};
use crate::trust::TrustState;

/// Number of sessions that are listed.
const MOST_LISTED: usize = 100;

/// The command, as the server sees it.
pub(super) struct CommandHost {
    common: Arc<Common>,
    flags: Arc<AgentFlags>,
}

impl CommandHost {
    pub(super) fn new(common: Common, flags: AgentFlags) -> Self {
        Self { common: Arc::new(common), flags: Arc::new(flags) }
    }

    /// Runs work on a thread of its own, since the parts of a definition cannot move between threads.
    fn off_thread<T: Send + 'static, F: Future<Output = anyhow::Result<T>>>(
        &self,
        work: impl FnOnce(Arc<Common>) -> F + Send + 'static,
    ) -> HostFuture<'_, T> {
        Box::pin(async move {
            let (runtime, common) = (tokio::runtime::Handle::current(), self.common.clone());
            let work = AnyValue::of_work(move || runtime.block_on(work(common)));
            let done = tokio::task::spawn_blocking(work).await.map(AnyValue::into_value);
            done.map_err(anyhow::Error::from).flatten().map_err(|error| self.reason(&error))
        })
    }

    fn reason(&self, error: &anyhow::Error) -> HostError {
        HostError { code: code_of(error), message: message_of(error), hint: advice_of(&self.common, error) }
    }

    /// Returns what is trusted about a server.
    fn subject_of(directory: &Path, server: &OfferedServer) -> crate::trust::Subject {
        let definition = OfferedValues::canonical(server).to_string();
        trusted::of_editor_server(directory, &server.name, definition.as_bytes())
    }
}

impl EditorHost for CommandHost {
    fn prepare(&self, directory: PathBuf) -> HostFuture<'_, PreparedSession> {
        let flags = self.flags.clone();
        self.off_thread(move |common| async move {
            check_workspace(&directory).await?;
            let definition = flags.definition_in(&common, &directory)?;
            let values = OfferedValues::default();
            let definition = pin_servers_with(&common, definition, &values.options()).await?;
            let definition = with_served_models(&common, definition).await;
            // An agent that cannot be built is refused before anything is created.
            let built = built_agent(&common, &definition, &values)?;
            let place = OpenStore::existing_or_new_for(&common, &directory, Some(&directory))?;
            let session = place.runtime.new_id()?;
            let agent = SessionAgent { definition, built };
            let runtime = place.runtime;
            Ok(PreparedSession { runtime, session, agent, is_stored: false, is_changed: false })
        })
    }

    fn load(
        &self,
        directory: PathBuf,
        session: SessionId,
        servers: Vec<OfferedServer>,
    ) -> HostFuture<'_, PreparedSession> {
        self.off_thread(move |common| async move {
            let place = OpenStore::open(&OpenStore::address_in(&common, &directory)?)?;
            let view = place.view(session).await?;
            refuse_to_drive(&view)?;
            let mut definition = definition_of(&place, &view).await?;
            check_directory(&definition, &view, &directory)?;
            // The values of an editor's server are not recorded. One that is not offered any more cannot be started.
            let (values, is_changed) = OfferedValues::of_recorded(&servers, &mut definition);
            let built = built_agent(&common, &definition, &values)?;
            let agent = SessionAgent { definition, built };
            let runtime = place.runtime;
            Ok(PreparedSession { runtime, session, agent, is_stored: true, is_changed })
        })
    }

    fn build(&self, request: AgentRequest) -> HostFuture<'_, SessionAgent> {
        self.off_thread(move |common| async move {
            let AgentRequest { directory, mut definition, mode, servers } = request;
            if let Some(mode) = mode {
                change_mode(&mut definition, mode, &common, &directory)?;
            }
            let values = OfferedValues::of(&servers).only_for_servers(&definition);
            values.add_missing(&servers, &mut definition);
            let definition = pin_servers_with(&common, definition, &values.options()).await?;
            let built = built_agent(&common, &definition, &values)?;
            Ok(SessionAgent { definition, built })
        })
    }

    fn list(&self, directory: PathBuf) -> HostFuture<'_, Vec<ListedSession>> {
        self.off_thread(move |common| async move {
            let address = match OpenStore::address_in(&common, &directory) {
                Err(error) if code_of(&error) == ErrorCode::StoreNotFound => return Ok(Vec::new()),
                address => address?,
            };
            let place = OpenStore::open(&address)?;
            let shown = directory.to_string_lossy().into_owned();
            let query = SessionQuery::roots().with_workspace(shown).with_limit(MOST_LISTED);
            let page = place.runtime.sessions(query).await?;
            let listed = page.sessions.into_iter().map(|found| ListedSession {
                session: found.id(),
                directory: directory.clone(),
                title: Some(found.summary.mission.to_string()).filter(|title| !title.is_empty()),
                updated_at: Some(found.summary.updated_at.to_string()),
            });
            Ok(listed.collect())
        })
    }

    fn is_trusted(&self, directory: &Path, server: &OfferedServer) -> bool {
        let standing = Self::subject_of(directory, server).standing();
        self.common.trust || standing.is_ok_and(|standing| standing == TrustState::Trusted)
    }

    fn trust(&self, directory: &Path, server: &OfferedServer) -> Result<(), HostError> {
        Self::subject_of(directory, server).record().map_err(|error| self.reason(&error.into()))
    }

    fn user(&self) -> String {
        user_name()
    }

    fn command(&self, runtime: &Runtime, words: &str) -> String {
        self.common.naming(&runtime.opened_store().address).hint(words)
    }
}

/// Builds the agent of a definition, with the lasting rules of the user.
fn built_agent(
    common: &Common,
    definition: &AgentDefinition,
    values: &OfferedValues,
) -> anyhow::Result<BuiltAgent> {
    let mut built = build_agent_with(definition, values.options())?;
    built.agent = built.agent.approval_rules(common.config.approval_rules());
    Ok(built)
}

/// Fails if a directory cannot be the workspace of a session, such as a home directory, before anything is created for it.
async fn check_workspace(directory: &Path) -> anyhow::Result<()> {
    match Runtime::in_memory().uncovered_paths(directory).await {
        // Another session works there now. That is found out when a turn begins.
        Err(error) if error.code() == ErrorCode::WorkspaceHeld => Ok(()),
        opened => {
            opened?;
            Ok(())
        }
    }
}

/// Fails if a session works in another directory than the editor names.
fn check_directory(definition: &AgentDefinition, view: &JournalView, named: &Path) -> anyhow::Result<()> {
    let Some(own) = &definition.workspace.path else { return Ok(()) };
    let project = view.isolation().map(|isolated| PathBuf::from(&isolated.record.project));
    let is_named = |path: &Path| path == named || path.canonicalize().is_ok_and(|path| path == named);
    if is_named(own) || project.as_deref().is_some_and(is_named) {
        return Ok(());
    }
    let message = format!("the session works in {}, not in {}", own.display(), named.display());
    let hint = "open that directory in the editor, and load the session there";
    Err(CommandError::new(ErrorCode::Usage, message).with_hint(hint).into())
}

impl OfferedValues {
    /// Returns options that build an agent with these values.
    fn options(&self) -> BuildOptions<'static> {
        BuildOptions { key: Box::new(self.clone().lookup()), transport: None }
    }
}
