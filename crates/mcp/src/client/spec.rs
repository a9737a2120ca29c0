//! The specification of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use backstitch_core::ports::Sandbox;

/// A program that is an MCP server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The name, with which the names of its tools begin.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment; `None` removes one. Others are inherited.
    pub environment: BTreeMap<String, Option<String>>,
    /// The directory that it works in, which the sandbox lets it write.
    pub directory: Option<PathBuf>,
    /// The limits of its processes.
    pub sandbox: Sandbox,
    /// Time limit of a call.
    pub timeout: Option<Duration>,
}

impl ServerSpec {
    /// Specifies a server that runs this program.
    pub fn new<W: Into<String>>(name: impl Into<String>, command: impl IntoIterator<Item = W>) -> Self {
        Self {
            name: name.into(),
            command: command.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            directory: None,
            sandbox: Sandbox::off(),
            timeout: None,
        }
    }
}
