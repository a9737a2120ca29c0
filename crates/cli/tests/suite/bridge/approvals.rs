//! Calls of an engine that need approval.

use std::fs;

use serde_json::json;

use super::stand_in::{AGENT, Claude, run, stage};
use crate::pty::Pty;
use crate::stage::{Stage, ended, text_of, wait_until};

fn asking() -> Stage {
    let stage = stage();
    stage.write("tailor.toml", &format!("{AGENT}\n[approval]\ndefault = \"ask\"\nWebFetch = \"auto\"\n"));
    stage
}

/// Waits until a call waits, and decides about it from elsewhere.
fn decide(stage: &Stage, arguments: &[&str]) {
    let waits = || stage.run(&["ls", "--json"]).output.contains("\"approval\"") || is_paused(stage);
    wait_until("a call that waits", waits);
    let session = stage.session();
    stage.run(&[&[arguments[0], &session], &arguments[1..]].concat()).worked_quietly();
}

fn is_paused(stage: &Stage) -> bool {
    let listed = stage.run(&["ls", "--json"]).output;
    let Some(id) = listed.lines().last().and_then(|line| {
        serde_json::from_str::<serde_json::Value>(line).ok()?["session"].as_str().map(str::to_owned)
    }) else {
        return false;
    };
    stage.run(&["log", &id, "--json"]).output.contains("\"kind\":\"paused\"")
}

#[test]
fn a_call_waits_for_a_person_and_then_runs_or_does_not() {
    let stage = asking();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    // What changes nothing, and what is named, is not asked about.
    claude.calls("toolu_01", "Read", &json!({"file_path": "a.txt"}), |_| ());
    claude.calls("toolu_02", "WebFetch", &json!({"url": "http://127.0.0.1"}), |_| ());
    std::thread::scope(|scope| {
        scope.spawn(|| decide(&stage, &["approve", "--all"]));
        let input = json!({"command": "echo yes > yes"});
        let before =
            claude.calls("toolu_03", "Bash", &input, |files| fs::write(files.join("yes"), "yes\n").unwrap());
        assert_eq!(before, json!({}));
    });
    std::thread::scope(|scope| {
        let input = json!({"command": "echo no > no"});
        claude.answers(&[json!({"type": "tool_use", "id": "toolu_04", "name": "Bash", "input": input})]);
        scope.spawn(|| {
            let count = || {
                stage.run(&["log", &stage.session(), "--json"]).output.matches("\"kind\":\"paused\"").count()
            };
            wait_until("the second call that waits", || count() == 2);
            stage.run(&["deny", &stage.session(), "--all", "--reason", "Keep the seam"]).worked_quietly();
        });
        let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_04"});
        let before = claude.hook("PreToolUse", call);
        assert_eq!(before["hookSpecificOutput"]["permissionDecision"], "deny", "{before}");
        assert!(before.to_string().contains("Keep the seam"), "{before}");
    });
    claude.says("Done.");
    claude.ends("Done.");
    ended(child).worked_quietly();
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(log.contains("Keep the seam"), "{log}");
}

#[test]
fn a_person_at_the_terminal_is_asked_while_the_engine_waits() {
    let stage = asking();
    let agent = text_of(&stage.path("tailor.toml"));
    let terminal = Pty::start(&stage, &["run", "Mend it", "--agent", &agent], 100, 40);
    let mut claude = Claude::begin(&stage);
    let input = json!({"command": "touch ran"});
    std::thread::scope(|scope| {
        scope.spawn(|| {
            terminal.wait_for("Bash needs approval");
            terminal.wait_for("  | touch ran");
            terminal.wait_for("allow it?");
            terminal.send("y\r");
        });
        claude.calls("toolu_01", "Bash", &input, |files| fs::write(files.join("ran"), "").unwrap());
    });
    claude.says("All done.");
    claude.ends("All done.");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("approved: Bash") && text.contains("All done."), "{text}");
}

#[test]
fn a_person_in_a_conversation_is_asked_while_the_engine_waits() {
    let stage = asking();
    let agent = text_of(&stage.path("tailor.toml"));
    let terminal = Pty::start(&stage, &["chat", "--agent", &agent], 100, 40);
    terminal.wait_for("Ctrl-D leaves");
    terminal.send("Mend it\r");
    let mut claude = Claude::begin(&stage);
    let input = json!({"command": "touch ran"});
    std::thread::scope(|scope| {
        scope.spawn(|| {
            terminal.wait_for("  | touch ran");
            terminal.wait_for("allow it?");
            terminal.send("y\r");
        });
        claude.calls("toolu_01", "Bash", &input, |files| fs::write(files.join("ran"), "").unwrap());
    });
    claude.says("All done.");
    claude.ends("All done.");
    terminal.wait_for("All done.");
    terminal.wait_for("turn 1");
    // Before the prompt the terminal would treat the key itself.
    wait_until("the prompt", || terminal.screen().trim_end().ends_with("\n>"));
    terminal.send("\u{4}");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("approved: Bash"), "{text}");
}

#[test]
fn a_run_that_is_killed_while_a_call_waits_continues_without_that_call() {
    let stage = asking();
    let mut child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    let call =
        json!({"tool_name": "Bash", "tool_input": {"command": "touch ran"}, "tool_use_id": "toolu_01"});
    claude.answers(&[
        json!({"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "touch ran"}}),
    ]);
    claude.hook_begun("PreToolUse", call);
    wait_until("a call that waits", || is_paused(&stage));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(claude);
    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    // Some models use the id of a call again. It is another call, and can be approved.
    let count =
        || stage.run(&["log", &stage.session(), "--json"]).output.matches("\"kind\":\"paused\"").count();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("the second call that waits", || count() == 2);
            stage.run(&["approve", &stage.session(), "--all"]).worked_quietly();
        });
        let input = json!({"command": "touch ran"});
        claude.calls("toolu_01", "Bash", &input, |files| fs::write(files.join("ran"), "").unwrap());
    });
    assert!(stage.file("ran").is_some());
    claude.says("Done.");
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}
