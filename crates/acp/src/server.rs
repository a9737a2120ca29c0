//! The server: the methods of the protocol, and the sessions of one connection.
//!
//! Each request is handled by a task of its own, so that a long one keeps no other waiting. When the editor closes its end, and when the
//! process is to end, the turns that run are paused, and waited for.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpCapabilities, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, SessionCapabilities, SessionCloseCapabilities, SessionId as ShownId, SessionInfo,
    SessionListCapabilities, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, JsonRpcResponse, Lines, on_receive_notification, on_receive_request,
};
use backstitch::CancellationToken;
use backstitch::id::SessionId;
use backstitch::ports::BoxFuture;
use tokio_util::task::TaskTracker;

use crate::error::{busy, invalid, of_host, unknown_session};
use crate::host::{DecidedBy, EditorHost};
use crate::lines::{incoming, outgoing};
use crate::modes;
use crate::rewind::{RewindPointsRequest, RewindRequest, capability};
use crate::servers;
use crate::session::{EditorSession, SessionContext, checked_directory};

/// Maximum number of sessions of one connection.
const MOST_SESSIONS: usize = 256;

/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The connection to the editor broke.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the editor broke: {0}")]
pub struct ServeError(String);

/// Offers agents to an editor.
#[derive(Clone)]
pub struct EditorServer(Arc<ServerState>);

struct ServerState {
    host: Arc<dyn EditorHost>,
    decided_by: DecidedBy,
    sessions: Mutex<HashMap<SessionId, Arc<EditorSession>>>,
    tasks: TaskTracker,
    /// Cancelled once the editor is gone, or the process is to end.
    closed: CancellationToken,
}

impl EditorServer {
    /// Creates a server.
    pub fn new(host: Arc<dyn EditorHost>, decided_by: DecidedBy) -> Self {
        let (sessions, tasks, closed) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        Self(Arc::new(ServerState { host, decided_by, sessions, tasks, closed }))
    }

    /// Serves the editor at standard input and output until its input ends, or until `stop` is cancelled. No turn runs any more
    /// when this returns.
    pub fn serve(self, stop: CancellationToken) -> Pin<Box<dyn Future<Output = Result<(), ServeError>>>> {
        Box::pin(async move {
            let (sink, written) = outgoing();
            let state = self.0.clone();
            let ending = async move |connection: ConnectionTo<Client>| {
                tokio::select! {
                    () = connection.incoming_closed() => {}
                    () = stop.cancelled() => {}
                }
                // The connection still works meanwhile, so that the editor sees how the turns end.
                state.end().await;
                Ok(())
            };
            let served = self.connect(sink, ending).await;
            // An editor that is gone does not read the last lines.
            let is_over = self.0.closed.is_cancelled();
            self.0.end().await;
            let _ = tokio::time::timeout(LAST_LINES, written).await;
            match served {
                Err(error) if !is_over => Err(ServeError(error.to_string())),
                _ => Ok(()),
            }
        })
    }

    async fn connect(
        &self,
        sink: impl futures_util::Sink<String, Error = std::io::Error> + Send + 'static,
        ending: impl AsyncFnOnce(ConnectionTo<Client>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let state = || self.0.clone();
        Agent
            .v1()
            .name("backstitch")
            .on_receive_request(
                async move |_: InitializeRequest, responder: Responder<InitializeResponse>, _| {
                    responder.respond(introduction())
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: NewSessionRequest, responder, connection| {
                        let own = state.clone();
                        let work = async move { own.create(request, connection).await };
                        state.answer_then(responder, work, |(session, notes)| session.greet(&notes))
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: LoadSessionRequest, responder, connection| {
                        let own = state.clone();
                        state.answer(responder, async move { own.load(request, connection).await })
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: ListSessionsRequest, responder, _| {
                        let own = state.clone();
                        state.answer(responder, async move { own.list(request).await })
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: PromptRequest, responder, _| {
                        // The turn begins here, so that a cancellation that follows finds it.
                        let session = state.session(&request.session_id)?;
                        let stop = session.begin_turn()?;
                        state.answer(responder, async move { session.prompt(request.prompt, stop).await })
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: SetSessionModeRequest, responder, _| {
                        let session = state.session(&request.session_id)?;
                        let changed = async move {
                            session.set_mode(&request.mode_id.0).await?;
                            Ok(SetSessionModeResponse::new())
                        };
                        state.answer(responder, changed)
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: CloseSessionRequest,
                                responder: Responder<CloseSessionResponse>,
                                _| {
                        state.close(&request.session_id)?;
                        responder.respond(CloseSessionResponse::new())
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: RewindPointsRequest, responder, _| {
                        let session = state.session(&ShownId::new(request.session_id))?;
                        state.answer(responder, async move { session.list_rewind_points().await })
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                {
                    let state = state();
                    async move |request: RewindRequest, responder, _| {
                        let session = state.session(&ShownId::new(request.session_id.clone()))?;
                        state.answer(responder, async move { session.rewind(request).await })
                    }
                },
                on_receive_request!(),
            )
            .on_receive_notification(
                {
                    let state = state();
                    async move |request: CancelNotification, _| {
                        state.session(&request.session_id)?.cancel();
                        Ok(())
                    }
                },
                on_receive_notification!(),
            )
            .connect_with(Lines::new(sink, incoming()), ending)
            .await
    }
}

impl ServerState {
    /// Answers a request once its work is done, in a task.
    fn answer<T: JsonRpcResponse>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<(), Error> {
        self.answer_then(responder, async move { work.await.map(|answer| (answer, ())) }, |()| ())
    }

    /// Like [`answer`](Self::answer), with what follows the answer.
    fn answer_then<T: JsonRpcResponse, M: Send + 'static>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<(T, M), Error>> + Send + 'static,
        then: impl FnOnce(M) + Send + 'static,
    ) -> Result<(), Error> {
        // On the heap: a task is compiled again for each kind of future.
        let answering: BoxFuture<'static, ()> = Box::pin(async move {
            let sent = match work.await {
                Ok((answer, more)) => responder.respond(answer).map(|()| then(more)),
                Err(error) => responder.respond_with_error(error),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "an answer could not be sent");
            }
        });
        self.tasks.spawn(answering);
        Ok(())
    }

    fn session(&self, id: &ShownId) -> Result<Arc<EditorSession>, Error> {
        let known = id.0.parse::<SessionId>().ok();
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        known.and_then(|id| sessions.get(&id).cloned()).ok_or_else(|| unknown_session(id))
    }

    fn context(&self, connection: ConnectionTo<Client>) -> SessionContext {
        let (host, closed) = (self.host.clone(), self.closed.clone());
        SessionContext { host, decided_by: self.decided_by, connection, closed }
    }

    /// Adds a session, unless another one of its id has a turn that runs.
    fn add(&self, session: EditorSession) -> Result<Arc<EditorSession>, Error> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.get(&session.session).is_some_and(|known| !known.is_idle()) {
            return Err(busy());
        }
        if sessions.len() >= MOST_SESSIONS && !sessions.contains_key(&session.session) {
            return Err(invalid("this connection has 256 sessions: close one, or start another process"));
        }
        let session = Arc::new(session);
        sessions.insert(session.session, session.clone());
        Ok(session)
    }

    async fn create(
        &self,
        request: NewSessionRequest,
        connection: ConnectionTo<Client>,
    ) -> Result<(NewSessionResponse, (Arc<EditorSession>, Vec<String>)), Error> {
        let directory = checked_directory(&request.cwd)?;
        refuse_directories(&request.additional_directories)?;
        let (servers, notes) = servers::of_request(request.mcp_servers);
        let prepared = self.host.prepare(directory.clone()).await.map_err(|error| of_host(&error))?;
        let modes = modes::state_of(&prepared.agent.definition);
        let session = EditorSession::new(self.context(connection), prepared, directory, servers);
        let session = self.add(session)?;
        // The editor learns the id with the answer, so what it shows of the session follows.
        Ok((NewSessionResponse::new(session.id.clone()).modes(modes), (session, notes)))
    }

    async fn load(
        &self,
        request: LoadSessionRequest,
        connection: ConnectionTo<Client>,
    ) -> Result<LoadSessionResponse, Error> {
        let directory = checked_directory(&request.cwd)?;
        refuse_directories(&request.additional_directories)?;
        let id: SessionId = request.session_id.0.parse().map_err(|_| unknown_session(&request.session_id))?;
        let (servers, notes) = servers::of_request(request.mcp_servers);
        let prepared = self.host.load(directory.clone(), id, servers.clone()).await;
        let prepared = prepared.map_err(|error| of_host(&error))?;
        let modes = modes::state_of(&prepared.agent.definition);
        let session = EditorSession::new(self.context(connection), prepared, directory, servers);
        let session = self.add(session)?;
        session.show_history().await?;
        session.greet(&notes);
        Ok(LoadSessionResponse::new().modes(modes))
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let here = || std::env::current_dir().map_err(Error::into_internal_error);
        let directory = request.cwd.map_or_else(here, Ok)?;
        let directory = checked_directory(&directory)?;
        let listed = self.host.list(directory).await.map_err(|error| of_host(&error))?;
        let sessions = listed.into_iter().map(|listed| {
            SessionInfo::new(listed.session.to_string(), listed.directory)
                .title(listed.title)
                .updated_at(listed.updated_at)
        });
        Ok(ListSessionsResponse::new(sessions.collect()))
    }

    /// Cancels the turn of a session, and forgets it. It stays in the store.
    fn close(&self, id: &ShownId) -> Result<(), Error> {
        let session = self.session(id)?;
        session.cancel();
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.session);
        Ok(())
    }

    /// Pauses all turns, and waits until they have ended.
    async fn end(&self) {
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Refuses further directories: a session has one workspace.
fn refuse_directories(directories: &[std::path::PathBuf]) -> Result<(), Error> {
    match directories.first() {
        None => Ok(()),
        Some(_) => Err(invalid("`additionalDirectories` is not supported: a session works in one directory")),
    }
}

/// Returns what the agent can do.
fn introduction() -> InitializeResponse {
    let prompts = PromptCapabilities::new().image(true).embedded_context(true);
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(
            Implementation::new("backstitch", env!("CARGO_PKG_VERSION")).title("Backstitch".to_owned()),
        )
        .meta(capability())
}
