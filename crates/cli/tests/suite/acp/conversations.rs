//! Conversations: what an editor sees of them, two in one process, and one that is loaded again.

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ListSessionsRequest, NewSessionRequest,
    PlanEntryStatus, PromptRequest, ResourceLink, SessionUpdate, StopReason, TextResourceContents,
    ToolCallStatus,
};
use serde_json::json;

use super::client::{silent, with_editor};
use crate::stage::{Stage, scripted};

fn writing(path: &str, text: &str) -> serde_json::Value {
    json!({"name": "write_file", "arguments": {"path": path, "text": text}})
}

#[test]
fn a_turn_is_shown_with_its_calls_changes_and_plan() {
    let stage = Stage::new();
    let plan = json!({"name": "setup_plan", "arguments": {"objective": "Mend", "steps": ["Find", "Sew"]}});
    let model = scripted(
        &stage,
        &json!([
            {"text": "First a plan.", "calls": [plan]},
            {"calls": [writing("hem.txt", "sewn\n")]},
            {"text": "It is mended."},
        ]),
    );
    let agent = stage.write("tailor.toml", "tools = [\"write_file\", \"setup_plan\"]");
    let status = with_editor(&stage, &["--model", &model, "--agent", &agent], silent, async |editor| {
        let session = editor.begin(&stage).await;
        assert_eq!(editor.say(&session, "Mend the hem").await, StopReason::EndTurn);
        let text = editor.seen.text(&session);
        assert!(text.contains("First a plan.") && text.ends_with("It is mended."), "{text}");
        assert_eq!(text.matches("It is mended.").count(), 1, "{text}");
        let calls = editor.seen.calls(&session);
        assert!(calls.iter().all(|(_, status)| *status == ToolCallStatus::Completed), "{calls:?}");
        assert_eq!(calls[1].0, "write_file hem.txt");
        let expected = ("hem.txt".to_owned(), None, "sewn\n".to_owned());
        assert_eq!(editor.seen.diffs(&session), [expected]);
        let plan = editor.seen.updates(&session).into_iter().find_map(|update| match update {
            SessionUpdate::Plan(plan) => Some(plan.entries),
            _ => None,
        });
        let plan = plan.unwrap();
        assert_eq!((plan.len(), plan[0].status.clone()), (2, PlanEntryStatus::Pending));
        assert!(editor.seen.messages(&session).is_empty(), "the editor has the message already");
    });
    assert!(status.success());
    assert_eq!(stage.file("hem.txt").as_deref(), Some("sewn\n"));
    // It is an ordinary session.
    assert_eq!(stage.json(&["ls"])["mission"], "Mend the hem");
}

#[test]
fn what_the_agent_can_do_is_said_at_the_start() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let capabilities = &editor.introduction.agent_capabilities;
        assert!(capabilities.load_session && capabilities.mcp_capabilities.http);
        assert!(!capabilities.mcp_capabilities.sse && !capabilities.prompt_capabilities.audio);
        let meta = serde_json::to_value(&editor.introduction.meta).unwrap();
        assert_eq!(meta["claudeCode"]["rewindSession"]["modes"][2], "both");
        let request = NewSessionRequest::new(stage.path("files"));
        let modes = editor.connection.send_request(request).block_task().await.unwrap().modes.unwrap();
        let names: Vec<String> = modes.available_modes.iter().map(|mode| mode.id.to_string()).collect();
        assert_eq!(names, ["plan", "ask", "auto"]);
    });
}

#[test]
fn two_conversations_of_one_process_do_not_mix() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("other")).unwrap();
    let model = scripted(&stage, &json!([{"calls": [writing("a.txt", "a\n")]}, {"text": "Done."}]));
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let first = editor.begin(&stage).await;
        let request = NewSessionRequest::new(stage.path("other"));
        let second = editor.connection.send_request(request).block_task().await.unwrap().session_id;
        assert_ne!(first, second);
        let turns = tokio::join!(editor.say(&first, "One"), editor.say(&second, "Two"));
        assert_eq!(turns, (StopReason::EndTurn, StopReason::EndTurn));
        for session in [&first, &second] {
            assert!(editor.seen.text(session).ends_with("Done."));
            assert_eq!(editor.seen.calls(session).len(), 1);
        }
        let request = ListSessionsRequest::new().cwd(stage.path("other"));
        let listed = editor.connection.send_request(request).block_task().await.unwrap().sessions;
        let listed: Vec<_> =
            listed.iter().map(|session| (&session.session_id, session.title.as_deref())).collect();
        assert_eq!(listed, [(&second, Some("Two"))]);
    });
    assert_eq!(stage.file("a.txt").as_deref(), Some("a\n"));
    assert_eq!(std::fs::read_to_string(stage.path("other/a.txt")).unwrap(), "a\n");
}

#[test]
fn a_conversation_is_replayed_when_it_is_loaded() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/hem.txt"), "torn\n").unwrap();
    let edit = json!({"name": "edit_file", "arguments": {"path": "hem.txt", "old": "torn", "new": "sewn"}});
    let fails = json!({"name": "read_file", "arguments": {"path": "gone.txt"}});
    let replies = json!([
        {"text": "I look.", "calls": [fails]},
        {"calls": [edit]},
        {"text": "Mended."},
        {"text": "You are welcome."},
    ]);
    let model = scripted(&stage, &replies);
    let mut id = None;
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let session = editor.begin(&stage).await;
        editor.say(&session, "Mend the hem").await;
        id = Some(session);
    });
    let session = id.unwrap();
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        editor.load(&stage, &session).await.unwrap();
        assert_eq!(editor.seen.messages(&session), ["Mend the hem"]);
        let text = editor.seen.text(&session);
        assert!(text.contains("I look.") && text.contains("Mended."), "{text}");
        let statuses: Vec<_> = editor.seen.calls(&session).into_iter().map(|call| call.1).collect();
        assert_eq!(statuses, [ToolCallStatus::Failed, ToolCallStatus::Completed]);
        let expected = ("hem.txt".to_owned(), Some("torn\n".to_owned()), "sewn\n".to_owned());
        assert_eq!(editor.seen.diffs(&session), [expected]);
        // It continues.
        assert_eq!(editor.say(&session, "Thanks").await, StopReason::EndTurn);
        assert!(editor.seen.text(&session).ends_with("You are welcome."));
    });
}

#[test]
fn links_and_files_reach_the_model() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Read."}]));
    with_editor(&stage, &["--model", &model], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let file = TextResourceContents::new("unsaved\n", "file:///shop/draft.txt");
        let resource = EmbeddedResourceResource::TextResourceContents(file);
        let content = vec![
            ContentBlock::from("Compare "),
            ContentBlock::ResourceLink(ResourceLink::new("hem.txt", "file:///shop/hem.txt")),
            ContentBlock::Resource(EmbeddedResource::new(resource)),
        ];
        let request = PromptRequest::new(session.clone(), content);
        editor.connection.send_request(request).block_task().await.unwrap();
    });
    let text = stage.run(&["export", &stage.session(), "--markdown"]).worked_quietly();
    assert!(text.contains("[@hem.txt](file:///shop/hem.txt)") && text.contains("unsaved"), "{text}");
}
