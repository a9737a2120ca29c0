//! `completions`: scripts that complete commands, options and session ids in a shell.
//!
//! A script asks the command itself for candidates, through an environment variable, so it stays right when the
//! command changes. Completing reads the store and never writes to it.

use std::process::ExitCode;

use backstitch::host::one_line;
use backstitch::ports::{IndexedSession, SessionOrder, SessionQuery};
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCandidates, CompletionCandidate};

use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::open::{OpenStore, short};
use crate::terminal;

/// Environment variable with which a script asks for candidates.
const VARIABLE: &str = "BACKSTITCH_COMPLETE";

/// Name under which shells run the command.
const NAME: &str = "backstitch";

#[derive(Args)]
pub(crate) struct Completions {
    /// Shell that the script is for.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).ok_or_else(|| {
            CommandError::new(ErrorCode::Usage, format!("{} is not a known shell", self.shell))
        })?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
        terminal::data(&String::from_utf8_lossy(&script));
        Ok(ExitCode::SUCCESS)
    }
}

/// Answers a script that asks for candidates, and exits. Otherwise nothing happens.
pub(crate) fn answer(command: impl Fn() -> Command) {
    let factory = || with_candidates(command());
    clap_complete::CompleteEnv::with_factory(factory).var(VARIABLE).bin(NAME).completer(NAME).complete();
}

/// Adds candidates to the arguments that name sessions and error codes, of all commands.
fn with_candidates(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_id().as_str() {
        "session" | "sessions" | "parent" => argument.add(ArgValueCandidates::new(sessions)),
        "code" => argument.add(ArgValueCandidates::new(codes)),
        _ => argument,
    });
    command.mut_subcommands(with_candidates)
}

fn codes() -> Vec<CompletionCandidate> {
    let candidate =
        |code: &ErrorCode| CompletionCandidate::new(code.as_str()).help(Some(code.summary().into()));
    ErrorCode::ALL.iter().map(candidate).collect()
}

/// How many of the newest sessions are offered.
const OFFERED: usize = 50;

/// Columns of the description of a session.
const DESCRIPTION: usize = 60;

/// Returns the newest sessions of the store that a command line refers to. A store that cannot be read has none.
fn sessions() -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let sessions = runtime.block_on(newest()).unwrap_or_default();
    sessions.iter().map(candidate).collect()
}

async fn newest() -> anyhow::Result<Vec<IndexedSession>> {
    let place = OpenStore::for_reading(&Common::of_command_line(std::env::args_os()))?;
    let query = SessionQuery::roots().with_order(SessionOrder::NewestFirst).with_limit(OFFERED);
    Ok(place.runtime.sessions(query).await?.sessions)
}

fn candidate(session: &IndexedSession) -> CompletionCandidate {
    let mission = one_line(&session.summary.mission, DESCRIPTION);
    let description = terminal::cut(&format!("{}: {mission}", session.status()), DESCRIPTION);
    CompletionCandidate::new(short(session.id())).help(Some(description.into()))
}
