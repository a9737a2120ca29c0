//! `acp`: the Agent Client Protocol, for editors.
//!
//! Standard output belongs to the protocol; everything for people goes to standard error, which editors keep as a log. Nothing is
//! asked on a terminal, even if there is one: the person is at the editor.

mod host;
mod offered;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::CancellationToken;
use backstitch_acp::{DecidedBy, EditorServer};
use clap::{Args, ValueEnum};

use crate::common::Common;
use crate::open::Signals;
use crate::open::definition::AgentFlags;
use crate::usage;
use host::CommandHost;

#[derive(Args)]
pub(crate) struct Acp {
    /// Who decides about calls that need approval, and about MCP servers of the editor. Default: editor.
    #[arg(long, value_enum, value_name = "WHO")]
    approve_by: Option<Decider>,
    #[command(flatten)]
    agent: AgentFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Decider {
    /// The editor, which shows the question to a person. It may also be set up to answer by itself.
    Editor,
    /// `approve` and `deny` alone: the editor is never asked.
    Inbox,
}

impl Acp {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.agent.names_workspace() {
            return usage::refuse("`acp` works in the directory that the editor names; remove `--workspace`");
        }
        if std::io::stdin().is_terminal() {
            return usage::refuse(
                "`acp` speaks with an editor over its input and output, and this is a terminal: name it in the settings of the editor; `chat` is a conversation in a terminal",
            );
        }
        let mut common = common.clone();
        common.no_input = true;
        let decided_by = match self.approve_by {
            None | Some(Decider::Editor) => DecidedBy::Editor,
            Some(Decider::Inbox) => DecidedBy::Inbox,
        };
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        let stop = CancellationToken::new();
        let server = EditorServer::new(Arc::new(CommandHost::new(common, self.agent)), decided_by);
        let mut serving = server.serve(stop.clone());
        tokio::select! {
            served = &mut serving => {
                served?;
                Ok(ExitCode::SUCCESS)
            }
            _ = signals.next() => {
                eprintln!("stopping: running calls are rolled back, and the sessions pause");
                stop.cancel();
                let _ = serving.await;
                Ok(ExitCode::from(130))
            }
        }
    }
}
