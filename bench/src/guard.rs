//! A hook of a guarded program on a directory in which nothing changed, beside a walk that stats the same files.
//!
//! The aim: a hook takes at most twice the walk, and 20 ms for the start of the process and the commit. The command
//! has to be built with the same profile first, as for the group `command`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::command::program;
use crate::report::Report;
use crate::store::temporary;

const FILES: usize = 10_000;
const ROUNDS: usize = 15;

pub(crate) fn run(report: &mut Report) {
    let Some(program) = program() else {
        eprintln!(
            "the group `guard` is skipped: build the command first (cargo build --release -p backstitch-cli)"
        );
        return;
    };
    let directory = temporary();
    let (files, store) = (directory.path().join("files"), directory.path().join("store/store.db"));
    for number in 0..FILES {
        let path = files.join(format!("d{}/e{}/{number}.txt", number / 1_000, number / 50));
        fs::create_dir_all(path.parent().unwrap_or(&files)).expect("a directory");
        fs::write(path, format!("file {number}\n")).expect("a file");
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).arg("--store").arg(&store).current_dir(&files);
        command.env("XDG_STATE_HOME", directory.path().join("state")).env_remove("CLAUDE_PROJECT_DIR");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let installed = command(&["guard", "install", "claude-code"]).status();
    if !installed.is_ok_and(|status| status.success()) {
        eprintln!("the group `guard` is skipped: the hooks could not be installed");
        return;
    }
    let hook = |event: &str, call: usize| {
        let input = json!({"session_id": "bench", "cwd": files, "hook_event_name": event, "prompt": "measure",
            "tool_use_id": format!("toolu_{call}"), "tool_name": "Bash", "tool_input": {"command": "true"}, "tool_response": "ok"});
        let started = Instant::now();
        let mut child = command(&["guard", "hook", "claude-code"]).spawn().expect("the command");
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input.to_string().as_bytes())
            .expect("an event is read");
        assert!(child.wait().expect("a child").success(), "a hook failed");
        started.elapsed()
    };
    hook("SessionStart", 0);
    hook("UserPromptSubmit", 0);
    let (mut walks, mut hooks, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let started = Instant::now();
        assert!(walk(&files) >= FILES);
        walks.push(started.elapsed());
        let started = Instant::now();
        let version = command(&["--version"]).status();
        starts.push(started.elapsed());
        assert!(version.is_ok_and(|status| status.success()));
        hooks.push(hook("PreToolUse", round));
        hooks.push(hook("PostToolUse", round));
    }
    for (metric, mut samples) in [("guard.walk", walks), ("guard.process", starts), ("guard.hook", hooks)] {
        samples.sort_unstable();
        let median = samples[samples.len() / 2];
        let minimum = samples.first().copied().unwrap_or(Duration::ZERO);
        let params = json!({"files": FILES, "minimum": minimum.as_nanos() as u64, "samples": samples.len()});
        report.value(metric, params, median.as_nanos() as f64, "ns");
    }
}

/// Stats all names below a directory, and returns how many there are.
fn walk(directory: &Path) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => 1 + walk(&entry.path()),
        Ok(_) => 1,
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}
