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

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstitch::stores;
use clap::{Args, Subcommand};

/// Where sessions are, and how results are printed.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// The store. Without it, the one that BACKSTITCH_STORE names, `.backstitch/store.db` of this directory or of one above it, or
    /// the one of this project in the state directory of the user.
    #[arg(long, value_name = "PATH", global = true)]
    store: Option<PathBuf>,
    /// Prints JSON: one object, or one per line for lists.
    #[arg(long, global = true)]
    json: bool,
}

impl Common {
    /// With the store that the environment names, unless another one was given.
    pub(crate) fn with_environment(mut self) -> Self {
        let named = std::env::var_os("BACKSTITCH_STORE").filter(|path| !path.is_empty());
        self.store = self.store.or(named.map(PathBuf::from));
        self
    }

    /// Whether results are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// For hints about sessions of this store: it is named where this directory alone would not lead to it.
    fn naming(&self, store: &Path) -> Self {
        let is_default = || {
            let here = std::env::current_dir().ok()?;
            stores::existing(&here).ok().flatten()
        };
        let mut common = self.clone();
        if common.store.is_none() && is_default().as_deref() != Some(store) {
            common.store = Some(store.to_owned());
        }
        common
    }

    /// A command that can be executed as it stands: it means the same store as this command did.
    pub(crate) fn hint(&self, command: impl Display) -> String {
        match &self.store {
            Some(path) => format!("backstitch {command} --store {}", quoted(&path.to_string_lossy())),
            None => format!("backstitch {command}"),
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

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
