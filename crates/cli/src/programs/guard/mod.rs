//! `guard`: journals the sessions of other agents, so that what they do can be inspected and undone.
//!
//! `guard install` adds hooks to the settings of Claude Code or Codex, or writes a plugin with them. From then on that program starts `guard hook` at each
//! prompt, before and after each call of a tool, and at the end of its answers. A hook claims the session of the program's
//! conversation, captures the files, records the report, and releases everything. Between hooks nothing runs and nothing
//! is held.
//!
//! `guard -- COMMAND` records a command that has no hooks, with a boundary whenever its files have been quiet for a moment.
//!
//! What the programs write (events, transcripts, settings) is read by the bridge; here are the commands, and what they print.
//!
//! A hook never stops the work of a person. If it cannot do its own, it says so on standard error, and the next hook
//! records the gap. With `--strict` it denies the call instead.

mod codex;
mod command;
mod destructive;
mod gaps;
mod hook;
mod install;
mod leftovers;
mod points;
mod program;
mod rewound;
mod session;
mod status;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::common::Common;

#[derive(Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct Guard {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    command: command::GuardedCommand,
}

#[derive(Subcommand)]
enum Action {
    /// Add the hooks to the settings of a program, and capture the files of this project.
    #[command(
        after_help = "Examples:\n  backstitch guard install claude-code\n  backstitch guard install claude-code --plugin --ask-destructive\n  backstitch guard install codex --user --strict\n  backstitch guard install codex --no-trust"
    )]
    Install(install::Install),
    /// Remove the hooks from the settings of a program.
    #[command(after_help = "Example:\n  backstitch guard uninstall claude-code")]
    Uninstall(install::Uninstall),
    /// Show what is guarded here, and what is not covered.
    #[command(after_help = "Example:\n  backstitch guard status")]
    Status,
    /// List the points that a guarded conversation can be rewound to, the latest first: prompt, call, files and age.
    #[command(after_help = "Examples:\n  backstitch guard points\n  backstitch guard points 4f2a --json")]
    Points(points::Points),
    /// Rewind the guarded conversation that this command was started from, or the latest one.
    #[command(after_help = "Example:\n  backstitch guard rewind before:9c1d")]
    Rewind(points::GuardRewind),
    /// Undo the last rewind of the guarded conversation that this command was started from, or of the latest one.
    #[command(after_help = "Example:\n  backstitch guard undo")]
    Undo,
    /// Let the program of a guarded conversation continue from its current point, for example after a rewind.
    #[command(
        after_help = "Examples:\n  backstitch guard continue 4f2a\n  backstitch guard continue 4f2a --prompt 'Try it without a new dependency'\n  backstitch guard continue 4f2a --print"
    )]
    Continue(points::GuardContinue),
    /// Record one event of a program, which is read from standard input. The hooks run this.
    #[command(hide = true, after_help = "Example:\n  backstitch guard hook claude-code < event.json")]
    Hook(hook::Hook),
}

impl Guard {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self.action {
            Some(Action::Install(command)) => command.run(common).await,
            Some(Action::Uninstall(command)) => command.run(common),
            Some(Action::Status) => status::run(common).await,
            Some(Action::Points(command)) => command.run(common).await,
            Some(Action::Rewind(command)) => command.run(common).await,
            Some(Action::Undo) => points::undo(common).await,
            Some(Action::Continue(command)) => command.run(common).await,
            Some(Action::Hook(command)) => command.run(common).await,
            None => self.command.run(common).await,
        }
    }
}
