//! The `backstitch` command.
//!
//! This is the edge of the program: it reads arguments and files, calls the libraries, and puts what they say into words.
//! Exit codes: 0 it worked, 1 it did not, 2 it was called wrongly, 3 a session waits for a decision, 130 a person interrupted it.

// First, since its macros print for all others.
#[macro_use]
mod terminal;

mod common;
mod error;
mod explain;
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
    common: common::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run programs of the agent language.
    #[command(subcommand)]
    Lisp(lisp::Command),
    #[command(flatten)]
    Sessions(Box<sessions::Command>),
    /// Print the page of an error code, or list all codes.
    Explain(explain::Explain),
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
    let common = arguments.common.with_environment();
    let (done, events) = match arguments.command {
        // The language has its own form of errors for programs.
        Command::Lisp(command) => (lisp::run(command), false),
        Command::Sessions(command) => (sessions::run(&common, *command), common.json),
        Command::Explain(command) => (command.run(common.json), common.json),
    };
    done.unwrap_or_else(|error| error::report(&common, error, events))
}
