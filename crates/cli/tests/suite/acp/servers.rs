//! MCP servers of an editor are started only if a person says so.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    EnvVariable, McpServer, McpServerStdio, NewSessionRequest, RequestPermissionRequest, StopReason,
};
use serde_json::json;

use super::client::{Answers, with_editor};
use crate::stage::{Stage, scripted};

fn refuse(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("refuse")
}

fn trust(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("trust")
}

/// A server that is the command itself, behind a script that leaves a mark when it is started.
fn server(stage: &Stage) -> McpServer {
    let agent = stage.write("clerk.toml", "name = \"clerk\"\ntools = [\"read_file\"]");
    let command = Path::new(env!("CARGO_BIN_EXE_backstitch")).display();
    let (mark, store) = (stage.path("mark"), stage.path("server-store/store.db"));
    let script = format!(
        "#!/bin/sh\necho \"$TOKEN\" >> {}\nexec {command} --store {} mcp serve --agent {agent} --workspace {}\n",
        mark.display(),
        store.display(),
        stage.path("shelf").display(),
    );
    let program = stage.write("server.sh", &script);
    assert!(std::process::Command::new("chmod").args(["+x", &program]).status().unwrap().success());
    let variables = vec![EnvVariable::new("TOKEN", "thimble")];
    McpServer::Stdio(McpServerStdio::new("clerk", program).env(variables))
}

fn converse(stage: &Stage, answers: Answers, questions: usize) {
    let model = scripted(stage, &json!([{"text": "Done."}]));
    with_editor(stage, &["--model", &model, "--sandbox", "off"], answers, async |editor| {
        let request = NewSessionRequest::new(stage.path("files")).mcp_servers(vec![server(stage)]);
        let session = editor.connection.send_request(request).block_task().await.unwrap().session_id;
        assert!(editor.seen.questions.lock().unwrap().is_empty(), "nothing is asked before a message");
        assert_eq!(editor.say(&session, "Begin").await, StopReason::EndTurn);
        let asked = editor.seen.questions.lock().unwrap();
        assert_eq!(asked.len(), questions, "{:?}", editor.seen.text(&session));
        if let Some(asked) = asked.first() {
            let shown = serde_json::to_string(&asked.tool_call).unwrap();
            assert!(shown.contains("server.sh") && !shown.contains("thimble"), "{shown}");
        }
    });
}

#[test]
fn a_server_that_is_refused_is_not_started() {
    let stage = Stage::new();
    converse(&stage, refuse, 1);
    assert!(!stage.path("mark").exists());
}

#[test]
fn a_server_that_is_trusted_is_asked_about_once_and_its_values_are_not_recorded() {
    let stage = Stage::new();
    converse(&stage, trust, 1);
    assert_eq!(std::fs::read_to_string(stage.path("mark")).unwrap(), "thimble\n");
    // The next session in the project uses it without a question.
    converse(&stage, refuse, 0);
    let shown = stage.run(&["show"]).worked_quietly();
    assert!(shown.contains("clerk"), "{shown}");
    let stored = stage.stored_bytes();
    assert!(!stored.windows(7).any(|window| window == b"thimble"));
}
