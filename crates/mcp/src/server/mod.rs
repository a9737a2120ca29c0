//! The server: tools and history of one session for an MCP client.
//!
//! One handler serves clients of all protocol revisions: those that begin with a handshake, and those that do not.
//! Calls run as tasks of [`OutsideCalls`], so the end of a connection ends no call.

mod approval;
mod content;
mod form;
mod handler;
mod history;
mod host;
mod http;
mod offered;
mod plain;
mod progress;
mod questions;
mod requests;

use std::sync::Arc;

use backstitch_core::ports::BoxFuture;
use backstitch_runtime::OutsideCalls;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use handler::SessionHandler;
use host::HeldHost;
use requests::RunningRequests;

pub use approval::{ApprovalBy, ApprovalSettings};
pub use host::{HostError, HostFuture, OpenCalls, ServerHost, StoredSession, ToolOffer};
pub use http::{AccessRefusal, AccessToken, HttpAccess, InvalidToken};

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
    /// Creates a server over the sessions of a host.
    pub fn new(host: Arc<dyn ServerHost>) -> Self {
        Self { handler: SessionHandler::new(host) }
    }

    /// Creates the server of an engine, over a session that this process holds. It offers only the tools: no history,
    /// and decisions about calls come from the inbox alone.
    pub fn of_engine(calls: Arc<OutsideCalls>) -> Self {
        let mut handler = SessionHandler::new(Arc::new(HeldHost(calls)));
        (handler.has_history, handler.approvals) = (false, None);
        Self { handler }
    }

    /// Sets how calls that need approval are decided about. Default: by the client, if it can show a form.
    #[must_use]
    pub fn with_approvals(mut self, settings: ApprovalSettings) -> Self {
        self.handler.approvals = Some(settings);
        self
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
                // A client that leaves before it has said anything is not an error.
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
