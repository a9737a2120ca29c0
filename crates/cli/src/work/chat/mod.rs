//! `chat`: a conversation with an agent on a terminal.
//!
//! A conversation is an ordinary session. It is created with the first message; each further message is a
//! follow-up. Nothing is lost with the terminal: after a kill, `chat SESSION` or `resume` continues. There is
//! no prompt while the agent works, so its output and the typed line never mix; a line that is typed meanwhile
//! waits for the next prompt.

mod attach;
mod commands;
mod conversation;
mod prompt;
mod recap;
mod slash;
mod watch;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;

use super::live::INTERRUPTED;
use crate::common::Common;
use crate::open::definition::AgentFlags;
use crate::open::short;
use crate::usage;
use conversation::{Conversation, Flow};
use prompt::{Prompt, TypedLine};

#[derive(Args)]
pub(crate) struct Chat {
    /// Session to continue: its id, or at least 4 characters of its beginning or end. Default: a new session.
    #[arg(conflicts_with_all = [
        "agent", "system", "answers", "data", "signature", "compression", "tools", "approve", "shell_effect",
        "max_turns", "workspace", "isolated",
    ])]
    session: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
}

/// Whether a person can type and read here.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

impl Chat {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if common.json || !is_interactive() {
            let message = "`chat` needs a terminal for its input and its output; use `run MISSION` or `run -` to \
                           start a session, and `ask SESSION TEXT` for a follow-up";
            return usage::refuse(message);
        }
        // Closing a pager ends the command.
        crate::terminal::pager::refuse();
        let mut prompt = Prompt::start()?;
        let mut conversation = Conversation::open(common, self.session.as_deref(), &self.agent).await?;
        let mut flow = conversation.greet(&mut prompt).await?;
        let (mut was_interrupted, mut begin) = (false, String::new());
        while matches!(flow, Flow::Continue) {
            let line = prompt.read(&conversation.prompt_text(), &std::mem::take(&mut begin)).await?;
            let interrupted_before = std::mem::take(&mut was_interrupted);
            flow = match line {
                TypedLine::Text(text) if text.trim().is_empty() => Flow::Continue,
                TypedLine::Text(text) => conversation.handle(&text).await,
                TypedLine::NextMode(text) => {
                    begin = text;
                    conversation.enter_next_mode().await
                }
                TypedLine::Interrupted if interrupted_before => Flow::Leave,
                TypedLine::Interrupted => {
                    was_interrupted = true;
                    eprintln!("(Ctrl-C again, Ctrl-D or /exit leaves)");
                    Flow::Continue
                }
                TypedLine::End => Flow::Leave,
                TypedLine::Signal => Flow::Stopped,
            };
        }
        if let Some(session) = conversation.session {
            let hint = conversation.common.hint(format_args!("chat {}", short(session)));
            eprintln!("`{hint}` continues this conversation");
        }
        Ok(if flow == Flow::Stopped { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }
}
