//! The server: tools and history of one session for an MCP client.
//!
//! One handler serves clients of all protocol revisions: those that begin with a handshake, and those that do not.
//! Calls run as tasks of [`OutsideCalls`], so the end of a connection ends no call.

mod approval;
mod content;
mod handler;
mod history;
mod http;
mod progress;
mod questions;
mod requests;

use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::ports::BoxFuture;
use backstitch_runtime::OutsideCalls;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio_pipes;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use handler::SessionHandler;
use requests::RunningRequests;

pub use http::{AccessToken, HttpAccess, InvalidToken};

/// A future of a [`ServerHost`].
pub type HostFuture<'a, T> = BoxFuture<'a, T>;

/// What the server needs from the program that it runs in. An error is a text for the client.
pub trait ServerHost: Send + Sync + 'static {
    /// Compares the files, the state and the conversation of two points.
    fn diff(&self, from: String, to: String) -> HostFuture<'_, Result<Value, String>>;

    /// Starts another session from a point.
    fn fork(&self, point: String) -> HostFuture<'_, Result<Value, String>>;

    /// Reports that a call waits for approval, and returns a text that says where it can be approved.
    fn waits(&self, call: CallId, name: &str) -> String;
}

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client did not begin as the protocol requires.
    #[error("the client does not speak MCP: {0}")]
    Opening(String),
    /// The connection broke.
    #[error("the connection to the client broke: {0}")]
    Connection(String),
}

/// Offers the tools and the history of one session to MCP clients.
#[derive(Clone)]
pub struct ToolServer {
    handler: SessionHandler,
}

impl ToolServer {
    /// Creates a server over a session. `name` is the name of the agent, and `instructions` are for the client's model.
    pub fn new(
        calls: Arc<OutsideCalls>,
        host: Arc<dyn ServerHost>,
        name: &str,
        instructions: Option<String>,
    ) -> Self {
        Self { handler: SessionHandler::new(calls, host, name, instructions) }
    }

    /// Offers only the tools: no history, and decisions about calls come from the inbox alone.
    #[must_use]
    pub fn tools_only(mut self) -> Self {
        self.handler = self.handler.tools_only();
        self
    }

    /// Returns the names of the tools that are offered, those of the history last.
    pub fn tool_names(&self) -> Vec<String> {
        self.handler.tool_names()
    }

    /// Serves the client at standard input and output until its input ends, or until `stop` is cancelled. Calls
    /// may still be running then.
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<(), ServeError> {
        let (input, output) = stdio_pipes();
        self.serve(input, output, stop).await
    }

    /// Serves the client at the other end of a pair of streams, such as the halves of a socket.
    pub async fn serve<R, W>(self, input: R, output: W, stop: CancellationToken) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        self.serve_streams((Box::new(input), Box::new(output)), stop).await
    }

    fn serve_streams(
        self,
        streams: (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>),
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), ServeError>> {
        Box::pin(async move {
            let handler = self.handler.of_connection(RunningRequests::default());
            let service = match handler.serve_with_ct(streams, stop.clone()).await {
                Ok(service) => service,
                // A client that leaves before it has said anything is no error.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
                Err(_) if stop.is_cancelled() => return Ok(()),
                Err(error) => return Err(ServeError::Opening(error.to_string())),
            };
            match service.waiting().await {
                Ok(_) => Ok(()),
                Err(error) => Err(ServeError::Connection(error.to_string())),
            }
        })
    }
}
