//! Calls of an engine that need approval.

use std::fs;

use serde_json::json;

use super::stand_in::{AGENT, Claude, run, stage};
use crate::pty::Pty;
use crate::stage::{Stage, ended, signal, text_of, wait_until};

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
    crate::chat::prompt(&terminal);
    terminal.send("\u{4}");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("approved: Bash"), "{text}");
}

/// Lets a call wait, and ends the run: by a signal, or without a word.
fn ended_while_a_call_waits(stage: &Stage, is_killed: bool) {
    let mut child = run(stage, &[]);
    let mut claude = Claude::begin(stage);
    let input = json!({"command": "touch ran"});
    claude.answers(&[json!({"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": input})]);
    let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_01"});
    claude.hook_begun("PreToolUse", call);
    wait_until("a call that waits", || is_paused(stage));
    if is_killed {
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    signal(&child, "INT");
    claude.pipes.read_rest();
    drop(claude);
    ended(child);
}

#[test]
fn a_call_that_waited_is_not_forgotten_when_the_session_is_resumed() {
    for is_killed in [false, true] {
        let stage = asking();
        ended_while_a_call_waits(&stage, is_killed);
        let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
        let claude = Claude::begin(&stage);
        let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
        assert!(prompt.starts_with("Continue with the task.") && prompt.contains("touch ran"), "{prompt}");
        assert!(prompt.contains("waited for approval and were not run"), "{prompt}");
        claude.ends("Done.");
        ended(child).worked_quietly();
        let log = stage.run(&["log", &stage.session()]).worked_quietly();
        assert!(log.contains("waited for approval and was not run"), "{log}");
    }
}

#[test]
fn a_message_denies_the_calls_that_waited_and_is_the_reason() {
    let stage = asking();
    ended_while_a_call_waits(&stage, true);
    let session = stage.session();
    let child = stage.command(&["resume", &session, "--message", "Sew it by hand"]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
    assert!(prompt.starts_with("Sew it by hand") && prompt.contains("touch ran"), "{prompt}");
    claude.ends("Done.");
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    // Both lines are cut off in the middle of the message.
    let reason = "waited for approval and was not run, because the user gave another instruction";
    assert!(ran.errors.contains(reason), "{}", ran.errors);
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains(reason), "{log}");
    assert!(stage.file("ran").is_none());
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
