//! Permissions: a person at the editor decides about calls. Without a clear answer, nothing runs.

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionRequest, StopReason, ToolCallStatus,
};
use serde_json::json;

use super::client::{diff_of, silent, with_editor};
use crate::stage::{Stage, scripted};

fn model(stage: &Stage) -> String {
    let write = |path: &str| json!({"name": "write_file", "arguments": {"path": path, "text": "new\n"}});
    scripted(stage, &json!([{"calls": [write("a.txt")]}, {"calls": [write("b.txt")]}, {"text": "Done."}]))
}

/// Starts a stage with a file that the first call would change.
fn stage() -> Stage {
    let stage = Stage::new();
    std::fs::write(stage.path("files/a.txt"), "old\n").unwrap();
    stage
}

fn allow(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("allow")
}

fn reject(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("reject")
}

fn always(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("allow-always")
}

fn never(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("reject-always")
}

fn unknown(_: &RequestPermissionRequest) -> Option<&'static str> {
    Some("yes")
}

#[test]
fn a_question_shows_the_change_and_an_answer_decides() {
    let stage = stage();
    let model = model(&stage);
    with_editor(&stage, &["--model", &model, "--mode", "ask"], allow, async |editor| {
        let session = editor.begin(&stage).await;
        assert_eq!(editor.say(&session, "Mend").await, StopReason::EndTurn);
        let questions = editor.seen.questions.lock().unwrap();
        assert_eq!(questions.len(), 2);
        let diff = diff_of(questions[0].tool_call.fields.content.clone().unwrap().remove(0)).unwrap();
        assert_eq!(diff, ("a.txt".to_owned(), Some("old\n".to_owned()), "new\n".to_owned()));
        let kinds: Vec<_> = questions[0].options.iter().map(|option| option.kind).collect();
        assert_eq!(
            kinds,
            [
                PermissionOptionKind::AllowOnce,
                PermissionOptionKind::AllowAlways,
                PermissionOptionKind::RejectOnce,
                PermissionOptionKind::RejectAlways,
            ]
        );
    });
    assert_eq!(
        (stage.file("a.txt").as_deref(), stage.file("b.txt").as_deref()),
        (Some("new\n"), Some("new\n"))
    );
    assert!(stage.run(&["log"]).worked_quietly().contains("approved by"));
}

#[test]
fn rejected_calls_do_not_run() {
    let stage = stage();
    let model = model(&stage);
    with_editor(&stage, &["--model", &model, "--mode", "ask"], reject, async |editor| {
        let session = editor.begin(&stage).await;
        assert_eq!(editor.say(&session, "Mend").await, StopReason::EndTurn);
        let calls = editor.seen.calls(&session);
        assert!(calls.iter().all(|call| call.1 == ToolCallStatus::Failed), "{calls:?}");
    });
    assert_eq!((stage.file("a.txt").as_deref(), stage.file("b.txt")), (Some("old\n"), None));
}

#[test]
fn a_lasting_answer_decides_about_later_calls() {
    for (answers, expected) in [(always as super::client::Answers, Some("new\n")), (never, None)] {
        let stage = stage();
        let model = model(&stage);
        with_editor(&stage, &["--model", &model, "--mode", "ask"], answers, async |editor| {
            let session = editor.begin(&stage).await;
            editor.say(&session, "Mend").await;
            assert_eq!(editor.seen.questions.lock().unwrap().len(), 1, "the second call is not asked about");
        });
        assert_eq!(stage.file("b.txt").as_deref(), expected);
    }
}

#[test]
fn an_answer_that_was_not_offered_allows_nothing() {
    let stage = stage();
    let model = model(&stage);
    with_editor(&stage, &["--model", &model, "--mode", "ask"], unknown, async |editor| {
        let session = editor.begin(&stage).await;
        assert_eq!(editor.say(&session, "Mend").await, StopReason::EndTurn);
        assert!(editor.seen.text(&session).contains("approve"), "{}", editor.seen.text(&session));
    });
    assert_eq!(stage.file("a.txt").as_deref(), Some("old\n"));
    assert_eq!(stage.json(&["ls"])["status"], "paused");
}

#[test]
fn an_editor_that_vanishes_at_a_question_leaves_the_call_waiting() {
    let stage = stage();
    let model = model(&stage);
    let mut id = None;
    let status = with_editor(&stage, &["--model", &model, "--mode", "ask"], silent, async |editor| {
        let session = editor.begin(&stage).await;
        let asking = editor.prompt(&session, "Mend");
        tokio::select! {
            ended = asking => panic!("the turn ended without an answer: {ended:?}"),
            () = editor.wait_for_questions(1) => {}
        }
        id = Some(session);
    });
    assert!(status.success(), "the process ends with its editor");
    assert_eq!(stage.file("a.txt").as_deref(), Some("old\n"));
    assert_eq!(stage.json(&["ls"])["status"], "paused");
    // The next editor is asked again.
    let session = id.unwrap();
    with_editor(&stage, &["--model", &model], allow, async |editor| {
        editor.load(&stage, &session).await.unwrap();
        assert!(editor.seen.text(&session).contains("/resume"));
        assert_eq!(editor.say(&session, "/resume").await, StopReason::EndTurn);
        assert_eq!(editor.seen.questions.lock().unwrap().len(), 2);
    });
    assert_eq!(
        (stage.file("a.txt").as_deref(), stage.file("b.txt").as_deref()),
        (Some("new\n"), Some("new\n"))
    );
}

#[test]
fn the_inbox_alone_decides_if_that_is_asked_for() {
    let stage = stage();
    let model = model(&stage);
    let flags = ["--model", &model, "--mode", "ask", "--approve-by", "inbox"];
    with_editor(&stage, &flags, allow, async |editor| {
        let session = editor.begin(&stage).await;
        editor.say(&session, "Mend").await;
        assert!(editor.seen.questions.lock().unwrap().is_empty());
        stage.run(&["approve", &session.to_string()]).worked_quietly();
        editor.say(&session, "/resume").await;
        assert_eq!(stage.file("a.txt").as_deref(), Some("new\n"));
        assert_eq!(stage.file("b.txt"), None, "the second call waits");
    });
}
