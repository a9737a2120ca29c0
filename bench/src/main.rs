//! Measures Backstitch, and prints one JSON line for each measurement.
//!
//! `cargo run --release -p backstitch-bench -- core` measures the group `core`; several groups may be named,
//! and without any all are measured. Lines have the form `{"system","metric","params","value","unit"}`:
//! `value` is the median of the samples, and `params` say what was measured and how, with the smallest sample
//! (`minimum`) and the median of processor time (`cpu`) in the same unit. Machines are noisy, so compare only
//! ratios within one run.
#![allow(clippy::print_stdout, reason = "printing measurements is what this program is for")]
#![allow(clippy::print_stderr, reason = "errors of the command line belong there")]

mod agent;
mod alone;
mod command;
mod core;
mod guard;
mod lisp;
mod measure;
mod memory;
mod render;
mod report;
mod server;
mod store;
mod tools;
mod workspace;

use std::process::ExitCode;

use report::Report;

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
    ("guard", "a hook of a guarded program on 10,000 unchanged files, beside a walk", guard::run),
    ("lisp", "the agent language, and the same programs in Clojure where it is installed", lisp::run),
    ("render", "rendering of earlier turns for a model", render::run),
    (
        "server",
        "the server on a session of 10,000 calls: latency, first paint, events to 100 readers",
        server::run,
    ),
    ("workspace", "snapshots and restores of a directory, and the same with git", workspace::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| matches!(argument.as_str(), "-h" | "--help")) {
        println!("{}", usage());
        return ExitCode::SUCCESS;
    }
    if let [flag, name] = arguments.as_slice()
        && flag == alone::FLAG
    {
        let row = [agent::ALONE, store::ALONE].into_iter().flatten().find(|(known, _)| known == name);
        return row.map_or(ExitCode::from(2), |(_, measure)| {
            measure(&mut Report::new());
            ExitCode::SUCCESS
        });
    }
    let known = |name: &String| GROUPS.iter().find(|(group, ..)| group == name);
    if let Some(unknown) = arguments.iter().find(|name| known(name).is_none()) {
        eprintln!("error: there is no group {unknown:?}\n\n{}", usage());
        return ExitCode::from(2);
    }
    let mut report = Report::new();
    let wanted = |group: &str| arguments.is_empty() || arguments.iter().any(|name| name == group);
    for (_, _, run) in GROUPS.iter().filter(|(group, ..)| wanted(group)) {
        run(&mut report);
    }
    ExitCode::SUCCESS
}

fn usage() -> String {
    let groups: String = GROUPS.iter().map(|(group, what, _)| format!("\n  {group:<12}{what}")).collect();
    format!(
        "Usage: backstitch-bench [GROUP]...\n\nMeasure the named groups, or all groups by default.\n\nGroups:{groups}"
    )
}
