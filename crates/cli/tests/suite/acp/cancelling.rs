//! A turn that is cancelled ends as cancelled, and what it was doing is rolled back.

use agent_client_protocol::v1::schema::{StopReason, ToolCallStatus};
use serde_json::json;

use super::client::{silent, with_editor};
use crate::stage::{Stage, scripted};

#[test]
fn a_call_that_is_cancelled_is_rolled_back() {
    let stage = Stage::new();
    let command = "echo half > half.txt; sleep 600; echo whole > half.txt";
    let call = json!({"name": "shell", "arguments": {"command": command}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Next."}]));
    let flags = ["--model", &model, "--sandbox", "off", "--shell-effect", "workspace"];
    with_editor(&stage, &flags, silent, async |editor| {
        let session = editor.begin(&stage).await;
        let turn = editor.prompt(&session, "Sew");
        let cancelling = async {
            editor.wait_until("the call", || stage.file("half.txt").as_deref() == Some("half\n")).await;
            editor.cancel(&session);
        };
        let (ended, ()) = tokio::join!(turn, cancelling);
        assert_eq!(ended.unwrap().stop_reason, StopReason::Cancelled);
        assert_eq!(stage.file("half.txt"), None, "the call is rolled back");
        assert_eq!(editor.seen.calls(&session)[0].1, ToolCallStatus::Failed);
        // The conversation continues with another message.
        assert_eq!(editor.say(&session, "And now?").await, StopReason::EndTurn);
        assert!(editor.seen.text(&session).ends_with("Next."));
    });
}

#[test]
fn a_turn_is_cancelled_while_it_waits_for_a_decision() {
    let stage = Stage::new();
    let call = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "a"}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Next."}]));
    with_editor(&stage, &["--model", &model, "--mode", "ask"], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let cancelling = async {
            editor.wait_for_questions(1).await;
            editor.cancel(&session);
        };
        let (ended, ()) = tokio::join!(editor.prompt(&session, "Sew"), cancelling);
        assert_eq!(ended.unwrap().stop_reason, StopReason::Cancelled);
        // A second message while a turn runs is refused, and one after it is answered.
        assert_eq!(editor.say(&session, "And now?").await, StopReason::EndTurn);
    });
    assert_eq!(stage.file("a.txt"), None);
}

#[test]
fn a_second_message_is_refused_while_a_turn_runs() {
    let stage = Stage::new();
    let call = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "a"}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Next."}]));
    with_editor(&stage, &["--model", &model, "--mode", "ask"], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let meanwhile = async {
            editor.wait_for_questions(1).await;
            let refused = editor.prompt(&session, "Now").await.unwrap_err();
            assert!(refused.message.contains("running"), "{}", refused.message);
            editor.cancel(&session);
        };
        let (ended, ()) = tokio::join!(editor.prompt(&session, "Sew"), meanwhile);
        assert_eq!(ended.unwrap().stop_reason, StopReason::Cancelled);
    });
}
