//! Commands about sessions.

mod decide;
mod definition;
mod diff;
mod drive;
mod ending;
mod failure;
mod holder;
mod list;
mod live;
mod log;
mod maintain;
mod place;
mod quickstart;
mod request;
mod restores;
mod say;
mod show;
mod signals;
mod travel;
mod turns;
mod waiting;

use std::process::ExitCode;

use clap::Subcommand;

use crate::common::{Common, quoted};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a demonstration: an agent works, is killed, and resumes.
    Quickstart(quickstart::Quickstart),
    /// Start a session and run it until it answers.
    Run(Box<drive::Run>),
    /// Resume a session where it was interrupted or paused.
    Resume(drive::Resume),
    /// Ask a follow-up question in a session.
    Ask(drive::Ask),
    /// List the sessions.
    Ls(list::List),
    /// Show the events of a session.
    Log(log::Log),
    /// Show a session: conversation, calls and state.
    Show(show::Show),
    /// Show a request to the model, rendered again from the journal.
    Request(request::Request),
    /// Compare two points of a session.
    Diff(diff::Diff),
    /// Return to a point: state, files and conversation together.
    Rewind(travel::Rewind),
    /// Undo the latest rewind.
    Undo(travel::Undo),
    /// Start a new session from a point of an existing one.
    Fork(travel::Fork),
    /// Decide about a call that waits.
    Resolve(decide::Resolve),
    /// Send a message to a session, also while another process runs it.
    Send(say::Send),
    /// End the current evaluation, also while another process runs it.
    Cancel(say::Cancel),
    /// Pause a session, also while another process runs it.
    Pause(say::Pause),
    /// Check a store for damage.
    Verify(maintain::Verify),
    /// Copy the sound part of a damaged store to a new one.
    Salvage(maintain::Salvage),
    /// Delete unreferenced data.
    Gc(maintain::Gc),
}

pub(crate) fn run(common: &Common, command: Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Quickstart(command) => command.run(common).await,
            Command::Run(command) => command.run(common).await,
            Command::Resume(command) => command.run(common).await,
            Command::Ask(command) => command.run(common).await,
            Command::Ls(command) => command.run(common).await,
            Command::Log(command) => command.run(common).await,
            Command::Show(command) => command.run(common).await,
            Command::Request(command) => command.run(common).await,
            Command::Diff(command) => command.run(common).await,
            Command::Rewind(command) => command.run(common).await,
            Command::Undo(command) => command.run(common).await,
            Command::Fork(command) => command.run(common).await,
            Command::Resolve(command) => command.run(common).await,
            Command::Send(command) => command.run(common).await,
            Command::Cancel(command) => command.run(common).await,
            Command::Pause(command) => command.run(common).await,
            Command::Verify(command) => command.run(common).await,
            Command::Salvage(command) => command.run(common).await,
            Command::Gc(command) => command.run(common).await,
        }
    })
}
