//! `chat`: a conversation with an agent on a terminal.
//!
//! A conversation is an ordinary session. It is created with the first message; each further message is a
//! follow-up. Nothing is lost with the terminal: after a kill, `chat --continue` or `resume` continues, and a new conversation
//! says what was interrupted here, and continues it at a key. While the agent works, Esc interrupts it, and a line that is typed is
//! sent to it at once: the agent reads it between two steps.

mod commands;
mod conversation;
mod message;
mod overview;
mod person_command;
mod prompt;
mod recap;
#[cfg(feature = "mcp")]
mod servers;
mod slash;
mod turn;
mod typing;
mod watch;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use backstitch::host::one_line;
use backstitch::journal::SessionName;
use clap::Args;

use super::live::{INTERRUPTED, show_reasoning};
use crate::common::{Common, counted};
use crate::look::conversations::{self, PastConversation};
use crate::open::definition::AgentFlags;
use crate::open::short;
use crate::people::picker;
use crate::prompts::{PromptFile, PromptKind, PromptLibrary};
use crate::terminal::time::relative;
use crate::terminal::{self, Role, Text};
use crate::usage;
use conversation::{Conversation, Flow, OpenTurn};
use prompt::{Prompt, TypedLine};

/// Options that are about new sessions only.
const NEW_ONLY: [&str; 12] = [
    "agent",
    "system",
    "answers",
    "data",
    "signature",
    "compression",
    "tools",
    "approve",
    "shell_effect",
    "max_turns",
    "workspace",
    "isolated",
];

/// The most characters of a first message in the line about an open conversation.
const SHOWN: usize = 50;

#[derive(Args)]
pub(crate) struct Chat {
    /// Session to continue: its id, at least 4 characters of its beginning or end, or its name. Default: a new session.
    #[arg(conflicts_with_all = NEW_ONLY)]
    session: Option<String>,
    /// Continue the conversation of this directory that was used last, else that of its project.
    #[arg(long = "continue", short, conflicts_with = "session", conflicts_with_all = NEW_ONLY)]
    continues: bool,
    /// Choose the conversation to continue from a list.
    #[arg(long, conflicts_with_all = ["session", "continues"], conflicts_with_all = NEW_ONLY)]
    pick: bool,
    /// Name of the session, which can be typed wherever its id can.
    #[arg(long, value_name = "NAME")]
    name: Option<SessionName>,
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
        terminal::pager::refuse();
        show_reasoning(self.agent.model.reasoning);
        let mut conversation = match self.choice(common).await? {
            Choice::Nothing => return Ok(ExitCode::SUCCESS),
            Choice::New => Conversation::new(common, &self.agent).await?,
            Choice::Session(options, name) => Conversation::open(&options, &name, Some(&self.agent)).await?,
        };
        if let Some(name) = self.name {
            conversation.set_name(name).await?;
        }
        let library = PromptLibrary::load(common, &std::env::current_dir()?);
        let names = library.offered(PromptKind::Command).map(PromptFile::written_name);
        let mut prompt = Prompt::start(names.collect())?;
        library.untrusted_line().into_iter().filter(|_| !common.quiet).for_each(|line| eprintln!("{line}"));
        let mut flow = conversation.greet(&mut prompt, OpenTurn::Ask).await?;
        // What cannot be listed is not offered.
        let mut open = match conversation.session {
            None => conversations::open_here(common).await.unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        notice(&conversation.common, &open).iter().for_each(terminal::error_line);
        let (mut was_interrupted, mut begin) = (false, String::new());
        while matches!(flow, Flow::Continue) {
            let typed = conversation.take_typed();
            begin = typing::join(begin, &typed.draft);
            let line = match conversation.queue_again(typed.lines) {
                Some(line) => {
                    println!("{}{line}", conversation.prompt_text());
                    TypedLine::Text(line)
                }
                None => prompt.read(&conversation.prompt_text(), &std::mem::take(&mut begin)).await?,
            };
            let interrupted_before = std::mem::take(&mut was_interrupted);
            flow = match line {
                TypedLine::Text(text) if text.trim().is_empty() => Flow::Continue,
                TypedLine::Text(text) => conversation.handle(&text).await,
                TypedLine::NextMode(text) => {
                    begin = text;
                    conversation.enter_next_mode().await
                }
                TypedLine::Continue(text) => {
                    begin = text;
                    let past = std::mem::take(&mut open).into_iter().next();
                    let past = past.filter(|_| conversation.session.is_none());
                    conversation.continue_past(past, &mut prompt).await
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

    /// Returns what the arguments choose. A person may be asked.
    async fn choice(&self, common: &Common) -> anyhow::Result<Choice> {
        if let Some(name) = &self.session {
            return Ok(Choice::Session(common.clone(), name.clone()));
        }
        if self.continues {
            let latest = conversations::latest(common).await?;
            if latest.is_none() {
                eprintln!("there is no conversation here yet: this is a new one");
            }
            return Ok(latest.map_or(Choice::New, |past| Choice::past(common, &past)));
        }
        if self.pick {
            let all = conversations::of_project(common).await?;
            let chosen = picker::choose(common, "Continue which conversation?", all).await?;
            return Ok(chosen.map_or(Choice::Nothing, |past| Choice::past(common, &past)));
        }
        Ok(Choice::New)
    }
}

/// Which conversation a person wants.
enum Choice {
    New,
    /// A session by its id or name, with the options for its store.
    Session(Common, String),
    Nothing,
}

impl Choice {
    fn past(common: &Common, past: &PastConversation) -> Self {
        Self::Session(past.options(common), past.session.session.to_string())
    }
}

/// Says which conversation of this directory is open, and the key that continues it.
fn notice(common: &Common, open: &[PastConversation]) -> Option<Text> {
    let latest = open.first()?;
    let title = one_line(&latest.title().text(), SHOWN);
    let (state, age) = (latest.state_text(), relative(latest.session.updated_at, conversations::now()));
    let line = Text::new().add(Role::Accent, "Ctrl-O").plain(" continues: ").add(Role::Emphasis, title);
    let line = line.plain(format!(" ({state}, {age})"));
    Some(match open.len() - 1 {
        0 => line,
        more => {
            let (more, list) = (counted(more, "other"), common.hint("inbox --here"));
            line.plain(format!("; `{list}` lists {more}"))
        }
    })
}
