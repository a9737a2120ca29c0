//! A process that is killed inside of a call, and the conversation that another one loads.

use agent_client_protocol::v1::schema::{SessionId, StopReason, ToolCallStatus};
use serde_json::json;

use super::client::{silent, with_editor};
use crate::stage::{Stage, scripted};

/// Starts a command that ends only if a file beside the workspace exists, and kills the process inside of it.
fn kill_inside_call(stage: &Stage, flags: &[&str]) -> SessionId {
    let mut id = None;
    with_editor(stage, flags, silent, async |editor| {
        let session = editor.begin(stage).await;
        let killing = async {
            editor.wait_until("the call", || stage.file("half.txt").as_deref() == Some("half\n")).await;
            editor.kill();
        };
        let (ended, ()) = tokio::join!(editor.prompt(&session, "Sew the hem"), killing);
        assert!(ended.is_err());
        id = Some(session);
    });
    id.unwrap()
}

fn model(stage: &Stage) -> String {
    let command = "echo half > half.txt; while [ ! -e ../again ]; do sleep 0.05; done; echo whole > half.txt";
    let call = json!({"name": "shell", "arguments": {"command": command}});
    scripted(stage, &json!([{"calls": [call]}, {"text": "Sewn."}]))
}

#[test]
fn a_killed_turn_is_loaded_and_continues_at_its_call() {
    let stage = Stage::new();
    let model = model(&stage);
    let flags = ["--model", &model, "--sandbox", "off", "--shell-effect", "workspace"];
    let session = kill_inside_call(&stage, &flags);
    stage.write("again", "");
    with_editor(&stage, &flags, silent, async |editor| {
        editor.load(&stage, &session).await.unwrap();
        assert_eq!(editor.seen.messages(&session), ["Sew the hem"]);
        assert!(editor.seen.text(&session).contains("/resume"));
        assert_eq!(editor.say(&session, "/resume").await, StopReason::EndTurn);
        assert!(editor.seen.text(&session).ends_with("Sewn."), "{}", editor.seen.text(&session));
        assert_eq!(editor.seen.calls(&session)[0].1, ToolCallStatus::Completed);
    });
    assert_eq!(stage.file("half.txt").as_deref(), Some("whole\n"));
}

#[test]
fn a_message_ends_a_killed_turn() {
    let stage = Stage::new();
    let model = model(&stage);
    let flags = ["--model", &model, "--sandbox", "off", "--shell-effect", "workspace"];
    let session = kill_inside_call(&stage, &flags);
    with_editor(&stage, &flags, silent, async |editor| {
        editor.load(&stage, &session).await.unwrap();
        assert_eq!(editor.say(&session, "Leave it").await, StopReason::EndTurn);
        assert!(editor.seen.text(&session).ends_with("Sewn."), "{}", editor.seen.text(&session));
        assert_ne!(stage.file("half.txt").as_deref(), Some("whole\n"), "the call does not run again");
    });
}
