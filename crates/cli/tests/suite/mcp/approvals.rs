//! Calls that need approval: decided at the client, or from another terminal.

use serde_json::{Value, json};

use super::client::{Client, failed, worked};
use super::http_client::HttpServer;
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

/// Waits for the question of the server, and answers it.
fn answer_question(client: &mut Client, result: &Value) -> Value {
    let question = loop {
        let line = client.line();
        if line["method"] == "elicitation/create" {
            break line;
        }
    };
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    question
}

#[test]
fn a_client_with_elicitation_is_asked_and_named_in_the_journal() {
    let stage = Stage::new();
    let mut client = Client::connected_with(&stage, &WRITE, &json!({"elicitation": {}}));
    let answers = [
        (json!({"action": "decline"}), Some("the MCP client needle 1 declined the call")),
        (json!({"action": "accept", "content": {"decision": "deny"}}), Some("needle 1 answered `deny`")),
        (json!({"action": "cancel"}), Some("ask again")),
        (json!({"action": "accept", "content": {"decision": "approve"}}), None),
    ];
    for (result, refusal) in answers {
        let id = client.post_call(None, "write_file", write());
        let question = answer_question(&mut client, &result);
        let asked = question["params"]["message"].as_str().unwrap();
        assert!(asked.contains("write_file") && asked.contains("a.txt"), "{asked}");
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["decision"]), "{question}");
        let answer = client.answer(id);
        match refusal {
            Some(words) => assert!(failed(&answer).contains(words), "{answer}"),
            None => drop(worked(&answer)),
        }
        assert_eq!(stage.file("a.txt").is_some(), refusal.is_none());
    }
    client.leave();
    let log = stage.run(&["log", &stage.session()]).worked();
    assert!(log.contains("approved by the MCP client needle 1"), "{log}");
    assert!(log.contains("denied by the MCP client needle 1") && !log.contains("person"), "{log}");
}

#[test]
fn a_client_that_accepts_by_itself_approves_nothing() {
    let stage = Stage::new();
    let mut client = Client::connected_with(&stage, &WRITE, &json!({"elicitation": {}}));
    for content in [json!({}), json!({"decision": ""}), json!({"decision": true}), Value::Null] {
        let id = client.post_call(None, "write_file", write());
        answer_question(&mut client, &json!({"action": "accept", "content": content}));
        wait_for_question(&stage);
        assert_eq!(stage.file("a.txt"), None, "{content}");
        stage.run(&["deny", &stage.session(), "--all", "--reason", "a person decides"]).worked();
        assert!(failed(&client.answer(id)).contains("a person decides"));
    }
    assert_eq!(stage.file("a.txt"), None);
}

#[test]
fn the_inbox_alone_decides_if_that_is_asked_for() {
    let stage = Stage::new();
    let options = ["--approve", "write_file", "--approve-by", "inbox"];
    let mut client = Client::connected_with(&stage, &options, &json!({"elicitation": {}}));
    let id = client.post_call(None, "write_file", write());
    wait_for_question(&stage);
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    worked(&client.answer(id));
    let asked = client.others.iter().any(|line| line["method"] == "elicitation/create");
    assert!(!asked, "{:?}", client.others);
}

#[test]
fn a_call_that_nobody_decides_about_is_denied_in_the_end() {
    let stage = Stage::new();
    let options = ["--approve", "write_file", "--approval-timeout", "1s"];
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let mut client = Client::connected_with(&stage, &options, &capabilities);
        let told = failed(&client.call("write_file", write()));
        assert!(told.contains("nobody decided") && told.contains("ask again"), "{told}");
        assert_eq!(stage.file("a.txt"), None);
        assert_eq!(client.leave().code, Some(0));
    }
    let log = stage.run(&["log", &stage.session()]).worked();
    assert!(log.contains("denied by the time limit for approvals"), "{log}");
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

/// The parameters of a call without a handshake, of a client that has elicitation.
fn newest_call(more: &Value) -> Value {
    let mut call = json!({"name": "write_file", "arguments": write(), "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }});
    for (key, value) in more.as_object().unwrap() {
        call[key] = value.clone();
    }
    call
}

/// Asserts that a result is a question, and returns its state.
fn question_of(answer: &Value) -> String {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let question = &result["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create", "{answer}");
    assert!(question["params"]["message"].as_str().unwrap().contains("a.txt"), "{answer}");
    result["requestState"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_without_a_handshake_answers_with_its_next_request() {
    let stage = Stage::new();
    let mut client = Client::start(&stage, &WRITE);
    let answers = |state: &str, action: &str| {
        let approval = json!({"action": action, "content": {"decision": "approve"}});
        newest_call(&json!({"requestState": state, "inputResponses": {"approval": approval}}))
    };
    let state = question_of(&client.request("tools/call", newest_call(&json!({}))));
    assert_eq!(stage.file("a.txt"), None);
    failed(&client.request("tools/call", answers(&state, "decline")));
    assert_eq!(stage.file("a.txt"), None);
    // The question is answered, and its state is of no use any more.
    let again = client.request("tools/call", answers(&state, "accept"));
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let state = question_of(&client.request("tools/call", newest_call(&json!({}))));
    let mut other = answers(&state, "accept");
    other["arguments"]["text"] = json!("2\n");
    let other = client.request("tools/call", other);
    assert_eq!(other["error"]["code"], -32602, "{other}");
    worked(&client.request("tools/call", answers(&state, "accept")));
    assert_eq!(stage.file("a.txt").unwrap(), "1\n");
    let state = question_of(&client.request("tools/call", newest_call(&json!({}))));
    assert!(failed(&client.request("tools/call", answers(&state, "cancel"))).contains("ask again"));
    // An answer that decides nothing leaves the call to another terminal.
    let state = question_of(&client.request("tools/call", newest_call(&json!({}))));
    let empty = json!({"requestState": state, "inputResponses": {"approval": {"action": "accept"}}});
    let id = client.post("tools/call", newest_call(&empty));
    wait_for_question(&stage);
    stage.run(&["deny", &stage.session(), "--all"]).worked();
    failed(&client.answer(id));
    assert_eq!(client.leave().code, Some(0));
}

/// An agent with a tool that needs approval and starts this script.
fn mending_agent(script: &str) -> String {
    let command = json!(["sh", script]);
    let tool = "[[tool]]\nname = \"mend\"\ndescription = \"Mends.\"\napproval = \"ask\"";
    format!("name = \"tailor\"\ntools = []\n\n{tool}\ncommand = {command}\n")
}

const CHANGED: &str = "mend needs approval again, because this has changed since: the file";

#[test]
fn a_client_is_asked_again_with_the_reason_if_a_file_was_replaced() {
    let stage = Stage::new();
    let script = stage.write("mend.sh", "echo one > mended.txt");
    let mut client = Client::start_with(&stage, &mending_agent(&script), &[]);
    assert!(client.shake_hands(&json!({"elicitation": {}})));
    let approve = json!({"action": "accept", "content": {"decision": "approve"}});
    let id = client.post_call(None, "mend", json!({}));
    wait_for_question(&stage);
    stage.write("mend.sh", "echo two > mended.txt");
    let first = answer_question(&mut client, &approve);
    assert!(!first["params"]["message"].as_str().unwrap().contains("again"), "{first}");
    let second = answer_question(&mut client, &approve);
    assert!(second["params"]["message"].as_str().unwrap().starts_with(CHANGED), "{second}");
    worked(&client.answer(id));
    assert_eq!(stage.file("mended.txt").unwrap(), "two\n");
}

#[test]
fn a_client_without_a_handshake_is_asked_again_with_the_next_result() {
    let stage = Stage::new();
    let script = stage.write("mend.sh", "echo one > mended.txt");
    let mut client = Client::start_with(&stage, &mending_agent(&script), &[]);
    let call = |more: &Value| {
        let mut call = newest_call(more);
        (call["name"], call["arguments"]) = (json!("mend"), json!({}));
        call
    };
    let approve = |state: &Value| {
        let approval = json!({"action": "accept", "content": {"decision": "approve"}});
        call(&json!({"requestState": state, "inputResponses": {"approval": approval}}))
    };
    let first = client.request("tools/call", call(&json!({})));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    stage.write("mend.sh", "echo two > mended.txt");
    let second = client.request("tools/call", approve(&first["result"]["requestState"]));
    let question = &second["result"]["inputRequests"]["approval"]["params"]["message"];
    assert!(question.as_str().unwrap_or_default().starts_with(CHANGED), "{second}");
    // A second answer to the first question decides nothing.
    let late = client.request("tools/call", approve(&first["result"]["requestState"]));
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(stage.file("mended.txt"), None);
    worked(&client.request("tools/call", approve(&second["result"]["requestState"])));
    assert_eq!(stage.file("mended.txt").unwrap(), "two\n");
}

#[test]
fn a_question_over_http_is_answered_over_another_connection() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &WRITE);
    let state = question_of(&server.newest_client().request("tools/call", newest_call(&json!({}))));
    let approval = json!({"action": "accept", "content": {"decision": "approve"}});
    let answers = json!({"requestState": state, "inputResponses": {"approval": approval}});
    worked(&server.newest_client().request("tools/call", newest_call(&answers)));
    assert_eq!(stage.file("a.txt").unwrap(), "1\n");
}
