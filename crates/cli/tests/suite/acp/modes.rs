//! Modes: an editor changes them between turns, and never to `full`.

use agent_client_protocol::v1::schema::{SetSessionModeRequest, StopReason};
use serde_json::json;

use super::client::{silent, with_editor};
use crate::stage::{Stage, scripted};

#[test]
fn a_mode_is_changed_and_recorded_and_full_is_refused() {
    let stage = Stage::new();
    let call = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "a"}});
    let model = scripted(&stage, &json!([{"text": "Ready."}, {"calls": [call]}, {"text": "Planned."}]));
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let change = async |mode: &'static str| {
            let request = SetSessionModeRequest::new(session.clone(), mode);
            editor.connection.send_request(request).block_task().await
        };
        let refused = change("full").await.unwrap_err();
        assert!(refused.message.contains("terminal"), "{}", refused.message);
        assert!(change("reckless").await.is_err());
        assert_eq!(editor.say(&session, "Begin").await, StopReason::EndTurn);
        change("plan").await.unwrap();
        assert!(change("full").await.is_err());
        assert_eq!(editor.say(&session, "Write").await, StopReason::EndTurn);
        assert_eq!(stage.file("a.txt"), None, "the mode plan changes nothing");
    });
    let shown = stage.run(&["show"]).worked_quietly();
    assert!(shown.contains("plan"), "{shown}");
}
