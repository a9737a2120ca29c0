//! Runs that are stopped: by a budget, a deadline, a cancellation, a signal.

use std::fs;

use serde_json::{Value, json};

use super::stand_in::{Claude, run, stage};
use crate::stage::{ended, interrupt};

/// Waits for the request to stop, and ends the turn.
fn is_interrupted(claude: &mut Claude<'_>) {
    loop {
        let line = claude.pipes.read();
        if line["request"]["subtype"] == "interrupt" {
            break;
        }
    }
    claude.pipes.send(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "total_cost_usd": 0.1}));
    claude.pipes.read_rest();
}

#[test]
fn a_spent_budget_pauses_and_more_of_it_continues() {
    let stage = stage();
    let child = run(&stage, &["--budget", "turns=2", "--json"]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    claude.answers(&[json!({"type": "tool_use", "id": "toolu_02", "name": "Write", "input": {}})]);
    let call = json!({"tool_name": "Write", "tool_input": {}, "tool_use_id": "toolu_02"});
    claude.hook("PreToolUse", call.clone());
    fs::write(stage.path("files/two"), "2").unwrap();
    // The call of the last turn is finished; then the engine is stopped.
    claude.hook_begun("PostToolUse", call);
    is_interrupted(&mut claude);
    drop(claude);
    let ran = ended(child);
    assert!(ran.output.contains("budget"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(stage.file("two").as_deref(), Some("2"));
    let session = stage.session();
    let child = stage.command(&["resume", &session, "--budget", "turns=10"]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    assert!(claude.option("--resume").is_some(), "{:?}", claude.pipes.arguments);
    assert!(
        claude.prompt["message"]["content"].as_str().unwrap().starts_with("Continue"),
        "{}",
        claude.prompt
    );
    claude.says("Done.");
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn a_deadline_stops_a_running_call_and_rolls_it_back() {
    let stage = stage();
    let child = run(&stage, &["--deadline", "3s", "--json"]);
    let mut claude = Claude::begin(&stage);
    claude.begins_call("toolu_01", "Bash", &json!({"command": "sleep 600"}));
    fs::write(stage.path("files/half"), "half").unwrap();
    is_interrupted(&mut claude);
    drop(claude);
    let ran = ended(child);
    assert!(ran.output.contains("deadline"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(stage.file("half"), None, "a call that was stopped is rolled back");
}

#[test]
fn a_cancelled_evaluation_ends_the_engine() {
    let stage = stage();
    let child = run(&stage, &["--json"]);
    let mut claude = Claude::begin(&stage);
    claude.begins_call("toolu_01", "Bash", &json!({"command": "sleep 600"}));
    stage.run(&["cancel", &stage.session()]).worked_quietly();
    is_interrupted(&mut claude);
    drop(claude);
    let ran = ended(child);
    assert!(ran.output.contains("cancelled"), "{}\n{}", ran.output, ran.errors);
}

#[test]
fn a_signal_pauses_and_resume_says_which_call_was_interrupted() {
    let stage = stage();
    let child = run(&stage, &["--json"]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    claude.begins_call("toolu_02", "Bash", &json!({"command": "make everything"}));
    fs::write(stage.path("files/half"), "half").unwrap();
    let ran = std::thread::scope(|scope| {
        let ending = scope.spawn(|| interrupt(child));
        is_interrupted(&mut claude);
        drop(claude);
        ending.join().unwrap()
    });
    assert!(ran.output.contains("paused"), "{}\n{}", ran.output, ran.errors);
    assert_eq!((stage.file("one").as_deref(), stage.file("half")), (Some("1"), None));
    let session = stage.session();
    let child = stage.command(&["resume", &session]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    // The open call is in the transcript of the engine, so the conversation is cut before it.
    assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
    assert!(claude.option("--fork-session").is_some());
    let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("make everything") && prompt.contains("rolled back"), "{prompt}");
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
    let spent: Value = stage.json(&["ls", "--limit", "1"]);
    assert_eq!(spent["session"], session.as_str());
}
