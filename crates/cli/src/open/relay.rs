//! `mcp relay`: connects the program of an engine with the process that holds its session.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

/// Returns the words of this command, without the socket.
pub(crate) fn relay_command() -> io::Result<Vec<String>> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    Ok(vec![own, "mcp".to_owned(), "relay".to_owned()])
}

#[derive(Args)]
pub(crate) struct Relay {
    /// Socket of the process that holds the session.
    socket: PathBuf,
}

impl Relay {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let relayed = backstitch_bridge::relay(&self.socket, tokio::io::stdin(), tokio::io::stdout()).await;
        relayed.with_context(|| format!("the session at {} cannot be reached", self.socket.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
