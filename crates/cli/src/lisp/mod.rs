//! `backstitch lisp`: the agent language from the command line.
//!
//! Programs run here without tools: they see data, definitions and the time, and nothing else.

mod evaluate;
mod program;
mod repl;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use backstitch::providers::read_text;
use backstitch_lisp::{Keyword, Map, Value, from_json};
use clap::{Args, Subcommand};

use crate::usage::Usage;

/// The largest file that is read as data, in bytes.
const LARGEST_DATA: u64 = 256 << 20;

/// What can be done with the language.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs a program from a file, or from standard input as `-`.
    Run {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        given: ProgramInput,
        /// Prints one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Reads, evaluates and prints, form by form. Definitions stay.
    Repl {
        #[command(flatten)]
        given: ProgramInput,
    },
    /// Evaluates many programs: each line of standard input is one, each line of standard output its answer.
    ///
    /// A line is `{"id", "program", "data"?, "memory"?, "turn_history"?, "limits"?}`, where `data` is JSON, `memory` the EDN text of
    /// a map and `turn_history` the EDN text of a vector, oldest first. Its answer is `{"id", "value" or "error": {"kind", "message",
    /// "line", "column"}, "prints", "signal"?, "memory"}` with EDN text in `value` and `memory`.
    Eval {
        /// Reads and writes JSON lines. There is no other format yet.
        #[arg(long, required = true)]
        jsonl: bool,
    },
}

/// What a program is given.
#[derive(Args)]
pub(crate) struct ProgramInput {
    /// Reads JSON from a file, so that the program finds it as `data/NAME`. May be given several times.
    #[arg(long = "data", value_name = "NAME=FILE.json")]
    data: Vec<String>,
    /// The most steps that the program may take.
    #[arg(long)]
    fuel: Option<u64>,
}

impl ProgramInput {
    fn limits(&self) -> backstitch_lisp::Limits {
        let mut limits = backstitch_lisp::Limits::default();
        if let Some(fuel) = self.fuel {
            limits.fuel = fuel;
        }
        limits
    }

    fn data(&self) -> anyhow::Result<Map> {
        let limits = self.limits();
        let entries = self.data.iter().map(|given| {
            let Some((name, file)) = given.split_once('=') else {
                let message = format!("--data {given}: write it as NAME=FILE.json");
                return Err(anyhow::Error::from(Usage(message)));
            };
            let text = read_text(file, LARGEST_DATA).with_context(|| format!("cannot read {file}"))?;
            let json = serde_json::from_str(&text);
            let json = json.map_err(|error| Usage(format!("{file} is not JSON: {error}")))?;
            let value =
                from_json(&json, &limits).map_err(|error| Usage(format!("{file}: {}", error.render())))?;
            Ok((Value::Keyword(Keyword::new(name)), value))
        });
        entries.collect()
    }
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { file, given, json } => program::run(&file, &given, json),
        Command::Repl { given } => repl::run(&given),
        Command::Eval { jsonl: _ } => evaluate::run(),
    }
}

/// The time, as programs are given it: it stands still while one runs.
fn now_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}
