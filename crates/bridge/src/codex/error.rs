//! Why Codex could not do what it was asked for.

use std::io;

use backstitch_core::ports::ProcessError;

use super::wire::WireError;

/// A failure of the app-server, or of the way to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppServerError {
    /// The program is not installed.
    #[error("the program `{program}` was not found")]
    Missing {
        /// The program.
        program: String,
    },
    /// The program cannot be started.
    #[error("`{program}` cannot be started")]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// The program has ended.
    #[error("Codex has ended{}", said(.stderr))]
    Ended {
        /// The end of its standard error.
        stderr: String,
    },
    /// Its streams fail.
    #[error("the connection to Codex failed")]
    Stream(#[source] io::Error),
    /// It sent something that is no message.
    #[error("Codex sent a line that is no message: {0}")]
    Wire(WireError),
    /// It does not answer.
    #[error("Codex did not answer `{method}` within {seconds} seconds{}", said(.stderr))]
    Silent {
        /// The request.
        method: String,
        /// The limit.
        seconds: u64,
        /// The end of its standard error.
        stderr: String,
    },
    /// It refuses a request.
    #[error("Codex refused `{method}`: {message}")]
    Refused {
        /// The request.
        method: String,
        /// Its number for the reason.
        code: i64,
        /// The reason.
        message: String,
    },
    /// An answer lacks what is needed.
    #[error("the answer of Codex to `{method}` has no `{field}`; this version of Codex is not supported")]
    Incomplete {
        /// The request.
        method: String,
        /// The missing field.
        field: &'static str,
    },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") }
}
