//! A person who decides about a call sees all of its arguments, and decides about exactly the named call.

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, last_line, scripted};

/// Arguments of every kind that could be hidden, cut or repainted.
fn arguments() -> Vec<Value> {
    let long = format!("echo {}; touch HIDDEN", "harmless ".repeat(40));
    let huge = format!("true {}; touch HIDDEN", "x".repeat(100_000));
    let commands = [
        "true",
        &long,
        &huge,
        "echo one\n  echo two\r\n\techo three\n\n\n; touch HIDDEN",
        "echo \u{1b}[2K\u{1b}[1A\u{9b}2J\u{7}\u{8}\u{7f}\u{85}",
        "echo \u{202e}neddih hcuot\u{2066}\u{200f}\u{2028}",
        "echo a\u{200b}b\u{feff}c\u{e0041}d\u{3164}e\u{a0}f   g",
        "echo \\u001b \\\\ \\\"quoted\\\" ä 漢 👍 {\"json\": [1]}",
    ];
    commands.iter().map(|command| json!({"command": command, "input": format!("{command}\u{1b}")})).collect()
}

/// Parses the arguments that are shown for a call of a tool: the JSON after its name.
#[track_caller]
fn shown(text: &str, tool: &str) -> Value {
    let start = text.find(&format!("  {tool} {{")).unwrap_or_else(|| panic!("{tool} is not shown: {text}"));
    let after = &text[start + tool.len() + 3..];
    serde_json::Deserializer::from_str(after).into_iter::<Value>().next().unwrap().unwrap()
}

fn waiting(stage: &Stage, replies: &Value, more: &[&str]) -> Ran {
    let model = scripted(stage, replies);
    let arguments = ["run", "Do it", "--model", &model, "--approve", "ask"];
    let paused = stage.run(&[&arguments[..], more].concat());
    assert_eq!(paused.code, Some(3), "{paused:?}");
    paused
}

#[test]
fn all_arguments_of_a_waiting_call_are_shown_unchanged() {
    for arguments in arguments() {
        let stage = Stage::new();
        let replies = json!([
            {"text": "I run it.", "calls": [{"name": "shell", "arguments": arguments}]}, {"text": "Done."},
        ]);
        let paused = waiting(&stage, &replies, &[]);
        assert_eq!(shown(&paused.errors, "shell"), arguments, "at the pause");
        let text = stage.run(&["show"]).worked();
        assert_eq!(shown(&text[..text.find("\n\n").unwrap()], "shell"), arguments, "in show");
        let log = stage.run(&["log"]).worked();
        assert_eq!(shown(&log[log.find("paused (approval)").unwrap()..], "shell"), arguments, "in log");

        let again = stage.run(&["resume", "--json"]);
        assert_eq!(last_line(&again.output)["waiting"][0]["arguments"], arguments, "at the pause, as JSON");
        assert_eq!(stage.json(&["show"])["waiting"][0]["arguments"], arguments, "in show, as JSON");
        let log = stage.run(&["log", "--json"]).worked();
        let line = log.lines().find(|line| line.contains("\"kind\":\"paused\"")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["arguments"], arguments, "in log, as JSON");
    }
}

#[test]
fn edited_arguments_that_do_not_fit_the_tool_are_refused() {
    let stage = Stage::new();
    let replies = json!([
        {"calls": [{"name": "shell", "arguments": {"command": "true"}}]}, {"text": "Done."},
    ]);
    let paused = last_line(&waiting(&stage, &replies, &["--json"]).output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    for (arguments, expected) in
        [(r#"{"command": 7}"#, "/command"), (r#"{"comand": "true"}"#, "comand"), ("{}", "command")]
    {
        let errors =
            stage.run(&["resolve", session, call, "edit", "--arguments", arguments]).called_wrongly();
        assert!(
            errors.contains("the arguments of shell do not fit:") && errors.contains(expected),
            "{errors}"
        );
    }
    let resolve = ["resolve", session, call, "edit", "--arguments", r#"{"command": "touch edited"}"#];
    stage.run(&resolve).worked();
    stage.run(&["resume"]).worked_quietly();
    assert!(stage.file("edited").is_some());
}

#[test]
fn arguments_of_a_call_whose_effect_is_not_known_are_shown_as_they_ran() {
    let stage = Stage::new();
    let edited = json!({"command": format!("touch begun; sleep 60; {}", "echo edited; ".repeat(20))});
    let replies = json!([
        {"calls": [{"name": "shell", "arguments": {"command": "true"}}]}, {"text": "Done."},
    ]);
    let paused = last_line(&waiting(&stage, &replies, &["--json"]).output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    stage.run(&["resolve", session, call, "edit", "--arguments", &edited.to_string()]).worked();
    let mut child = stage.command(&["resume"]).spawn().unwrap();
    crate::stage::wait_until("the call", || stage.file("begun").is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let paused = stage.run(&["resume"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    assert_eq!(shown(&paused.errors, "shell"), edited);
}

#[test]
fn every_waiting_call_of_an_answer_is_shown() {
    let stage = Stage::new();
    let calls = ["a.txt", "b.txt"]
        .map(|path| json!({"name": "write_file", "arguments": {"path": path, "text": "x"}}));
    let paused = waiting(&stage, &json!([{"calls": calls}, {"text": "Done."}]), &[]);
    for path in ["a.txt", "b.txt"] {
        assert!(paused.errors.contains(&format!("\"path\":\"{path}\"")), "{}", paused.errors);
    }
}

#[test]
fn a_short_id_names_nothing() {
    let stage = Stage::new();
    let replies = json!([
        {"calls": [{"name": "shell", "arguments": {"command": "touch ran"}}]}, {"text": "Done."},
    ]);
    let paused = last_line(&waiting(&stage, &replies, &["--json"]).output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    let end = &session[session.len() - 3..];
    for short in ["", "0", end, "*", "%", "zz zz"] {
        let with_session: [&[&str]; 15] = [
            &["resume", short],
            &["log", short],
            &["show", short],
            &["request", short],
            &["diff", short, "start"],
            &["rewind", short, "start"],
            &["undo", short],
            &["fork", short],
            &["resolve", short, call, "approve"],
            &["resolve", session, short, "approve"],
            &["resolve", short, short, "approve"],
            &["resolve", short, "-", "continue"],
            &["send", short, "hello"],
            &["cancel", short],
            &["pause", short],
        ];
        // A number is a turn or a position of the latest session, for commands that only read.
        let is_number = short.parse::<u64>().is_ok();
        let reads = |arguments: &&&[&str]| is_number && ["request", "diff"].contains(&arguments[0]);
        for arguments in with_session.iter().filter(|arguments| !reads(arguments)) {
            let ran = stage.run(arguments);
            assert_eq!((ran.code, ran.output.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.errors);
        }
        let with_point: [&[&str]; 3] =
            [&["show", session, short], &["rewind", session, short], &["diff", session, short]];
        // A number is a position.
        for arguments in with_point.into_iter().filter(|_| short.parse::<u64>().is_err()) {
            assert_eq!(stage.run(arguments).code, Some(2), "{arguments:?}");
        }
    }
    stage.run(&["resume"]);
    assert_eq!(stage.file("ran"), None, "nothing was approved");
    let (session, call) = (&session[session.len() - 8..], &call[call.len() - 8..]);
    stage.run(&["resolve", session, call, "approve"]).worked();
    stage.run(&["resume"]).worked_quietly();
    assert!(stage.file("ran").is_some());
}
