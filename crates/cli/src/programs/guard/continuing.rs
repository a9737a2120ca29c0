//! `guard continue`: the program of a guarded session continues from the point where the session is.
//!
//! Codex continues with a fork of its conversation, which it lists like any other. So the fork is made here, when a user
//! continues, and not by each rewind.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::points::session_or_current;
use crate::common::Common;
use crate::open::guarded::GuardedSession;
use crate::open::place::OpenStore;
use crate::report::Report;
use crate::usage;

#[derive(Args)]
pub(crate) struct GuardContinue {
    /// Session id, or at least 4 characters of its beginning or end. Default: this conversation, or the latest guarded one.
    session: Option<String>,
    /// Continue with this prompt, without a terminal. Default: the program asks for one.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Print the command that continues, and do not run it.
    #[arg(long)]
    print: bool,
    /// More arguments for the program, after `--`.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl GuardContinue {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = session_or_current(&place, self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let Some(guarded) = GuardedSession::of(&view) else {
            let advice = "`resume` continues others";
            return usage::refuse(format!("this needs a guarded session of Claude Code or Codex; {advice}"));
        };
        let directory = view.directory().map(PathBuf::from).filter(|directory| directory.is_dir());
        let here = std::env::current_dir()?;
        let mut continues = guarded.continue_from(&view);
        continues.prepare(&place.directory, session, directory.as_deref().unwrap_or(&here)).await?;
        let continues = continues.with_arguments(self.prompt.as_deref(), &self.arguments);
        if !common.json {
            continues.caveat.iter().for_each(|caveat| eprintln!("{caveat}"));
        }
        if self.print || common.json {
            let line = continues.line();
            let value = json!({"v": 1, "session": session, "command": line, "caveat": continues.caveat});
            return Ok(Report::new(&value).line(line).print(common));
        }
        drop(place);
        continues.run(directory)
    }
}
