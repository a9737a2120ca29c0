//! Tools, failures, concurrency, cancellation, progress, and input that is not the protocol. Revisions and errors of the protocol
//! are tested in its crate.

use serde_json::json;

use super::client::{Client, failed, worked};
use crate::stage::{Stage, wait_until};

#[test]
fn tools_are_listed_with_their_effects() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["mend", "read_file", "shell", "write_file", "checkpoints", "log", "diff", "rewind", "undo", "fork"]
    );
    let hint = |name: &str, hint: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"][hint].clone()
    };
    assert_eq!(hint("read_file", "readOnlyHint"), true);
    assert_eq!(hint("write_file", "readOnlyHint"), false);
    assert_eq!(hint("shell", "openWorldHint"), true);
    assert_eq!(hint("log", "readOnlyHint"), true);
    assert_eq!(hint("rewind", "readOnlyHint"), false);
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
}

#[test]
fn a_failed_call_is_rolled_back_and_a_session_has_all_calls() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", json!({"path": "note.txt", "text": "seven\n"})));
    let command = "echo more >> note.txt; echo new > other.txt; exit 3";
    let told = failed(&client.call("mend", json!({"script": command})));
    assert!(told.contains('3'), "{told}");
    assert_eq!(stage.file("note.txt").unwrap(), "seven\n");
    assert_eq!(stage.file("other.txt"), None);
    assert!(worked(&client.call("read_file", json!({"path": "note.txt"}))).contains("seven"));
    let told = failed(&client.call("read_file", json!({"pat": "note.txt"})));
    assert!(told.contains("path"), "{told}");
    let unknown = client.call("knit", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let left = client.leave();
    assert_eq!(left.code, Some(0), "{}", left.errors);
    let session = stage.session();
    let listed = stage.json(&["ls"]);
    assert_eq!(listed["status"], "idle", "{listed}");
    assert_eq!(listed["mission"], "Calls of the MCP client needle 1.");
    let shown = stage.run(&["show", &session]).worked_quietly();
    assert!(shown.contains("write_file") && shown.contains("exit 3"), "{shown}");
}

#[test]
fn a_model_can_continue_the_session() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", json!({"path": "note.txt", "text": "seven\n"})));
    client.leave();
    let model = crate::stage::scripted(&stage, &json!([{"text": ""}, {"text": "It says seven."}]));
    let asked = stage.run(&["ask", &stage.session(), "What does it say?", "--model", &model]);
    assert_eq!(asked.worked_quietly(), "It says seven.\n");
}

#[test]
fn calls_may_overlap() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let ids: Vec<u64> = (0..6)
        .map(|number| {
            let arguments = json!({"path": format!("{number}.txt"), "text": number.to_string()});
            client.post_call(None, "write_file", arguments)
        })
        .collect();
    for id in ids {
        worked(&client.answer(id));
    }
    for number in 0..6 {
        assert_eq!(stage.file(&format!("{number}.txt")).unwrap(), number.to_string());
    }
    // A script counts the turns before it.
    let replies: Vec<_> = (0..=6).map(|_| json!({"text": "Six."})).collect();
    let model = crate::stage::scripted(&stage, &json!(replies));
    client.leave();
    let asked = stage.run(&["ask", &stage.session(), "How many?", "--model", &model]);
    assert_eq!(asked.worked_quietly(), "Six.\n");
}

#[test]
fn a_cancelled_call_is_rolled_back_and_the_session_continues() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let id = client.post_call(None, "shell", json!({"command": "echo half > half.txt; sleep 600"}));
    wait_until("the file", || stage.file("half.txt").is_some());
    let cancelled = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    wait_until("the rollback", || stage.file("half.txt").is_none());
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1"})));
    let left = client.leave();
    assert_eq!(left.code, Some(0), "{}", left.errors);
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}

#[test]
fn output_is_reported_as_progress() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let command = "echo stitching; while [ ! -e go ]; do sleep 0.05; done";
    let parameters = json!({
        "name": "shell", "arguments": {"command": command}, "_meta": {"progressToken": "p1"},
    });
    let id = client.post("tools/call", parameters);
    let report = loop {
        let line = client.line();
        if line["method"] == "notifications/progress" {
            break line;
        }
    };
    assert_eq!(report["params"]["progressToken"], "p1");
    assert!(report["params"]["message"].as_str().unwrap().contains("stitching"), "{report}");
    std::fs::write(stage.path("files/go"), "").unwrap();
    worked(&client.answer(id));
}

#[test]
fn input_that_is_not_the_protocol_is_refused() {
    let stage = Stage::new();
    let mut client = Client::start(&stage, &[]);
    client.send_text("SELECT 1;");
    client.send_text("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\"}");
    let left = client.leave();
    assert!(left.code == Some(0) || left.code == Some(2), "{:?} {}", left.code, left.errors);
    assert!(!left.errors.contains("panicked"), "{}", left.errors);
    // A client that connects and leaves creates no session.
    let nothing = Client::start(&stage, &[]).leave();
    assert_eq!(nothing.code, Some(0), "{}", nothing.errors);
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly(), "");

    let mut client = Client::connected(&stage, &[]);
    client.send_text("not json");
    client.send_text("[1, 2");
    let odd = client.request(
        "tools/call",
        json!({"name": "write_file", "arguments": {"path": "../out.txt", "text": "x"}}),
    );
    failed(&odd);
    let odd = client.request(
        "tools/call",
        json!({"name": "write_file", "arguments": {"path": "a\u{1b}[2J", "text": "x"}}),
    );
    assert!(odd.get("result").is_some(), "{odd}");
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1"})));
    assert!(!stage.path("out.txt").exists());
}
