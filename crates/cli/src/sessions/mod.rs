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
    /// Shows in a minute what this is: an agent works, is killed, and goes on.
    Quickstart(quickstart::Quickstart),
    /// Starts a session and drives it to its answer.
    Run(Box<drive::Run>),
    /// Goes on with a session, wherever it was interrupted.
    Resume(drive::Resume),
    /// Asks a session that has answered something more.
    Ask(drive::Ask),
    /// Lists the sessions.
    Ls(list::List),
    /// Shows what happened in a session.
    Log(log::Log),
    /// Shows a session: what was said, its calls, its state.
    Show(show::Show),
    /// Shows what was sent to a model, rendered again from the journal.
    Request(request::Request),
    /// Shows what differs between two points of a session.
    Diff(diff::Diff),
    /// Goes back to a point: state, files and conversation together.
    Rewind(travel::Rewind),
    /// Takes back the latest rewind.
    Undo(travel::Undo),
    /// Goes on from a point of a session in a session of its own.
    Fork(travel::Fork),
    /// Says what became of a call, or whether it may run.
    Resolve(decide::Resolve),
    /// Says something to a session, also while another process drives it.
    Send(say::Send),
    /// Ends what a session is doing, also while another process drives it.
    Cancel(say::Cancel),
    /// Pauses a session, also while another process drives it.
    Pause(say::Pause),
    /// Checks a store for damage.
    Verify(maintain::Verify),
    /// Writes what is sound of a damaged store to a new one.
    Salvage(maintain::Salvage),
    /// Frees the space of what nothing refers to.
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
