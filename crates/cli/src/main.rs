//! The `backstitch` command.
//!
//! It reads arguments and files, calls the libraries, and prints results, errors and hints. Exit codes: 0
//! success, 1 failure, 2 wrong usage, 3 a session waits for a decision, 130 interrupted by a signal.

// First, because the other modules use its macros to print.
#[macro_use]
mod terminal;

mod arguments;
mod commands;
mod common;
mod config;
mod error;
mod help;
mod history;
mod input;
mod instructions;
mod keys;
mod lisp;
mod logging;
mod look;
mod open;
#[cfg(feature = "crash-points")]
mod panics;
mod people;
mod programs;
mod project;
mod prompts;
mod queue;
mod report;
mod setup;
mod store;
mod telemetry;
mod trust;
mod usage;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// A durable, transactional runtime for LLM agents.
#[derive(Parser)]
#[command(
    name = "backstitch",
    version,
    long_version = setup::version::TEXT,
    arg_required_else_help = true,
    after_help = "Without a command, on a terminal: `backstitch chat`, which takes the same options.\n\nExamples:\n  backstitch quickstart\n  backstitch run \"Fix the tests\" --model openai:MODEL"
)]
struct Arguments {
    #[command(flatten)]
    common: common::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run programs of the agent language.
    #[command(subcommand, after_help = "Example:\n  backstitch lisp run report.clj")]
    Lisp(lisp::Command),
    #[command(flatten)]
    Sessions(Box<commands::Command>),
    /// Show and change settings.
    #[command(subcommand, after_help = "Example:\n  backstitch config show --origin")]
    Config(setup::configure::Configure),
    /// List the commands and skills in Markdown files, yours and those of this project.
    #[command(after_help = "Examples:\n  backstitch commands\n  backstitch commands --offered --json")]
    Commands(prompts::ListPrompts),
    /// Write a commented agent file or settings file.
    #[command(after_help = "Examples:\n  backstitch init\n  backstitch init --project")]
    Init(setup::init::Init),
    /// Check everything that the command needs, and say what to do about problems.
    #[command(after_help = "Example:\n  backstitch doctor")]
    Doctor,
    /// List the models that are known, and those that your servers offer, with windows and prices.
    #[command(after_help = "Examples:\n  backstitch models\n  backstitch models anthropic --offline --json")]
    Models(setup::models::Models),
    /// Print the page of an error code, or list all codes.
    #[command(after_help = "Example:\n  backstitch explain store_full")]
    Explain(setup::explain::Explain),
    /// Print a script that completes commands, options and sessions in a shell.
    #[command(
        after_help = "Examples:\n  backstitch completions zsh\n  source <(backstitch completions bash)"
    )]
    Completions(setup::completions::Completions),
    /// Print the manual page of a command, or write those of all commands.
    #[command(
        after_help = "Examples:\n  backstitch man rewind | man -l -\n  backstitch man --directory ~/.local/share/man/man1"
    )]
    Man(setup::manual::Manual),
}

/// Adds `chat` if no command is given, a person is there, and the options are those of a conversation.
fn with_command(words: Vec<OsString>) -> Vec<OsString> {
    let has_options_only = words.get(1).is_none_or(|word| word.as_encoded_bytes().starts_with(b"-"));
    // Without a terminal, `chat` says what to use instead.
    let continues = words.iter().any(|word| word == "-c" || word == "--continue");
    let is_chat = has_options_only && (continues || work::chat::is_interactive());
    if !is_chat || Arguments::try_parse_from(&words).is_ok() {
        return words;
    }
    let mut chat = words.clone();
    chat.insert(1.min(chat.len()), "chat".into());
    if Arguments::try_parse_from(&chat).is_ok() { chat } else { words }
}

fn main() -> ExitCode {
    // Before anything else: the command is also the supervisor of the processes that it starts.
    backstitch::supervise_if_asked();
    let code = run();
    // Exit code 2 of a hook stops the work of the program that runs it.
    if code == ExitCode::from(2) && is_lenient_hook() { ExitCode::FAILURE } else { code }
}

/// Whether the command is a hook of a guarded program that must never stop it.
fn is_lenient_hook() -> bool {
    let words: Vec<OsString> = std::env::args_os().take_while(|word| word != "--").collect();
    let is_hook = words.windows(2).any(|pair| pair[0] == "guard" && pair[1] == "hook");
    is_hook && !words.iter().any(|word| word == "--strict")
}

fn run() -> ExitCode {
    // The message of a panic may hold control characters, so it is printed through `terminal` too.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
    setup::completions::answer(Arguments::command);
    if let Err(error) = keys::hide() {
        eprintln!(
            "warning: commands that an agent runs may be able to read the keys in the environment: {error}"
        );
    }
    #[cfg(feature = "crash-points")]
    panics::arm();
    let words = with_command(std::env::args_os().collect());
    let arguments: Arguments = match arguments::parse(&words) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let common = match (arguments.common.clone().with_settings(), &arguments.command) {
        (Ok(common), _) => common,
        (Err(error), Command::Sessions(_)) => {
            let common = arguments.common;
            return error::report(&common, error.into(), common.json);
        }
        // Other commands use no settings, or report what is wrong with them.
        (Err(_), _) => arguments.common,
    };
    common.set_up_output();
    let drives = matches!(&arguments.command, Command::Sessions(command) if command.drives());
    let telemetry = match logging::set_up(&common, drives) {
        Ok(telemetry) => telemetry,
        Err(error) => return error::report(&common, error, common.json),
    };
    let (done, events) = match arguments.command {
        // `lisp` has its own JSON form of errors.
        Command::Lisp(command) => (lisp::run(command), false),
        Command::Sessions(command) => (commands::run(&common, *command), common.json),
        Command::Config(command) => (command.run(&common), common.json),
        Command::Commands(command) => (command.run(&common), common.json),
        Command::Init(command) => (command.run(&common), common.json),
        Command::Doctor => (setup::doctor::run(&common), common.json),
        Command::Models(command) => (command.run(&common), common.json),
        Command::Explain(command) => (command.run(common.json), common.json),
        Command::Completions(command) => (command.run(), common.json),
        Command::Man(command) => (command.run(Arguments::command()), common.json),
    };
    let code = done.unwrap_or_else(|error| error::report(&common, error, events));
    telemetry.end();
    code
}
