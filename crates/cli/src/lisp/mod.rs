//! `backstitch lisp`: the agent language from the command line.
//!
//! Programs run without tools here: they read data, definitions and the time, and nothing else.

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

/// Maximum size of a data file, in bytes.
const LARGEST_DATA: u64 = 256 << 20;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program from a file or from standard input.
    #[command(after_help = "Example:\n  backstitch lisp run report.clj --data orders=orders.json")]
    Run {
        /// File that holds the program; `-` reads standard input.
        file: PathBuf,
        #[command(flatten)]
        given: ProgramInput,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Read, evaluate and print one form at a time. Definitions are kept until the end.
    #[command(after_help = "Example:\n  backstitch lisp repl --data orders=orders.json")]
    Repl {
        #[command(flatten)]
        given: ProgramInput,
    },
    /// Evaluate many programs: one per line of standard input, with one answer per line of standard output.
    ///
    /// An input line is `{"id", "program", "data"?, "memory"?, "turn_history"?, "limits"?}`: `data` is JSON,
    /// `memory` the EDN text of a map, and `turn_history` the EDN text of a vector, oldest first. An answer
    /// is `{"id", "value" or "error": {"kind", "message", "line", "column"}, "prints", "signal"?, "memory"}`,
    /// with EDN text in `value` and `memory`.
    #[command(after_help = "Example:\n  echo '{\"program\": \"(+ 1 2)\"}' | backstitch lisp eval --jsonl")]
    Eval {
        /// Read and write JSON lines. Required, because it is the only format so far.
        #[arg(long, required = true)]
        jsonl: bool,
    },
}

/// Input and limits of a program.
#[derive(Args)]
pub(crate) struct ProgramInput {
    /// JSON file that the program reads as `data/NAME`. Can be repeated. Default: no data.
    #[arg(long = "data", value_name = "NAME=FILE.json")]
    data: Vec<String>,
    /// Maximum number of steps of the program. Default: 10000000.
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

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { file, given, json } => program::run(&file, &given, json),
        Command::Repl { given } => repl::run(&given),
        Command::Eval { jsonl: _ } => evaluate::run(),
    }
}

/// Returns the current time in milliseconds since 1970. It is constant while a program runs.
fn now_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}
