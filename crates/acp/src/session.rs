//! A session of an editor: its agent, and the turn that runs.
//!
//! One turn runs at a time. Its state is locked until it ends, so that the mode, the servers and the history are changed between turns
//! only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    self, AvailableCommand, AvailableCommandsUpdate, CurrentModeUpdate, PromptResponse, SessionNotification,
    SessionUpdate, ToolCallUpdate,
};
use agent_client_protocol::{Client, Error};
use backstitch::CancellationToken;
use backstitch::id::SessionId;
use tokio::sync::MutexGuard;

use crate::content::EditorPrompt;
use crate::error::{busy, invalid, of_host, of_runtime};
use crate::host::{AgentRequest, DecidedBy, EditorHost, OfferedServer, PreparedSession};
use crate::modes;
use crate::replay::{is_open, replay};
use crate::updates::text_chunk;

/// The commands of a conversation.
const COMMANDS: [(&str, &str); 4] = [
    ("resume", "Continue the turn that was interrupted"),
    ("rewind", "Undo the last message, or the last N: conversation and files"),
    ("undo", "Undo the latest rewind"),
    ("redo", "Repeat the rewind that was undone last"),
];

/// A session of an editor.
pub(crate) struct EditorSession {
    /// Its id in the protocol.
    pub(crate) id: schema::SessionId,
    pub(crate) session: SessionId,
    pub(crate) host: Arc<dyn EditorHost>,
    pub(crate) decided_by: DecidedBy,
    pub(crate) connection: ConnectionTo<Client>,
    /// Cancelled once the editor is gone, or the process is to end.
    pub(crate) closed: CancellationToken,
    /// What cancels the turn that runs.
    turn: Mutex<Option<CancellationToken>>,
    state: tokio::sync::Mutex<SessionState>,
}

/// What a turn works with.
pub(crate) struct SessionState {
    pub(crate) prepared: PreparedSession,
    /// The directory that the editor named.
    pub(crate) directory: PathBuf,
    /// Servers of the editor that the agent uses.
    pub(crate) servers: Vec<OfferedServer>,
    /// Servers of the editor that are not decided about.
    pub(crate) undecided: Vec<OfferedServer>,
}

impl SessionState {
    /// Returns the directory of the files: that of the editor, or the copy that an isolated session works in.
    pub(crate) fn files_directory(&self) -> PathBuf {
        let own = self.prepared.agent.definition.workspace.path.clone();
        own.unwrap_or_else(|| self.directory.clone())
    }
}

/// What all sessions of a connection have in common.
pub(crate) struct SessionContext {
    pub(crate) host: Arc<dyn EditorHost>,
    pub(crate) decided_by: DecidedBy,
    pub(crate) connection: ConnectionTo<Client>,
    pub(crate) closed: CancellationToken,
}

impl EditorSession {
    /// Creates a session. Servers that its agent has already are known, and the others are decided about later.
    pub(crate) fn new(
        context: SessionContext,
        prepared: PreparedSession,
        directory: PathBuf,
        servers: Vec<OfferedServer>,
    ) -> Self {
        let SessionContext { host, decided_by, connection, closed } = context;
        let (servers, undecided) = known_and_others(&prepared, servers);
        let session = prepared.session;
        Self {
            id: schema::SessionId::new(session.to_string()),
            session,
            host,
            decided_by,
            connection,
            closed,
            turn: Mutex::new(None),
            state: tokio::sync::Mutex::new(SessionState { prepared, directory, servers, undecided }),
        }
    }

    /// Returns the state, unless a turn runs.
    pub(crate) fn idle_state(&self) -> Result<MutexGuard<'_, SessionState>, Error> {
        self.state.try_lock().map_err(|_| busy())
    }

    /// Whether no turn runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Sends an update. What cannot be sent is in the journal.
    pub(crate) fn send(&self, update: SessionUpdate) {
        let sent = self.connection.send_notification(SessionNotification::new(self.id.clone(), update));
        if let Err(error) = sent {
            tracing::debug!(session = %self.session, %error, "an update could not be sent");
        }
    }

    /// Sends text of the program, as text of the agent.
    pub(crate) fn say(&self, text: &str) {
        self.send(text_chunk(text));
    }

    pub(crate) fn update_call(&self, update: ToolCallUpdate) {
        self.send(SessionUpdate::ToolCallUpdate(update));
    }

    /// Sends what a new conversation begins with.
    pub(crate) fn greet(&self, notes: &[String]) {
        let commands = COMMANDS.map(|(name, about)| AvailableCommand::new(name, about));
        let update = AvailableCommandsUpdate::new(commands.into());
        self.send(SessionUpdate::AvailableCommandsUpdate(update));
        for note in notes {
            self.say(&format!("> {note}\n\n"));
        }
    }

    /// Replays the conversation, and says what was interrupted.
    pub(crate) async fn show_history(&self) -> Result<(), Error> {
        let state = self.idle_state()?;
        let runtime = &state.prepared.runtime;
        let view = runtime.view(self.session).await.map_err(|error| of_runtime(&error))?;
        let directory = state.files_directory();
        let shown = replay(runtime, &view, &directory, |update| self.send(update)).await;
        shown.map_err(|error| of_runtime(&error))?;
        if is_open(&view) {
            self.say("\n\n> The last turn has not ended. `/resume` continues it; a message ends it and asks something else.\n\n");
        }
        Ok(())
    }

    /// Begins a turn. Fails if one runs.
    pub(crate) fn begin_turn(&self) -> Result<CancellationToken, Error> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.is_some() {
            return Err(busy());
        }
        let stop = CancellationToken::new();
        *turn = Some(stop.clone());
        Ok(stop)
    }

    /// Runs a turn that was begun, to its end.
    pub(crate) async fn prompt(
        &self,
        prompt: Vec<schema::ContentBlock>,
        stop: CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let ended = async {
            let prompt = EditorPrompt::of_blocks(prompt)?;
            let mut state = self.state.lock().await;
            self.run_turn(&mut state, prompt, &stop).await
        };
        let ended = ended.await;
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
        ended.map(PromptResponse::new)
    }

    /// Cancels the turn that runs, if one does.
    pub(crate) fn cancel(&self) {
        if let Some(stop) = &*self.turn.lock().unwrap_or_else(PoisonError::into_inner) {
            stop.cancel();
        }
    }

    /// Continues in another mode.
    pub(crate) async fn set_mode(&self, name: &str) -> Result<(), Error> {
        let mut state = self.idle_state()?;
        let definition = &state.prepared.agent.definition;
        if definition.mode.is_some_and(|mode| mode.as_str() == name) {
            return Ok(());
        }
        let Some(mode) = modes::offered_mode(definition, name) else {
            let advice = match name {
                "full" => {
                    "the mode full is confirmed by a person in a terminal: start `backstitch acp --mode full`"
                }
                _ => "the modes are plan, ask and auto",
            };
            return Err(invalid(format!("an editor cannot choose the mode {name:?}: {advice}")));
        };
        let request = AgentRequest {
            directory: state.directory.clone(),
            definition: definition.clone(),
            mode: Some(mode),
            servers: state.servers.clone(),
        };
        state.prepared.agent = self.host.build(request).await.map_err(|error| of_host(&error))?;
        state.prepared.is_changed = true;
        self.record_agent(&mut state).await
    }

    /// Records the agent, if it changed and the session is stored.
    pub(crate) async fn record_agent(&self, state: &mut SessionState) -> Result<(), Error> {
        let PreparedSession { runtime, agent, is_stored, is_changed, .. } = &mut state.prepared;
        if !*is_stored {
            // It is stored with this agent.
            *is_changed = false;
        }
        if *is_changed {
            let recorded = runtime.record_agent(self.session, &agent.definition).await;
            recorded.map_err(|error| of_runtime(&error))?;
            *is_changed = false;
        }
        Ok(())
    }

    /// Loads the agent as it is recorded, after a step through history or into a copy of the project.
    pub(crate) async fn reload(&self, state: &mut SessionState) -> Result<(), Error> {
        let mode = state.prepared.agent.definition.mode;
        let loaded = self.host.load(state.directory.clone(), self.session, state.servers.clone()).await;
        let loaded = loaded.map_err(|error| of_host(&error))?;
        (state.prepared.agent, state.prepared.is_changed) = (loaded.agent, loaded.is_changed);
        // A server that was added after the point is decided about again.
        let (known, unknown) = known_and_others(&state.prepared, std::mem::take(&mut state.servers));
        state.servers = known;
        state.undecided.extend(unknown);
        if let Some(now) = state.prepared.agent.definition.mode.filter(|now| Some(*now) != mode) {
            self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(now.as_str())));
        }
        Ok(())
    }
}

/// Checks the directory that an editor names. It is not created.
pub(crate) fn checked_directory(directory: &Path) -> Result<PathBuf, Error> {
    let shown = directory.display();
    if !directory.is_absolute() {
        return Err(invalid(format!("`cwd` has to be an absolute path, and {shown} is not")));
    }
    match directory.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(invalid(format!("`cwd` is not a directory: {shown}"))),
        Err(error) => Err(invalid(format!("`cwd` cannot be opened: {shown}: {error}"))),
    }
}

/// Divides servers into those that an agent has, and the others.
fn known_and_others(
    prepared: &PreparedSession,
    servers: Vec<OfferedServer>,
) -> (Vec<OfferedServer>, Vec<OfferedServer>) {
    let known = prepared.agent.definition.mcp_servers();
    servers.into_iter().partition(|server| known.iter().any(|other| other.name == server.name))
}
