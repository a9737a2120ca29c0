//! Measures Backstitch, and prints one JSON line for each measurement.
//!
//! `cargo run --release -p backstitch-bench -- core` measures the group `core`; several groups may be named,
//! and without any all are measured. Lines have the form `{"system","metric","params","value","unit"}`:
//! `value` is the median of the samples, and `params` say what was measured and how, with the smallest sample
//! (`minimum`) and the median of processor time (`cpu`) in the same unit. Machines are noisy, so compare only
//! ratios within one run, or counts (`count`): instructions, system calls and allocations of a run. `--compare FILE` prints
//! the ratios to an earlier run.
#![allow(clippy::print_stdout, reason = "printing measurements is what this program is for")]
#![allow(clippy::print_stderr, reason = "errors of the command line belong there")]

mod agent;
mod aims;
mod alone;
mod command;
mod compare;
mod core;
mod count;
mod fleet;
mod guard;
mod lisp;
mod measure;
mod memory;
mod peers;
mod render;
mod report;
mod server;
mod store;
mod tools;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use report::Report;
use serde_json::Value;

type Group = (&'static str, &'static str, fn(&mut Report));

const GROUPS: &[Group] = &[
    ("core", "sessions, ids, records and folds; in memory", core::run),
    ("tools", "a tool call as a transaction; in memory, without files", tools::run),
    ("store", "the SQLite store, beside bare SQLite", store::run),
    (
        "agent",
        "turns of agents on a durable store, concurrent sessions, requests, and resuming after a crash",
        agent::run,
    ),
    ("command", "the command on a long session: the time until it prints something", command::run),
    (
        fleet::GROUP,
        "many sessions on one PostgreSQL server: appends, claims, workers, beside bare INSERTs and DBOS",
        fleet::run,
    ),
    ("guard", "a hook of a guarded program on 10,000 unchanged files, beside a walk", guard::run),
    ("lisp", "the agent language, and the same programs in Clojure where it is installed", lisp::run),
    (
        peers::GROUP,
        "one agent job, killed and resumed, beside LangGraph, DBOS and Restate; by name only",
        peers::run,
    ),
    ("render", "rendering of earlier turns for a model", render::run),
    (
        "server",
        "the server on a session of 10,000 calls: latency, first paint, events to 100 readers",
        server::run,
    ),
    ("workspace", "snapshots and restores of a directory, and the same with git", workspace::run),
];

fn main() -> ExitCode {
    // Before there are threads, which would not be counted.
    count::begin();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = arguments.as_slice()
        && flag == alone::FLAG
    {
        let row = [agent::ALONE, fleet::ALONE, peers::ALONE, store::ALONE]
            .into_iter()
            .flatten()
            .find(|(known, _)| known == name);
        return row.map_or(ExitCode::from(2), |(_, measure)| {
            measure(&mut Report::new());
            ExitCode::SUCCESS
        });
    }
    let chosen = match Chosen::of(arguments) {
        Ok(Some(chosen)) => chosen,
        Ok(None) => {
            println!("{}", usage());
            return ExitCode::SUCCESS;
        }
        Err(reason) => {
            eprintln!("error: {reason}\n\n{}", usage());
            return ExitCode::from(2);
        }
    };
    let now = chosen.now.unwrap_or_else(|| {
        count::explain();
        let mut report = Report::new();
        chosen.groups.iter().for_each(|(_, _, run)| run(&mut report));
        report::lines()
    });
    if let Some(then) = chosen.then {
        println!("{}", compare::table(&then, &now));
    }
    ExitCode::SUCCESS
}

/// What the command line asks for.
struct Chosen {
    groups: Vec<Group>,
    /// Lines of an earlier run, to compare with.
    then: Option<Vec<Value>>,
    /// Lines to compare, instead of those of a new run.
    now: Option<Vec<Value>>,
}

impl Chosen {
    /// Parses arguments; `None` if help is wanted.
    fn of(arguments: Vec<String>) -> Result<Option<Self>, String> {
        let mut chosen = Self { groups: Vec::new(), then: None, now: None };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut file = || {
                let path = arguments.next().ok_or_else(|| format!("{argument} needs the path of a run"))?;
                compare::read(Path::new(&path)).map(Some)
            };
            match argument.as_str() {
                "-h" | "--help" => return Ok(None),
                "--compare" => chosen.then = file()?,
                "--now" => chosen.now = file()?,
                name => {
                    let group = GROUPS.iter().find(|(group, ..)| *group == name);
                    chosen.groups.push(*group.ok_or_else(|| format!("there is no group {name:?}"))?);
                }
            }
        }
        if chosen.now.is_some() && chosen.then.is_none() {
            return Err("--now needs --compare, the run to compare with".to_owned());
        }
        if chosen.groups.is_empty() {
            // Two install packages of others, so they are measured only by their names.
            let is_default = |(group, ..): &&Group| ![fleet::GROUP, peers::GROUP].contains(group);
            chosen.groups = GROUPS.iter().filter(is_default).copied().collect();
        }
        Ok(Some(chosen))
    }
}

fn usage() -> String {
    let groups: String = GROUPS.iter().map(|(group, what, _)| format!("\n  {group:<12}{what}")).collect();
    format!(
        "Usage: backstitch-bench [GROUP]... [--compare FILE [--now FILE]]

Measure the named groups, or all groups but `fleet` and `peers`, and print a JSON line for each measurement.

Options:
  --compare FILE  print a table of ratios to the run whose lines are in FILE
  --now FILE      compare the run in FILE, and measure nothing

Groups:{groups}

Example:
  backstitch-bench store >before; backstitch-bench store --compare before"
    )
}
