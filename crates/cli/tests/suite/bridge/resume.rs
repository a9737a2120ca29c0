//! Sessions whose process was killed, and those that were rewound.

use std::fs;

use serde_json::{Value, json};

use super::stand_in::{Claude, run, stage};
use crate::stage::{Stage, ended, wait_until};

fn call_id(stage: &Stage, name: &str) -> String {
    let output = stage.run(&["log", &stage.session(), "--json", "--all"]).worked_quietly();
    let records = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut started = records.filter(|one| one["kind"] == "call_started" && one["data"]["name"] == name);
    started.next().unwrap()["data"]["call_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_run_takes_its_engine_with_it_and_resume_continues() {
    let stage = stage();
    let mut child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    claude.begins_call("toolu_02", "Bash", &json!({"command": "sleep 600"}));
    fs::write(stage.path("files/half"), "half").unwrap();
    let engine = fs::read_to_string(stage.path("pipes/pid")).unwrap().trim().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let is_there = || {
        let state = fs::read_to_string(format!("/proc/{engine}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z")
    };
    wait_until("the end of the engine", || !is_there());
    drop(claude);

    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    assert_eq!(stage.file("half"), None, "the open call is rolled back before the engine continues");
    assert_eq!(stage.file("one").as_deref(), Some("1"));
    assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
    let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("sleep 600"), "{prompt}");
    claude.says("Done.");
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn a_run_that_is_killed_before_the_first_answer_is_asked_again() {
    let stage = stage();
    let mut child = run(&stage, &[]);
    let claude = Claude::begin(&stage);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(claude);
    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    assert_eq!(claude.prompt["message"]["content"], "Mend it");
    assert_eq!(claude.option("--resume"), None);
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn a_rewound_session_continues_the_engine_at_that_point() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    claude.calls("toolu_02", "Bash", &json!({}), |files| fs::write(files.join("two"), "2").unwrap());
    claude.says("Done.");
    let first = claude.session.clone();
    claude.ends("Done.");
    ended(child).worked_quietly();
    let session = stage.session();
    stage.run(&["rewind", &session, &format!("before:{}", call_id(&stage, "Bash"))]).worked_quietly();
    assert_eq!((stage.file("one").as_deref(), stage.file("two")), (Some("1"), None));
    let child = stage.command(&["resume", &session]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    assert_eq!(claude.option("--resume").as_deref(), Some(first.as_str()));
    assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
    assert!(claude.option("--fork-session").is_some());
    claude.says("Otherwise.");
    claude.ends("Otherwise.");
    assert!(ended(child).worked_quietly().contains("Otherwise."));
}

#[test]
fn a_rewind_to_before_a_call_of_the_agents_tools_cuts_before_it() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    let mut tools = claude.tools();
    claude.stitches(&mut tools, "toolu_02", "echo two > two");
    claude.says("Done.");
    claude.ends("Done.");
    ended(child).worked_quietly();
    let session = stage.session();
    stage.run(&["rewind", &session, &format!("before:{}", call_id(&stage, "stitch"))]).worked_quietly();
    assert_eq!((stage.file("one").as_deref(), stage.file("two")), (Some("1"), None));
    let child = stage.command(&["resume", &session]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
    let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
    assert_eq!(prompt, "Continue with the task.", "the call was undone, and the program does not know it");
    claude.ends("Otherwise.");
    assert!(ended(child).worked_quietly().contains("Otherwise."));
}

#[test]
fn a_message_is_the_instruction_at_a_rewound_point() {
    for is_sent in [false, true] {
        let stage = stage();
        let child = run(&stage, &[]);
        let mut claude = Claude::begin(&stage);
        claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
        claude.calls("toolu_02", "Bash", &json!({}), |files| fs::write(files.join("two"), "2").unwrap());
        claude.ends("Done.");
        ended(child).worked_quietly();
        let session = stage.session();
        stage.run(&["rewind", &session, &format!("before:{}", call_id(&stage, "Bash"))]).worked_quietly();
        let errors = stage.run(&["ask", &session, "Sew it by hand"]).failed();
        assert!(errors.contains("evaluation_open") && errors.contains("--message"), "{errors}");
        let child = if is_sent {
            stage.run(&["send", &session, "Sew it by hand"]).worked_quietly();
            stage.command(&["resume", &session]).spawn().unwrap()
        } else {
            stage.command(&["resume", &session, "--message", "Sew it by hand"]).spawn().unwrap()
        };
        let mut claude = Claude::begin(&stage);
        assert_eq!(claude.option("--resume-session-at").as_deref(), Some("r-toolu-01"));
        assert_eq!(claude.prompt["message"]["content"], "Sew it by hand");
        claude.says("Sewn.");
        claude.ends("Sewn.");
        assert!(ended(child).worked_quietly().contains("Sewn."));
        let log = stage.run(&["log", &session]).worked_quietly();
        assert!(log.contains("Sew it by hand"), "{log}");
    }
}

#[test]
fn a_fork_continues_with_a_copy_of_the_conversation() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
    claude.says("Done.");
    claude.ends("Done.");
    ended(child).worked_quietly();
    let fork = stage.json(&["fork", &stage.session()])["session"].as_str().unwrap().to_owned();
    let child = stage.command(&["ask", &fork, "And now?"]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    let resumed = claude.option("--resume").unwrap();
    assert!(resumed.ends_with(".jsonl"), "in another directory it is found by its file: {resumed}");
    assert!(claude.option("--fork-session").is_some(), "{:?}", claude.pipes.arguments);
    assert_eq!(claude.prompt["message"]["content"], "And now?");
    claude.says("Forked.");
    claude.ends("Forked.");
    assert!(ended(child).worked_quietly().contains("Forked."));
    // The fork has a conversation of its own now.
    let child = stage.command(&["ask", &fork, "And then?"]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    assert_eq!(claude.option("--resume").as_deref(), Some("forked"));
    claude.ends("Again.");
    ended(child).worked_quietly();
}
