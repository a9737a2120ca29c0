//! The `backstitch` command on a session of 5,000 turns: the time until it prints something, and all of its
//! time. The aim: `log`, `show` and `diff` start to print within 100 ms.
//!
//! The command has to be built with the same profile first; the program is looked for beside this one, or at the
//! path in `BACKSTITCH`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::report::Report;
use crate::store::{long_session, temporary};

/// How often each command is run.
const ROUNDS: usize = 9;

pub(crate) fn run(report: &mut Report) {
    let Some(program) = program() else {
        eprintln!(
            "the group `command` is skipped: build the command first (cargo build --release -p backstitch-cli)"
        );
        return;
    };
    let directory = temporary();
    let (session, turns) = long_session(directory.path());
    let store = directory.path().join("store.db");
    let session = session.to_string();
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
        let mut runs: Vec<(Duration, Duration)> =
            (0..ROUNDS).filter_map(|_| first_and_last(&program, &store, &all)).collect();
        if runs.is_empty() {
            continue;
        }
        runs.sort_unstable();
        let (first, _) = runs[runs.len() / 2];
        let (minimum, _) = runs[0];
        let whole = runs.iter().map(|(_, whole)| *whole).min().unwrap_or_default();
        let params = json!({
            "command": arguments.join(" "), "turns": turns, "minimum": minimum.as_nanos() as u64,
            "whole": whole.as_nanos() as u64, "samples": runs.len(),
        });
        report.value("command.first_output", params, first.as_nanos() as f64, "ns");
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("BACKSTITCH").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("backstitch"));
    named.or_else(beside).filter(|path| path.is_file())
}

/// Runs the command, and returns the time until its first byte and until its end. `None` if it failed.
fn first_and_last(program: &Path, store: &Path, arguments: &[&str]) -> Option<(Duration, Duration)> {
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--store")
        .arg(store)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    let mut first = [0];
    output.read_exact(&mut first).ok()?;
    let until_first = started.elapsed();
    std::io::copy(&mut output, &mut std::io::sink()).ok()?;
    let is_done = child.wait().ok()?.success();
    is_done.then(|| (until_first, started.elapsed()))
}
