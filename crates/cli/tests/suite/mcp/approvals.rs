//! Calls that need approval: decided at the client, or from another terminal.

use serde_json::{Value, json};

use super::client::{Client, failed, worked};
use crate::stage::{Stage, wait_until};

const WRITE: [&str; 2] = ["--approve", "write_file"];

fn write() -> Value {
    json!({"path": "a.txt", "text": "1\n"})
}

/// Waits until a call waits for approval.
fn wait_for_question(stage: &Stage) {
    wait_until("the pause", || {
        let listed = stage.run(&["ls", "--json"]).output;
        listed.contains("\"reason\":\"approval\"")
    });
}

#[test]
fn a_call_is_approved_from_another_terminal() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &WRITE);
    let id = client.post_call(None, "write_file", write());
    wait_for_question(&stage);
    assert_eq!(stage.file("a.txt"), None);
    // Other calls run meanwhile.
    worked(&client.call("shell", json!({"command": "true"})));
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    worked(&client.answer(id));
    assert_eq!(stage.file("a.txt").unwrap(), "1\n");
    let id = client.post_call(None, "write_file", write());
    wait_for_question(&stage);
    stage.run(&["deny", &stage.session(), "--all", "--reason", "no more"]).worked();
    let told = failed(&client.answer(id));
    assert!(told.contains("no more"), "{told}");
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn a_client_with_elicitation_is_asked() {
    let stage = Stage::new();
    let mut client = Client::connected_with(&stage, &WRITE, &json!({"elicitation": {}}));
    for (action, is_run) in [("decline", false), ("accept", true)] {
        let id = client.post_call(None, "write_file", write());
        let question = loop {
            let line = client.line();
            if line["method"] == "elicitation/create" {
                break line;
            }
        };
        let asked = question["params"]["message"].as_str().unwrap();
        assert!(asked.contains("write_file") && asked.contains("a.txt"), "{asked}");
        let content = if action == "accept" { json!({}) } else { Value::Null };
        client.send(&json!({
            "jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": content},
        }));
        let answer = client.answer(id);
        if is_run {
            worked(&answer);
        } else {
            assert!(failed(&answer).contains("declined"), "{answer}");
        }
        assert_eq!(stage.file("a.txt").is_some(), is_run);
    }
}

#[test]
fn a_client_that_leaves_gives_up_what_waits() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &WRITE);
    let id = client.post_call(Some("toolu_1"), "write_file", write());
    wait_for_question(&stage);
    let cancelled = json!({"requestId": id});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    wait_until("the end of the pause", || !stage.run(&["ls", "--json"]).output.contains("approval"));
    let told = failed(&client.call_as("toolu_1", "write_file", write()));
    assert!(told.contains("cancelled"), "{told}");
    assert_eq!(stage.file("a.txt"), None);
}

#[test]
fn a_call_that_waits_when_the_server_is_killed_does_not_run() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &WRITE);
    client.post_call(Some("toolu_1"), "write_file", write());
    wait_for_question(&stage);
    client.kill();
    let mut client = Client::connected(&stage, &WRITE);
    let told = failed(&client.call_as("toolu_1", "write_file", write()));
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(stage.file("a.txt"), None);
    assert_eq!(client.leave().code, Some(0));
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}
