//! The `backstitch` command on a session of 5,000 turns: the time until it prints something, and all of its
//! time. And the processor time of `ls` on a store with 10,000 sessions.
//!
//! The command has to be built with the same profile first; the program is looked for beside this one, or at the
//! path in `BACKSTITCH`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::aims;
use crate::measure::{Elapsed, Samples, Scope, time_of_children};
use crate::report::Report;
use crate::store::{long_session, many_sessions, temporary};

/// Number of turns of the long session.
const TURNS: usize = 5_000;

/// How often each command is run.
const ROUNDS: usize = 9;

pub(crate) fn run(report: &mut Report) {
    let Some(program) = program("command") else { return };
    let directory = temporary();
    let (session, turns) = (long_session(directory.path(), TURNS).to_string(), TURNS);
    let store = directory.path().join("store.db");
    for arguments in [
        &["log"][..],
        &["log", "--limit", "20"],
        &["log", "--graph"],
        &["show"],
        &["show", "head"],
        &["diff", "start", "head"],
    ] {
        let mut all = vec![arguments[0], &session];
        all.extend(&arguments[1..]);
        let (mut firsts, mut wholes) = (Samples::default(), Samples::default());
        for (first, whole) in (0..ROUNDS).filter_map(|_| first_and_last(&program, &store, &all)) {
            firsts.add(first);
            wholes.add(whole);
        }
        if firsts.len() == 0 {
            continue;
        }
        let first = firsts.timing();
        let params = json!({
            "command": arguments.join(" "), "turns": turns, "minimum": first.minimum as u64,
            "whole": wholes.timing().minimum as u64, "samples": first.samples,
        });
        report.value("command.first_output", params, first.median, "ns");
        let params = json!({ "command": arguments.join(" "), "turns": turns });
        aims::FIRST_OUTPUT.judge(report, params, first.median / 1e6);
    }
    if let Ok(file) = program.metadata() {
        aims::COMMAND_SIZE.judge(report, json!({}), file.len() as f64 / 1e6);
    }
    list(report, &program);
}

/// Measures `ls` on a store with many sessions.
fn list(report: &mut Report, program: &Path) {
    let directory = temporary();
    let sessions = many_sessions(directory.path());
    let store = directory.path().join("store.db");
    for arguments in [&["ls"][..], &["ls", "--json"], &["ls", "--limit", "50"]] {
        let Some(before) = time_of_children() else { return };
        let runs = (0..ROUNDS).filter_map(|_| first_and_last(program, &store, arguments)).count();
        let Some(after) = time_of_children().filter(|_| runs == ROUNDS) else { return };
        let params =
            json!({ "command": arguments.join(" "), "sessions": sessions, "clock": "cpu", "samples": runs });
        let each = after.saturating_sub(before) / u32::try_from(runs).unwrap_or(1);
        report.value("command.list", params, each.as_nanos() as f64, "ns");
    }
}

/// Returns the path of the command. Prints that the group is skipped if there is none.
pub(crate) fn program(group: &str) -> Option<PathBuf> {
    let named = std::env::var_os("BACKSTITCH").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("backstitch"));
    let program = named.or_else(beside).filter(|path| path.is_file());
    if program.is_none() {
        let advice = "build the command first (cargo build --release -p backstitch-cli)";
        eprintln!("the group `{group}` is skipped: {advice}");
    }
    program
}

/// Starts the command on the store, with its output in a pipe.
pub(crate) fn started(program: &Path, store: &Path, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new(program);
    command.args(arguments).arg("--store").arg(store);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// Runs the command, and returns the time until its first byte and until its end. `None` if it failed.
fn first_and_last(program: &Path, store: &Path, arguments: &[&str]) -> Option<(Elapsed, Elapsed)> {
    let clock = Scope::Thread.start();
    let mut child = started(program, store, arguments)?;
    let mut output = child.stdout.take()?;
    let mut first = [0];
    output.read_exact(&mut first).ok()?;
    let until_first = clock.elapsed();
    std::io::copy(&mut output, &mut std::io::sink()).ok()?;
    let is_done = child.wait().ok()?.success();
    is_done.then(|| (until_first, clock.elapsed()))
}
