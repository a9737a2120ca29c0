//! A server, and its tools.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as BriefMutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use backstitch_core::digest::Digest;
use backstitch_core::journal::{CoveredDigests, Effect};
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{
    CallInspection, InspectionMoment, Tool, ToolContext, ToolError, ToolHandler, ToolName, ToolOutcome,
    with_causes,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::address::{is_forgotten, of_request};
use super::change::ToolListChange;
use super::connection::{Connection, shown};
use super::convert::outcome_of;
use super::error::ClientError;
use super::incoming::reason_of;
use super::listing::ToolListing;
use super::pinned::PinnedTool;
use super::questions::RecordedQuestions;
use super::spec::ServerSpec;

/// The longest delay before a server that keeps failing is started again.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Time limit of a call, unless the specification sets one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The longest text of a report of progress, in characters.
const LONGEST_PROGRESS: usize = 400;

/// The number of directories above which the programs that no call uses are ended.
const MANY_PROGRAMS: usize = 8;

/// A server. It is started or reached when it is first needed, and again after it has ended. Clones share it. A program
/// works in the directory of the session whose call needs it, so it is started once for each directory.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

/// The states of a server, by directory. An address, and a program without a workspace, have none.
type States = HashMap<Option<PathBuf>, Arc<Mutex<State>>>;

struct Shared {
    spec: ServerSpec,
    states: BriefMutex<States>,
    pinned: OnceLock<PinnedList>,
}

/// The tools that a session began with.
struct PinnedList {
    tools: Vec<PinnedTool>,
    /// Whether a tool would be offered.
    offers: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

#[derive(Default)]
struct State {
    running: Option<Arc<Connection>>,
    /// The number of failures to start it, in a row.
    failures: u32,
    /// When the latest one happened.
    failed_at: Option<Instant>,
}

impl McpServer {
    /// Creates a server that is not running yet.
    pub fn new(spec: ServerSpec) -> Self {
        Self { shared: Arc::new(Shared { spec, states: BriefMutex::default(), pinned: OnceLock::new() }) }
    }

    /// Starts the server if it does not run, and lists its tools.
    pub fn list(&self) -> BoxFuture<'_, Result<ToolListing, ClientError>> {
        Box::pin(async move {
            let ToolListing { mut tools, mut notes } = self.connection(None).await?.listing.clone();
            let mut note = |error: ClientError| notes.push(error.to_string());
            tools.retain(|tool| self.tool_name(&tool.name).map_err(&mut note).is_ok());
            Ok(ToolListing { tools, notes })
        })
    }

    /// Returns the name under which an agent knows a tool of this server.
    pub fn tool_name(&self, tool: &str) -> Result<ToolName, ClientError> {
        let name = ToolName::new(&format!("{}__{tool}", self.shared.spec.name));
        name.map_err(|error| self.name_error(tool, error.to_string()))
    }

    fn name_error(&self, tool: &str, reason: String) -> ClientError {
        ClientError::Name { server: self.shared.spec.name.clone(), tool: tool.to_owned(), reason }
    }

    /// Makes a tool of a pinned one.
    pub fn tool(&self, pinned: &PinnedTool, effect: Option<Effect>) -> Result<Tool, ClientError> {
        let name = self.tool_name(&pinned.name)?;
        if pinned.parameters.get("type").and_then(Value::as_str) != Some("object") {
            let (server, tool) = (self.shared.spec.name.clone(), pinned.name.clone());
            return Err(ClientError::Schema { server, tool });
        }
        let builder = Tool::builder(name.as_str(), &pinned.description)
            .map_err(|error| self.name_error(&pinned.name, error.to_string()))?;
        let handler =
            ServerTool { server: self.clone(), pinned: pinned.clone(), approved: BriefMutex::default() };
        Ok(builder
            .effect(effect.unwrap_or_else(|| pinned.effect()))
            .timeout(self.shared.spec.timeout.unwrap_or(TIMEOUT))
            .parameters(pinned.parameters.clone())
            .build(Arc::new(handler)))
    }

    /// Sets the tools that the session began with, and which others would be offered. From then on the first call of
    /// each connection records how the tools of the server differ, if they do.
    pub fn compare_with(
        &self,
        tools: Vec<PinnedTool>,
        offers: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) {
        let _ = self.shared.pinned.set(PinnedList { tools, offers: Box::new(offers) });
    }

    /// Returns how the tools differ from the pinned ones, once for each connection.
    fn change(&self, connection: &Connection) -> Option<ToolListChange> {
        let pinned = self.shared.pinned.get()?;
        if !connection.is_first_use() {
            return None;
        }
        let offered = connection.listing.tools.iter().filter(|tool| (pinned.offers)(&tool.name));
        let offered: Vec<PinnedTool> = offered.cloned().collect();
        Some(ToolListChange::between(&pinned.tools, &offered)).filter(|change| !change.is_empty())
    }

    /// Returns what the server is.
    pub(super) fn spec(&self) -> &ServerSpec {
        &self.shared.spec
    }

    /// Ends the server, if it runs.
    pub fn end(&self) {
        self.states().clear();
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.shared.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the server for a directory. If there are many, those that are not in use are ended.
    fn state_in(&self, directory: Option<PathBuf>) -> Arc<Mutex<State>> {
        let mut states = self.states();
        if states.len() >= MANY_PROGRAMS && !states.contains_key(&directory) {
            states.retain(|_, state| match state.try_lock() {
                Ok(state) => state.running.as_ref().is_some_and(|running| Arc::strong_count(running) > 1),
                Err(_) => true,
            });
        }
        states.entry(directory).or_default().clone()
    }

    /// Returns the running server, or starts it, in the directory of a session. After failures it is started again with a
    /// growing delay.
    pub(super) async fn connection(&self, directory: Option<&Path>) -> Result<Arc<Connection>, ClientError> {
        let spec = self.shared.spec.in_directory(directory);
        let state = self.state_in(spec.directory().map(Path::to_owned));
        let mut state = state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| !running.is_closed()) {
            return Ok(running.clone());
        }
        state.running = None;
        if let (Some(failed_at), failures @ 1..) = (state.failed_at, state.failures) {
            let delay = Duration::from_millis(100).saturating_mul(1 << failures.min(10)).min(LONGEST_DELAY);
            tokio::time::sleep_until(failed_at + delay).await;
        }
        let opened = Connection::open(&spec).await.map(Arc::new);
        state.running = opened.as_ref().ok().cloned();
        (state.failures, state.failed_at) = match &opened {
            Ok(_) => (0, None),
            Err(_) => (state.failures.saturating_add(1), Some(Instant::now())),
        };
        opened
    }

    /// Forgets a server, whose processes then end with its last user.
    fn forget(&self, connection: &Arc<Connection>) {
        for state in self.states().values() {
            if let Ok(mut state) = state.try_lock()
                && state.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, connection))
            {
                state.running = None;
            }
        }
    }
}

/// A tool of a server.
struct ServerTool {
    server: McpServer,
    pinned: PinnedTool,
    /// Digest of the definition that a call was approved with last, which may have another description than the pinned one.
    approved: BriefMutex<Option<Digest>>,
}

/// Ends the program of a call that is stopped before it has an answer: it could still be writing files that are about
/// to be restored. A server elsewhere gets a notification that the call is cancelled, and serves other calls.
struct EndUnlessAnswered<'a> {
    server: &'a McpServer,
    connection: Arc<Connection>,
    is_answered: bool,
}

impl Drop for EndUnlessAnswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.connection.is_program {
            self.connection.kill();
            self.server.forget(&self.connection);
        }
    }
}

impl ServerTool {
    async fn run(&self, context: &ToolContext, arguments: Map<String, Value>) -> ToolOutcome {
        // A server that was started again, or that forgets its clients after some time, is asked a second time.
        for _ in 0..2 {
            if let Some(outcome) = self.send(context, arguments.clone()).await? {
                return outcome;
            }
        }
        let name = &self.server.shared.spec.name;
        Err(unavailable(format!("the MCP server {name:?} forgets its clients at once")))
    }

    /// Sends a call over the connection, or over a new one. Returns `None` if the server no longer knows this client, and
    /// nothing was run.
    async fn send(
        &self,
        context: &ToolContext,
        arguments: Map<String, Value>,
    ) -> Result<Option<ToolOutcome>, ToolError> {
        let connection = self.connect(context.directory().as_deref()).await?;
        if let Some(change) = self.server.change(&connection) {
            let name = format!("compare the tools of {}", self.server.shared.spec.name);
            context.step(&name, async { Ok(change) }).await?;
        }
        self.find_in(&connection.listing)?;
        if let Some(approved) = context.approved() {
            let Some(now) = self.list_over(&connection).await? else { return Ok(None) };
            let now = now.digest();
            if approved.covered != self.covered(now) {
                let (tool, name) = (&self.pinned.name, &self.server.shared.spec.name);
                let message = format!(
                    "the definition of {tool:?} at the MCP server {name:?} has changed since a person approved the call; it was not sent"
                );
                return Err(ToolError::of_kind("mcp_changed", message));
            }
            *self.approved_digest() = Some(now);
        }
        let spec = &self.server.shared.spec;
        let mut guard =
            EndUnlessAnswered { server: &self.server, connection: connection.clone(), is_answered: false };
        let report = |text: String, fraction| {
            let text = context.secrets().redact(&text).chars().take(LONGEST_PROGRESS).collect::<String>();
            context.progress(text, fraction);
        };
        let questions = RecordedQuestions::new(context, &spec.person);
        let ask = |question| -> BoxFuture<'_, _> { Box::pin(questions.ask(question)) };
        let error = match connection.call(&self.pinned.name, arguments, call_key(context), report, ask).await
        {
            Ok(result) => {
                guard.is_answered = true;
                return Ok(Some(outcome_of(result)));
            }
            Err(rmcp::ServiceError::McpError(error)) => {
                guard.is_answered = true;
                return Err(match reason_of(&error) {
                    Some(reason) => {
                        let reason = shown(spec, reason);
                        let message = format!("the MCP server {:?} ran the call, but {reason}", spec.name);
                        ToolError::of_kind("mcp_answer", message)
                    }
                    None => ToolError::of_kind("mcp_error", spec.secrets().redact(&error.message)),
                });
            }
            Err(error) => error,
        };
        self.server.forget(&connection);
        if is_forgotten(&error) {
            return Ok(None);
        }
        Err(unavailable(format!(
            "the MCP server {:?} ended before it answered: {}{}",
            spec.name,
            shown(spec, &of_request(&error)),
            connection.last_words().await
        )))
    }

    fn approved_digest(&self) -> MutexGuard<'_, Option<Digest>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what a person approves beside the arguments: the definition of the tool, by its digest.
    fn covered(&self, definition: Digest) -> CoveredDigests {
        let name = format!(
            "the definition of {:?} at the MCP server {:?}",
            self.pinned.name, self.server.shared.spec.name
        );
        CoveredDigests::from([(name, definition)])
    }

    async fn connect(&self, directory: Option<&Path>) -> Result<Arc<Connection>, ToolError> {
        let connection = self.server.connection(directory).await;
        connection.map_err(|error| unavailable(with_causes(&error)))
    }

    /// Asks the server for the definition of the tool. Returns `None` if the connection is of no use any more, as after a long
    /// wait for a person; the next one is new. Fails as [`find_in`](Self::find_in) does.
    async fn list_over(&self, connection: &Arc<Connection>) -> Result<Option<PinnedTool>, ToolError> {
        match connection.list_again(&self.server.shared.spec).await {
            Ok(listing) => self.find_in(&listing).cloned().map(Some),
            Err(ClientError::Protocol { .. }) if !connection.is_program || connection.is_closed() => {
                self.server.forget(connection);
                Ok(None)
            }
            Err(error) => Err(unavailable(with_causes(&error))),
        }
    }

    /// Returns the tool in a list of the server. Fails if it is gone, or has other parameters than it was pinned with.
    fn find_in<'a>(&self, listing: &'a ToolListing) -> Result<&'a PinnedTool, ToolError> {
        let (tool, name) = (&self.pinned.name, &self.server.shared.spec.name);
        let message = match listing.tools.iter().find(|listed| listed.name == *tool) {
            Some(now) if self.pinned.is_compatible(now) => return Ok(now),
            Some(_) => format!(
                "the parameters of {tool:?} have changed at the MCP server {name:?} since this session began; a new session has the new ones"
            ),
            None => format!("the MCP server {name:?} no longer has the tool {tool:?}"),
        };
        Err(ToolError::of_kind("mcp_changed", message))
    }
}

impl ToolHandler for ServerTool {
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move { self.run(&context, arguments).await })
    }

    /// A person is asked about the tool as the session knows it, or as it was approved before. Right before the start, the
    /// server is asked. A tool that cannot be called any more is an error, so that nobody is asked about it again.
    fn inspect<'a>(&'a self, call: CallInspection<'a>) -> BoxFuture<'a, Result<CoveredDigests, ToolError>> {
        Box::pin(async move {
            if call.moment == InspectionMoment::Question {
                let approved = *self.approved_digest();
                return Ok(self.covered(approved.unwrap_or_else(|| self.pinned.digest())));
            }
            let connection = self.connect(call.directory).await?;
            let now = match self.list_over(&connection).await? {
                Some(now) => now,
                // The list of a new connection is new.
                None => self.find_in(&self.connect(call.directory).await?.listing)?.clone(),
            };
            Ok(self.covered(now.digest()))
        })
    }
}

/// Returns the key by which a server recognizes a call that is repeated after a crash. An attempt that follows a failure
/// has a key of its own, since the failure is the recorded result of the other one.
fn call_key(context: &ToolContext) -> String {
    let key = context.idempotency_key();
    if context.attempt() > 1 && !context.is_resume() {
        return format!("{key}-{}", context.attempt());
    }
    key.to_string()
}

fn unavailable(message: String) -> ToolError {
    ToolError::retryable("mcp_unavailable", message)
}
