//! `mcp relay`: connects the program of an engine with the process that holds its session.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

#[derive(Args)]
pub(crate) struct Relay {
    /// Socket of the process that holds the session.
    socket: PathBuf,
}

impl Relay {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let relayed = backstitch_bridge::relay(&self.socket).await;
        relayed.with_context(|| format!("the session at {} cannot be reached", self.socket.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
