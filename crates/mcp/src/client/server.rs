//! A server, and its tools.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::Effect;
use backstitch_core::message::Retry;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolHandler, ToolName, ToolOutcome};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::convert::outcome_of;
use super::error::ClientError;
use super::pinned::PinnedTool;
use super::spec::ServerSpec;

/// The longest delay before a server that keeps failing is started again.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Time limit of a call, unless the specification sets one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server. It is started when it is first needed, and again after it has ended. Clones share it.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

struct Shared {
    spec: ServerSpec,
    state: Mutex<State>,
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
        Self { shared: Arc::new(Shared { spec, state: Mutex::default() }) }
    }

    /// Starts the server if it does not run, and lists its tools.
    pub async fn list(&self) -> Result<Vec<PinnedTool>, ClientError> {
        Ok(self.connection().await?.tools().to_vec())
    }

    /// Returns the name under which an agent knows a tool of this server.
    pub fn tool_name(&self, tool: &str) -> Result<ToolName, ClientError> {
        let server = &self.shared.spec.name;
        ToolName::new(&format!("{server}__{tool}")).map_err(|error| ClientError::Name {
            server: server.clone(),
            tool: tool.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Makes a tool of a pinned one.
    pub fn tool(&self, pinned: &PinnedTool, effect: Option<Effect>) -> Result<Tool, ClientError> {
        let name = self.tool_name(&pinned.name)?;
        if pinned.parameters.get("type").and_then(Value::as_str) != Some("object") {
            let (server, tool) = (self.shared.spec.name.clone(), pinned.name.clone());
            return Err(ClientError::Schema { server, tool });
        }
        let builder =
            Tool::builder(name.as_str(), &pinned.description).map_err(|error| ClientError::Name {
                server: self.shared.spec.name.clone(),
                tool: pinned.name.clone(),
                reason: error.to_string(),
            })?;
        let handler = ServerTool { server: self.clone(), pinned: pinned.clone() };
        Ok(builder
            .effect(effect.unwrap_or_else(|| pinned.effect()))
            .timeout(self.shared.spec.timeout.unwrap_or(TIMEOUT))
            .parameters(pinned.parameters.clone())
            .build(Arc::new(handler)))
    }

    /// Ends the server, if it runs.
    pub async fn end(&self) {
        self.shared.state.lock().await.running = None;
    }

    /// Returns the running server, or starts it. After failures it is started again with a growing delay.
    async fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let mut state = self.shared.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| !running.is_closed()) {
            return Ok(running.clone());
        }
        state.running = None;
        if let (Some(failed_at), failures @ 1..) = (state.failed_at, state.failures) {
            let delay = Duration::from_millis(100).saturating_mul(1 << failures.min(10)).min(LONGEST_DELAY);
            tokio::time::sleep_until(failed_at + delay).await;
        }
        match Connection::open(&self.shared.spec).await {
            Ok(opened) => {
                let opened = Arc::new(opened);
                (state.failures, state.failed_at) = (0, None);
                state.running = Some(opened.clone());
                Ok(opened)
            }
            Err(error) => {
                (state.failures, state.failed_at) = (state.failures.saturating_add(1), Some(Instant::now()));
                Err(error)
            }
        }
    }

    /// Forgets a server, whose processes then end with its last user.
    fn forget(&self, connection: &Arc<Connection>) {
        if let Ok(mut state) = self.shared.state.try_lock()
            && state.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, connection))
        {
            state.running = None;
        }
    }
}

/// A tool of a server.
struct ServerTool {
    server: McpServer,
    pinned: PinnedTool,
}

/// Ends the server of a call that is stopped before it has an answer: the server could still be writing files that
/// are about to be restored.
struct EndUnlessAnswered<'a> {
    server: &'a McpServer,
    connection: Arc<Connection>,
    is_answered: bool,
}

impl Drop for EndUnlessAnswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection.kill();
            self.server.forget(&self.connection);
        }
    }
}

impl ServerTool {
    async fn run(&self, arguments: Map<String, Value>) -> ToolOutcome {
        let connection =
            self.server.connection().await.map_err(|error| failure("mcp_unavailable", &error))?;
        let now = connection.tools().iter().find(|tool| tool.name == self.pinned.name);
        let name = &self.server.shared.spec.name;
        match now {
            None => {
                let told = format!("the MCP server {name:?} no longer has the tool {:?}", self.pinned.name);
                return Err(refused("mcp_changed", told));
            }
            Some(now) if !self.pinned.is_compatible(now) => {
                let told = format!(
                    "the parameters of {:?} have changed at the MCP server {name:?} since this session began; a new session has the new ones",
                    self.pinned.name
                );
                return Err(refused("mcp_changed", told));
            }
            Some(_) => {}
        }
        let mut guard =
            EndUnlessAnswered { server: &self.server, connection: connection.clone(), is_answered: false };
        match connection.call(&self.pinned.name, arguments).await {
            Ok(result) => {
                guard.is_answered = true;
                outcome_of(result)
            }
            Err(rmcp::ServiceError::McpError(error)) => {
                guard.is_answered = true;
                Err(refused("mcp_error", error.message.into_owned()))
            }
            Err(error) => {
                // The stream of errors may end a moment after the server.
                tokio::time::sleep(Duration::from_millis(50)).await;
                let told = format!(
                    "the MCP server {name:?} ended before it answered: {error}{}",
                    connection.stderr()
                );
                Err(ToolError::Failed {
                    kind: "mcp_unavailable".to_owned(),
                    message: told,
                    retry: Retry::Allowed,
                    source: None,
                })
            }
        }
    }
}

impl ToolHandler for ServerTool {
    fn call(&self, _: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(self.run(arguments))
    }
}

fn failure(kind: &str, error: &ClientError) -> ToolError {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    ToolError::Failed {
        kind: kind.to_owned(),
        message: format!("{error}{source}"),
        retry: Retry::Allowed,
        source: None,
    }
}

fn refused(kind: &str, message: String) -> ToolError {
    ToolError::Failed { kind: kind.to_owned(), message, retry: Retry::Refused, source: None }
}
