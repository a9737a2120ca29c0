//! Runs that are stopped: by a budget, a deadline, a cancellation, a signal.

use std::fs;
use std::process::Child;

use serde_json::{Value, json};

use super::pipes::{give_up, with_deadline};
use super::stand_in::{Claude, run, stage};
use crate::stage::{Stage, ended, interrupt, signal};

/// What the program gives its model as the result of a call that it interrupts.
const REJECTED: &str = "The user doesn't want to proceed with this tool use.";

fn wait_for_interrupt(claude: &mut Claude<'_>) {
    while !claude.is_interrupted {
        claude.is_interrupted = claude.pipes.read()["request"]["subtype"] == "interrupt";
    }
}

/// Ends the turn of a program that was interrupted.
fn ends_turn(claude: &mut Claude<'_>) {
    claude.pipes.send(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "total_cost_usd": 0.1}));
    claude.pipes.read_rest();
}

/// Waits for the request to stop, and ends the turn.
fn is_interrupted(claude: &mut Claude<'_>) {
    wait_for_interrupt(claude);
    ends_turn(claude);
}

/// A run that is stopped in some way, in the second call.
fn stopped_in_a_call(stop: impl FnOnce(&Stage, &Child)) -> Stage {
    try_stopped_in_a_call(&[], stop).expect("nothing stops it before")
}

/// The same. Returns `None` if the run was stopped before.
fn try_stopped_in_a_call(more: &[&str], stop: impl FnOnce(&Stage, &Child)) -> Option<Stage> {
    let stage = stage();
    let mut child = run(&stage, &[&["--json"], more].concat());
    let Some(mut claude) = Claude::try_begin(&stage, &mut child) else { return give_up(child) };
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    if claude.is_interrupted
        || !claude.begins_call("toolu_02", "Bash", &json!({"command": "make everything"}))
    {
        return give_up(child);
    }
    fs::write(stage.path("files/half"), "half").unwrap();
    stop(&stage, &child);
    wait_for_interrupt(&mut claude);
    claude.result_of("toolu_02", &json!(REJECTED), true);
    ends_turn(&mut claude);
    drop(claude);
    let ran = ended(child);
    assert_eq!((stage.file("one").as_deref(), stage.file("half")), (Some("1"), None), "{}", ran.output);
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(log.contains("was interrupted") && !log.contains("proceed"), "{log}");
    Some(stage)
}

#[test]
fn an_interrupted_call_is_rolled_back_and_named_however_the_run_was_stopped() {
    stopped_in_a_call(|stage, _| {
        stage.run(&["cancel", &stage.session()]).worked_quietly();
    });
    let paused = [
        with_deadline(|deadline| try_stopped_in_a_call(&["--deadline", deadline], |_, _| ())),
        stopped_in_a_call(|stage, _| {
            stage.run(&["pause", &stage.session()]).worked_quietly();
        }),
        stopped_in_a_call(|_, child| signal(child, "INT")),
    ];
    for stage in paused {
        let child = stage.command(&["resume", &stage.session(), "--deadline", "60s"]).spawn().unwrap();
        let claude = Claude::begin(&stage);
        // The program has a result of the call, which says that the user rejected it.
        assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
        let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
        assert!(prompt.contains("make everything") && prompt.contains("rolled back"), "{prompt}");
        claude.ends("Done.");
        assert!(ended(child).worked_quietly().contains("Done."));
    }
}

#[test]
fn a_cancelled_or_paused_session_does_not_start_its_engine() {
    for (request, outcome) in [("cancel", "cancelled"), ("pause", "paused")] {
        let stage = stage();
        let mut child = run(&stage, &[]);
        let mut claude = Claude::begin(&stage);
        claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        drop(claude);
        fs::remove_file(stage.path("pipes/pid")).unwrap();
        stage.run(&[request, &stage.session()]).worked_quietly();
        let ran = stage.run(&["resume", &stage.session(), "--json"]);
        assert!(ran.output.contains(outcome), "{}\n{}", ran.output, ran.errors);
        assert!(!stage.path("pipes/pid").exists(), "the program was started");
    }
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
    with_deadline(|deadline| {
        let stage = stage();
        let mut child = run(&stage, &["--deadline", deadline, "--json"]);
        let Some(mut claude) = Claude::try_begin(&stage, &mut child) else { return give_up(child) };
        if !claude.begins_call("toolu_01", "Bash", &json!({"command": "sleep 600"})) {
            return give_up(child);
        }
        fs::write(stage.path("files/half"), "half").unwrap();
        is_interrupted(&mut claude);
        drop(claude);
        let ran = ended(child);
        assert!(ran.output.contains("deadline"), "{}\n{}", ran.output, ran.errors);
        assert_eq!(stage.file("half"), None, "a call that was stopped is rolled back");
        Some(())
    });
}

#[test]
fn a_cancelled_evaluation_ends_the_engine() {
    let stage = stage();
    let child = run(&stage, &["--json"]);
    let mut claude = Claude::begin(&stage);
    let mut tools = claude.tools();
    claude.begins_call("toolu_01", "Bash", &json!({"command": "sleep 600"}));
    stage.run(&["cancel", &stage.session()]).worked_quietly();
    wait_for_interrupt(&mut claude);
    // From now on no tool of the agent runs either.
    let late = tools.call("toolu_02", &json!({"script": "echo late > late"}));
    assert!(late["error"].is_object() || late["result"]["isError"] == true, "{late}");
    assert_eq!(stage.file("late"), None);
    ends_turn(&mut claude);
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
