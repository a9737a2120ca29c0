//! Rewinding: the extension of the protocol, and the commands of a conversation.

use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::schema::StopReason;
use serde_json::{Value, json};

use super::client::{Editor, silent, with_editor};
use crate::stage::{Stage, scripted};

async fn call(editor: &Editor, method: &str, parameters: Value) -> Result<Value, String> {
    let request = UntypedMessage::new(method, parameters).unwrap();
    editor.connection.send_request(request).block_task().await.map_err(|error| error.message)
}

#[test]
fn a_conversation_returns_to_before_a_message_with_its_files() {
    let stage = Stage::new();
    let write = |text: &str| json!({"name": "write_file", "arguments": {"path": "hem.txt", "text": text}});
    let replies = json!([
        {"calls": [write("one\n")]}, {"text": "One."},
        {"calls": [write("two\n")]}, {"text": "Two."},
        {"text": "Again."},
    ]);
    let model = scripted(&stage, &replies);
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let id = session.to_string();
        assert_eq!(
            call(&editor, "_session/rewind_points", json!({"sessionId": id})).await.unwrap()["points"],
            json!([])
        );
        editor.say(&session, "First").await;
        editor.say(&session, "Second").await;
        assert_eq!(stage.file("hem.txt").as_deref(), Some("two\n"));
        let listed = call(&editor, "_session/rewind_points", json!({"sessionId": id})).await.unwrap();
        let points = listed["points"].as_array().unwrap();
        assert_eq!((points.len(), &points[1]["text"], &points[1]["index"]), (2, &json!("Second"), &json!(2)));
        assert!(points[0]["resumeAtMessageId"].is_null() && points[1]["resumeAtMessageId"].is_string());
        let message = points[1]["messageId"].as_str().unwrap();

        let rewind = |mode: &str, dry: bool| json!({"sessionId": id, "messageId": message, "mode": mode, "dryRun": dry});
        let planned = call(&editor, "_session/rewind", rewind("both", true)).await.unwrap();
        assert_eq!(planned["conversation"]["rewound"], false);
        assert!(
            planned["files"]["filesChanged"][0].as_str().unwrap().ends_with("files/hem.txt"),
            "{planned}"
        );
        assert_eq!(stage.file("hem.txt").as_deref(), Some("two\n"));

        let done = call(&editor, "_session/rewind", rewind("both", false)).await.unwrap();
        assert_eq!(done["conversation"]["rewound"], true);
        assert_eq!(stage.file("hem.txt").as_deref(), Some("one\n"));
        let listed = call(&editor, "_session/rewind_points", json!({"sessionId": id})).await.unwrap();
        assert_eq!(listed["points"].as_array().unwrap().len(), 1);
        // Commands of the conversation do the same.
        assert_eq!(editor.say(&session, "/undo").await, StopReason::EndTurn);
        assert_eq!(stage.file("hem.txt").as_deref(), Some("two\n"));
        assert_eq!(editor.say(&session, "/rewind 2").await, StopReason::EndTurn);
        assert_eq!(stage.file("hem.txt"), None);
        assert!(editor.prompt(&session, "/rewind 9").await.is_err());
        let unknown = json!({"sessionId": id, "messageId": "nothing"});
        assert!(call(&editor, "_session/rewind", unknown).await.unwrap_err().contains("rewind_points"));
    });
}
