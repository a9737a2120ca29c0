//! The `backstitch` command.
//!
//! This is the edge of the program: it reads arguments and files, calls the libraries, and puts what they say into words.
//! Exit codes: 0 it worked, 1 it did not, 2 it was called wrongly, 3 a session waits for a decision, 130 a person interrupted it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod lisp;
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
    end_quietly_when_nobody_reads();
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Lisp(command) => lisp::run(command),
        Command::Sessions(command) => sessions::run(&arguments.common, *command),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if usage::is_usage(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Whoever reads what is printed may have had enough, as `head` has. That is no reason to speak of a panic; but a session that is
/// driven ends there as it would by a kill, and can be resumed.
fn end_quietly_when_nobody_reads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload_as_str().unwrap_or_default();
        if said.starts_with("failed printing to") && said.contains("Broken pipe") {
            std::process::exit(BROKEN_PIPE);
        }
        usual(panic);
    }));
}

/// What a shell says of a program that a closed pipe ended.
const BROKEN_PIPE: i32 = 141;
