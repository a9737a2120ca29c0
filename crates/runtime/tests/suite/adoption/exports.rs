//! Exports contain their content, however often their session was reopened.

use std::sync::{Arc, Mutex};

use backstitch_core::journal::{Effect, InnerMessage};
use backstitch_core::message::{MediaPart, Modality, PolicyName};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::session::{Snapshot, SnapshotRestoreError};
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_core::view::ConversationState;
use backstitch_runtime::{
    Agent, DriveOutcome, Driver, Evaluator, FunctionPolicy, Mission, ResumeOptions, Runtime, RuntimeError,
    SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use super::world::{Offer, Process, World, offering};
use crate::tailor::{reply, scripted};

/// A tool whose result is too large for a record.
fn weave() -> Tool {
    let builder = Tool::builder("weave", "Weaves.").unwrap().effect(Effect::Pure);
    builder.workspace(WorkspaceUse::None).handler(|_: ToolContext, (): ()| async {
        Ok(ToolResult::ok(json!({"cloth": "warp and weft ".repeat(15_000)}).to_string()))
    })
}

/// The messages that a model sees, with their content, and the bytes of media.
type Request = (Vec<Value>, Vec<(String, Vec<u8>)>);

fn request(question: &PolicyRequest) -> Request {
    let shown = question.shown.iter().map(|message| {
        let message: &InnerMessage = message;
        json!({
            "message": message.message, "sequence": message.sequence, "turn": message.turn, "id": message.message_id,
        })
    });
    let mut media: Vec<_> =
        question.media.iter().map(|(id, bytes)| (id.to_string(), bytes.to_vec())).collect();
    media.sort();
    (shown.collect(), media)
}

/// An agent that records its requests and answers "done".
fn asking(asked: Arc<Mutex<Vec<Request>>>) -> Agent {
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question: PolicyRequest| {
        asked.lock().unwrap().push(request(&question));
        async { Ok(PolicyAnswer::text("done")) }
    });
    let mut agent = scripted(vec![]).tools(Tools::new([weave()]).unwrap());
    agent.policy = Arc::new(policy);
    agent
}

#[tokio::test]
async fn an_export_of_a_session_however_often_reopened_continues_with_the_same_requests() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store);
    let weaving = || {
        let replies = vec![reply("weaving", &[("weave", json!({}))])];
        scripted(replies).tools(Tools::new([weave()]).unwrap())
    };
    let driver = runtime.create(weaving(), SessionOptions::default()).await.unwrap();
    let picture = MediaPart::held(Modality::Image, vec![7u8; 100_000]);
    let mission = Mission::from("Like this.").with_media((picture.0.with_mime("image/png"), picture.1));
    // The script ends after the first turn.
    driver.start(mission).await.unwrap_err();
    let id = driver.session().id();
    driver.session().release().await.unwrap();

    let mut texts = Vec::new();
    for _ in 0..3 {
        let opened = runtime.open(id, weaving(), SessionOptions::default()).await.unwrap();
        let plain = opened.session().state().await.session.snapshot();
        assert_eq!(plain.refers_to().unwrap().len(), 2, "the result and the picture are elsewhere");
        let whole = opened.session().export_snapshot().await.unwrap();
        assert_eq!(whole.refers_to().unwrap(), []);
        let conversation = opened.session().export_conversation(None).await.unwrap().unwrap();
        assert_eq!(conversation.refers_to, []);
        texts.push((whole.to_json().unwrap(), serde_json::to_string(&conversation).unwrap(), plain));
        opened.session().release().await.unwrap();
    }

    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let resume = async |driver: Driver| {
        let ended = driver.resume(ResumeOptions::default()).await.unwrap();
        assert!(matches!(ended, DriveOutcome::Completed(_)), "{ended:?}");
        asked.lock().unwrap().pop().unwrap()
    };
    for (snapshot, conversation, plain) in texts {
        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let agent = || asking(asked.clone());
        let options = SessionOptions::default;
        let error = elsewhere.adopt_snapshot(agent(), &plain, options()).await.map(drop).unwrap_err();
        let missing = matches!(
            &error,
            RuntimeError::SnapshotRestore(SnapshotRestoreError::MissingContent { objects }) if objects.len() == 2
        );
        assert!(missing, "{error}");
        // In the store that has the content, a snapshot that refers to it is enough.
        let by_reference = runtime.adopt_snapshot(agent(), &plain, options()).await.unwrap();
        let expected = resume(by_reference).await;
        assert_eq!(expected.1.len(), 1);
        assert!(expected.0.iter().any(|message| message.to_string().len() > 200_000));

        let snapshot = Snapshot::from_json(&snapshot).unwrap();
        let adopted = elsewhere.adopt_snapshot(agent(), &snapshot, options()).await.unwrap();
        // Adopted, exported and adopted again.
        let again = adopted.session().export_snapshot().await.unwrap();
        assert_eq!(resume(adopted).await, expected);
        let third = Runtime::new(Arc::new(MemoryStore::new()));
        assert_eq!(resume(third.adopt_snapshot(agent(), &again, options()).await.unwrap()).await, expected);

        let conversation: ConversationState = serde_json::from_str(&conversation).unwrap();
        let adopted = elsewhere.adopt_conversation(agent(), &conversation, options()).await.unwrap();
        assert_eq!(resume(adopted).await, expected);
    }
    let opened = runtime.open(id, asking(asked.clone()), SessionOptions::default()).await.unwrap();
    let stayed = resume(opened).await;
    assert_eq!(stayed.1.len(), 1, "the session itself makes the same request");
}

#[tokio::test]
async fn an_evaluator_resumes_from_a_conversation_and_refuses_that_of_another_prompt() {
    let world = World::stopping(1);
    let tool = world.pay(Effect::Workspace);
    let stopped = Process::stopped(&world, &tool, Offer::Section).await;
    let conversation = stopped.conversation().await;
    let (agent, prompt) = offering(&tool, Offer::Section);
    let (evaluator, elsewhere) = (Evaluator::of(agent), Runtime::new(Arc::new(MemoryStore::new())));
    let options = SessionOptions::default;
    let other = crate::prompts::workshop();
    let error =
        evaluator.resume_from(&elsewhere, &other, &conversation, options()).await.map(drop).unwrap_err();
    assert!(matches!(error, RuntimeError::PromptMismatch { .. }), "{error}");
    assert_eq!(elsewhere.store().sessions().await.unwrap(), []);
    let (session, ended) =
        evaluator.resume_from(&elsewhere, &prompt, &conversation, options()).await.unwrap();
    assert_eq!(ended.answer().unwrap().text, "done");
    assert_eq!(elsewhere.store().sessions().await.unwrap(), [session.id()]);
}

#[tokio::test]
async fn ids_of_calls_that_are_no_uuids_are_mapped_and_give_the_same_keys_each_time() {
    let text = json!({
        "evaluation_id": "0189c5d8-6b1b-7c3e-8f00-000000000001",
        "prompt_ns": "tests", "prompt_key": "paying",
        "created_at": "2026-01-02T03:04:05Z", "state_id": "0189c5d8-6b1b-7c3e-8f00-000000000009",
        "turns": [{
            "turn_number": 1,
            "user_messages": [{
                "role": "user", "content": "pay",
                "created_at": "2026-01-02T03:04:05Z", "message_id": "0189c5d8-6b1b-7c3e-8f00-000000000002",
            }],
            "assistant_message": {
                "role": "assistant", "content": "paying",
                "tool_calls": [
                    {"call_id": "call_done", "name": "pay", "arguments": "{}", "status": "completed"},
                    {"call_id": "call_abc123", "name": "pay", "arguments": "{}"},
                ],
                "created_at": "2026-01-02T03:04:05Z", "message_id": "0189c5d8-6b1b-7c3e-8f00-000000000003",
            },
            "tool_messages": [{
                "role": "tool", "content": "paid", "tool_call_id": "call_done", "name": "pay",
                "created_at": "2026-01-02T03:04:05Z", "message_id": "0189c5d8-6b1b-7c3e-8f00-000000000004",
            }],
            "evaluation_id": "0189c5d8-6b1b-7c3e-8f00-000000000001", "created_at": "2026-01-02T03:04:05Z",
        }],
    });
    let world = World::stopping(0);
    let (agent, prompt) = offering(&world.pay(Effect::Idempotent), Offer::Section);
    let evaluator = Evaluator::of(agent);
    for _ in 0..2 {
        let conversation: ConversationState = serde_json::from_value(text.clone()).unwrap();
        let kept = &conversation.turns[0].assistant_message.tool_calls[1];
        assert_eq!(kept.foreign_id.as_deref(), Some("call_abc123"));
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let options = SessionOptions::default();
        let (_, ended) = evaluator.resume_from(&runtime, &prompt, &conversation, options).await.unwrap();
        assert_eq!(ended.answer().unwrap().text, "done");
    }
    let [one, other] = &world.attempts()[..] else { panic!("only the pending call is made") };
    assert_eq!(one, other);
    assert!(one.is_resume && one.key.starts_with("0189c5d8-6b1b-7c3e-8f00-000000000001/"), "{one:?}");
}
