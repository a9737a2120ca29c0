//! The `backstitch` command.
//!
//! This is the edge of the program: it reads arguments and files, calls the libraries, and puts what they say into words.
//! Exit codes: 0 it worked, 1 it did not, 2 it was called wrongly, 3 a session waits for a decision, 130 a person interrupted it.

// First, since its macros print for all others.
#[macro_use]
mod terminal;

mod keys;
mod lisp;
#[cfg(feature = "crash-points")]
mod panics;
mod sessions;
mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A durable, transactional runtime for LLM agents.
#[derive(Parser)]
#[command(name = "backstitch", version, arg_required_else_help = true)]
struct Arguments {
    #[command(flatten)]
    common: sessions::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs programs of the agent language.
    #[command(subcommand)]
    Lisp(lisp::Command),
    #[command(flatten)]
    Sessions(Box<sessions::Command>),
}

fn main() -> ExitCode {
    // Also what a panic says may come from anywhere.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
    if let Err(error) = keys::hide() {
        eprintln!(
            "warning: commands that an agent runs may be able to read the keys in the environment: {error}"
        );
    }
    #[cfg(feature = "crash-points")]
    panics::arm();
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Lisp(command) => lisp::run(command),
        Command::Sessions(command) => sessions::run(arguments.common, *command),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if usage::is_usage(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
