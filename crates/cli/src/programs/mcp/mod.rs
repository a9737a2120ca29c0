//! `mcp`: the Model Context Protocol.

mod address;
mod host;
mod presence;
mod serve;
mod served;
mod settings;

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
    /// Add a server to your settings. Its tools are offered in every new session.
    #[command(
        after_help = "Examples:\n  backstitch mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  backstitch mcp add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer GITHUB_TOKEN'"
    )]
    Add(settings::Add),
    /// List the servers of your settings and of this project.
    #[command(after_help = "Examples:\n  backstitch mcp list\n  backstitch mcp list --check")]
    List(settings::List),
    /// Remove a server from your settings.
    #[command(after_help = "Example:\n  backstitch mcp remove files")]
    Remove(settings::Remove),
    /// Connect standard input and output with a socket. The programs of engines start this.
    #[cfg(feature = "bridge")]
    #[command(hide = true, after_help = "Example:\n  backstitch mcp relay /tmp/backstitch-1/socket")]
    Relay(relay::Relay),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(command) => command.run(common).await,
            Self::Add(command) => command.run(common),
            Self::List(command) => command.run(common).await,
            Self::Remove(command) => command.run(common),
            #[cfg(feature = "bridge")]
            Self::Relay(command) => command.run().await,
        }
    }
}
