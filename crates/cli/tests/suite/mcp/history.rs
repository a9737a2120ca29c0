//! Time travel over MCP.

use serde_json::{Value, json};

use super::client::{Client, failed, worked};
use crate::stage::{Stage, wait_until};

fn value(answer: &Value) -> Value {
    worked(answer);
    answer["result"]["structuredContent"].clone()
}

#[test]
fn a_session_returns_to_a_checkpoint_and_back() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let empty = value(&client.call("checkpoints", json!({})));
    assert_eq!(empty["checkpoints"], json!([]));
    worked(&client.call_as("one", "write_file", json!({"path": "a.txt", "text": "1\n"})));
    worked(&client.call_as("two", "write_file", json!({"path": "a.txt", "text": "2\n"})));
    let listed = value(&client.call("checkpoints", json!({})));
    let points = listed["checkpoints"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    let before = points[1]["before"].as_str().unwrap().to_owned();

    let changed = value(&client.call("diff", json!({"from": before})));
    assert_eq!(changed["files"][0]["path"], "a.txt");
    assert!(changed["files"][0]["diff"].as_str().unwrap().contains("+2"), "{changed}");

    worked(&client.call_as("three", "rewind", json!({"point": before, "reason": "too long"})));
    assert_eq!(stage.file("a.txt").unwrap(), "1\n");
    // What was undone is not run again under its id.
    let told = failed(&client.call_as("two", "write_file", json!({"path": "a.txt", "text": "2\n"})));
    assert!(told.contains("rewind"), "{told}");
    worked(&client.call_as("four", "undo", json!({})));
    assert_eq!(stage.file("a.txt").unwrap(), "2\n");
    worked(&client.call_as("four", "undo", json!({})));
    assert_eq!(stage.file("a.txt").unwrap(), "2\n", "a repeated undo changes nothing");
    worked(&client.call_as("two", "write_file", json!({"path": "a.txt", "text": "2\n"})));

    let log = value(&client.call("log", json!({"limit": 100})));
    let log = log["log"].as_array().unwrap();
    assert!(log.iter().any(|line| line["text"].as_str().unwrap().contains("back to")), "{log:?}");
    assert_eq!(client.leave().code, Some(0));
    assert_eq!(stage.json(&["ls"])["status"], "idle");

    // Another process knows what was undone and repeated.
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call_as("four", "undo", json!({})));
    assert_eq!(stage.file("a.txt").unwrap(), "2\n");
}

#[test]
fn history_does_not_change_while_a_call_runs() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1\n"})));
    let waiting = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done"});
    let running = client.post_call(None, "shell", waiting);
    wait_until("the call", || stage.file("begun").is_some());
    for (name, arguments) in [("rewind", json!({"point": "start"})), ("undo", json!({})), ("fork", json!({}))]
    {
        let told = failed(&client.call(name, arguments));
        assert!(told.contains("running"), "{told}");
    }
    // Reading is allowed.
    value(&client.call("checkpoints", json!({})));
    std::fs::write(stage.path("files/go"), "").unwrap();
    worked(&client.answer(running));
    worked(&client.call("rewind", json!({"point": "start"})));
    assert_eq!(stage.file("a.txt"), None);
}

#[test]
fn a_fork_has_its_own_directory() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1\n"})));
    let forked = worked(&client.call_as("f", "fork", json!({})));
    let forked: Value = serde_json::from_str(&forked).unwrap();
    let directory = forked["workspace"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(format!("{directory}/a.txt")).unwrap(), "1\n");
    let again: Value = serde_json::from_str(&worked(&client.call_as("f", "fork", json!({})))).unwrap();
    assert_eq!(forked, again);
}

#[test]
fn wrong_arguments_are_explained() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    for (name, arguments) in [
        ("rewind", json!({})),
        ("rewind", json!({"point": "the moon"})),
        ("rewind", json!({"point": 7})),
        ("rewind", json!({"point": "before:ffffffff"})),
        ("undo", json!({})),
        ("undo", json!({"all": true})),
        ("log", json!({"limit": 0})),
        ("log", json!({"limit": 1e99})),
        ("diff", json!({})),
        ("fork", json!({"point": "turn:99999999999999999999"})),
    ] {
        let told = failed(&client.call(name, arguments.clone()));
        assert!(!told.is_empty(), "{name} {arguments}");
    }
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1\n"})));
}
