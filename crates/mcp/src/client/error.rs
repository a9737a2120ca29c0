//! Why a server cannot be used.

use backstitch_core::ports::ProcessError;

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Its program cannot be started.
    #[error("the MCP server {server:?} cannot be started")]
    Start {
        /// The name of the server.
        server: String,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// It does not answer as the protocol requires.
    #[error("the MCP server {server:?} does not answer as expected: {reason}{stderr}")]
    Protocol {
        /// The name of the server.
        server: String,
        /// The error of the protocol.
        reason: String,
        /// The end of its standard error, after a newline; empty if there is none.
        stderr: String,
    },
    /// It did not answer in time.
    #[error("the MCP server {server:?} did not answer within {seconds} s{stderr}")]
    Timeout {
        /// The name of the server.
        server: String,
        /// The time limit.
        seconds: f64,
        /// The end of its standard error, after a newline; empty if there is none.
        stderr: String,
    },
    /// A tool has a name that no provider accepts.
    #[error("the tool {tool:?} of the MCP server {server:?} cannot be offered: {reason}")]
    Name {
        /// The name of the server.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// The schema of a tool is none.
    #[error(
        "the tool {tool:?} of the MCP server {server:?} has parameters that are not a JSON Schema of an object"
    )]
    Schema {
        /// The name of the server.
        server: String,
        /// The server's name of the tool.
        tool: String,
    },
}
