//! A hook of a guarded program on a directory in which nothing changed, beside a walk that stats the same files.
//!
//! The command has to be built with the same profile first, as for the group `command`.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::aims;
use crate::command::program;
use crate::measure::{Samples, Scope};
use crate::report::Report;
use crate::store::temporary;
use crate::workspace::walk;

const FILES: usize = 10_000;
const ROUNDS: usize = 15;

pub(crate) fn run(report: &mut Report) {
    let Some(program) = program("guard") else { return };
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
    let hook = |samples: &mut Samples, event: &str, call: usize| {
        let input = json!({"session_id": "bench", "cwd": files, "hook_event_name": event, "prompt": "measure",
            "tool_use_id": format!("toolu_{call}"), "tool_name": "Bash", "tool_input": {"command": "true"}, "tool_response": "ok"});
        samples.measure(Scope::Thread, || {
            let mut child = command(&["guard", "hook", "claude-code"]).spawn().expect("the command");
            let mut pipe = child.stdin.take().expect("a pipe");
            pipe.write_all(input.to_string().as_bytes()).expect("an event is read");
            drop(pipe);
            assert!(child.wait().expect("a child").success(), "a hook failed");
        });
    };
    hook(&mut Samples::default(), "SessionStart", 0);
    hook(&mut Samples::default(), "UserPromptSubmit", 0);
    let (mut walks, mut hooks, mut starts): (Samples, Samples, Samples) = Default::default();
    for round in 0..ROUNDS {
        assert!(walks.measure(Scope::Thread, || walk(&files)) >= FILES as u64);
        let version = starts.measure(Scope::Thread, || command(&["--version"]).status());
        assert!(version.is_ok_and(|status| status.success()));
        hook(&mut hooks, "PreToolUse", round);
        hook(&mut hooks, "PostToolUse", round);
    }
    let beyond = hooks.timing().median - walks.timing().median;
    aims::GUARD_HOOK.judge(report, json!({"files": FILES}), beyond / 1e6);
    for (metric, samples) in [("guard.walk", walks), ("guard.process", starts), ("guard.hook", hooks)] {
        let timing = samples.timing();
        let params = json!({"files": FILES, "minimum": timing.minimum as u64, "samples": timing.samples});
        report.value(metric, params, timing.median, "ns");
    }
}
