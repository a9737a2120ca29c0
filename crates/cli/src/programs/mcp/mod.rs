//! `mcp`: the Model Context Protocol.

mod address;
mod host;
mod presence;
mod serve;
mod served;

use std::process::ExitCode;

use clap::Subcommand;

use crate::common::Common;
#[cfg(feature = "bridge")]
use crate::open::relay;

/// Name of the policy of sessions whose calls a program outside makes.
const SERVED: &str = "mcp";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve the tools of an agent and the history of its session, on standard input and output or over HTTP.
    ///
    /// Every call is recorded and rolled back if it fails. The session of the same agent and directory is
    /// continued.
    #[command(
        after_help = "Examples:\n  backstitch mcp serve --agent tailor.toml\n  backstitch mcp serve --agent tailor.toml --http 8750\n  claude mcp add tailor -- backstitch mcp serve --agent tailor.toml"
    )]
    Serve(Box<serve::Serve>),
    /// Connect standard input and output with a socket. The programs of engines start this.
    #[cfg(feature = "bridge")]
    #[command(hide = true, after_help = "Example:\n  backstitch mcp relay /tmp/backstitch-1/socket")]
    Relay(relay::Relay),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(command) => command.run(common).await,
            #[cfg(feature = "bridge")]
            Self::Relay(command) => command.run().await,
        }
    }
}
