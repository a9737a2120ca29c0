//! `show SESSION CALL`: everything that is recorded about one call.

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted};

/// Runs a session with these replies to its end or its pause, and returns its id.
fn session(stage: &Stage, replies: &Value, more: &[&str]) -> String {
    let model = scripted(stage, replies);
    let ran = stage.run(&[&["run", "Sew", "--model", &model, "--json"][..], more].concat());
    last_line(&ran.output)["session"].as_str().unwrap().to_owned()
}

fn call(stage: &Stage, session: &str, index: usize) -> String {
    stage.json(&["show", session])["calls"][index]["call"].as_str().unwrap().to_owned()
}

fn replies(arguments: &Value) -> Value {
    json!([{"text": "I work.", "calls": [{"name": "shell", "arguments": arguments}]}, {"text": "Done."}])
}

#[test]
fn arguments_output_and_files_are_shown_whole() {
    let stage = Stage::new();
    let command = format!("echo {}; echo two; echo {} > made.txt", "x".repeat(300), "line".repeat(40));
    let session = session(&stage, &replies(&json!({"command": command})), &[]);
    let id = call(&stage, &session, 0);
    let short = &id[id.len() - 12..];

    let shown = stage.run(&["show", &session, short]).worked();
    for part in
        [&*id, &command, &"x".repeat(300), "two", "made.txt", "done in", "external", "turn 1", "scripted:"]
    {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    assert!(!shown.contains("+line"), "{shown}");
    let shown = stage.run(&["show", &session, short, "--diff"]).worked();
    assert!(shown.contains("+line"), "{shown}");
    // The session may be left out, and the call of the latest session is found.
    assert_eq!(stage.run(&["show", short, "--diff"]).worked(), shown);

    let report = stage.json(&["show", &session, short]);
    assert_eq!(report["arguments"]["command"], command);
    assert_eq!(report["edited"], Value::Null);
    assert_eq!((&report["status"], &report["effect"]), (&json!("ok"), &json!("external")));
    assert_eq!(report["files"], json!([{"path": "made.txt", "change": "added"}]));
    assert_eq!(report["attempts"][0]["outcome"], "succeeded");
    assert!(report["result"]["result"]["stdout"].as_str().unwrap().ends_with("two\n"), "{report}");
    // A point still shows the session.
    assert!(stage.run(&["show", &session, &format!("after:{short}")]).worked().starts_with("session "));
}

#[test]
fn a_failed_call_shows_its_error_and_what_was_undone() {
    let stage = Stage::new();
    let arguments = json!({"command": "echo half > half.txt; exit 3", "rollback_on_error": true});
    let session = session(&stage, &replies(&arguments), &[]);
    let id = call(&stage, &session, 0);
    let shown = stage.run(&["show", &session, &id]).worked();
    for part in ["failed", "error", "half.txt", "were restored"] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let report = stage.json(&["show", &session, &id]);
    assert_eq!((&report["status"], &report["rolled_back"]), (&json!("failed"), &json!(true)));
}

/// The model's arguments and those that ran are both shown, everywhere.
#[test]
fn an_edited_call_shows_what_was_asked_and_what_ran() {
    let stage = Stage::new().with_variable("USER", "maya");
    let session = session(&stage, &replies(&json!({"command": "echo asked"})), &["--approve", "ask"]);
    let id = call(&stage, &session, 0);
    let waits = stage.run(&["show", &session, &id]).worked();
    assert!(waits.contains("not started") && waits.contains("for approval"), "{waits}");
    let edited = json!({"command": "echo edited"}).to_string();
    stage.run(&["resolve", &session, &id, "edit", "--arguments", &edited]).worked();
    stage.run(&["resume", &session]).worked_quietly();

    let shown = stage.run(&["show", &session, &id]).worked();
    for part in ["echo asked", "echo edited", "approved with other arguments by maya"] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let report = stage.json(&["show", &session, &id]);
    assert_eq!(report["arguments"], json!({"command": "echo asked"}));
    assert_eq!(report["edited"], json!({"command": "echo edited"}));
    assert_eq!(report["decisions"][0]["by"], "maya");

    let conversation = stage.run(&["show", &session]).worked();
    assert!(conversation.contains(r#"edited; it ran with {"command":"echo edited"}"#), "{conversation}");
    let log = stage.run(&["log", &session]).worked();
    for part in [
        r#"approved by maya with other arguments: {"command":"echo edited"}"#,
        r#"shell runs with {"command":"echo edited"}"#,
        "echo asked",
    ] {
        assert!(log.contains(part), "{part} is missing: {log}");
    }
}

#[test]
fn a_call_before_a_rewind_is_found() {
    let stage = Stage::new();
    let session = session(&stage, &replies(&json!({"command": "echo gone"})), &[]);
    let id = call(&stage, &session, 0);
    stage.run(&["rewind", &session, "start"]).worked_quietly();
    let shown = stage.run(&["show", &session, &id]).worked();
    assert!(shown.contains("before a rewind") && shown.contains("echo gone"), "{shown}");
    assert_eq!(stage.json(&["show", &session, &id])["visible"], false);
}

#[test]
fn wrong_names_and_empty_stores_are_refused() {
    let stage = Stage::new();
    assert!(stage.run(&["show", "abcd"]).failed().contains("store_not_found"));
    let session = session(&stage, &replies(&json!({"command": "true"})), &[]);
    let errors = stage.run(&["show", &session, "ffff"]).failed();
    assert!(errors.contains("there is no such call"), "{errors}");
    let errors = stage.run(&["show", "ffff"]).failed();
    assert!(errors.contains("no session ffff") && errors.contains("no call ffff"), "{errors}");
    assert!(stage.run(&["show", &session, "no!"]).called_wrongly().contains("is not a point"));
    assert!(stage.run(&["show", "x y"]).called_wrongly().contains("is not an id"));
}

/// Nothing of a call can control the terminal, also in few columns.
#[test]
fn hostile_text_is_escaped_on_a_narrow_terminal() {
    let stage = Stage::new();
    let arguments = json!({"command": "printf 'a\\033[2Jb\\n'", "input": "\u{1b}]0;title\u{7}"});
    let session = session(&stage, &replies(&arguments), &[]);
    let id = call(&stage, &session, 0);
    let (code, screen) = Pty::start(&stage, &["show", &session, &id], 40, 50).finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\\u001b"), "{screen}");
}
