//! Snapshots and conversations contain how their evaluations ended.

use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_core::session::Snapshot;
use backstitch_core::view::ConversationState;
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{
    Agent, DriveOutcome, Evaluator, FunctionPolicy, ResumeOptions, Runtime, SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::world::nameless;
use crate::prompts::{open, workshop};
use crate::tailor::{reply, scripted};

fn nobody() -> Arc<FunctionPolicy> {
    let name = PolicyName::new("nobody").unwrap();
    Arc::new(FunctionPolicy::new(name, |_| async { panic!("no policy may be called") }))
}

async fn exported(agent: Agent, cancel: bool) -> (DriveOutcome, Snapshot, ConversationState) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    if cancel {
        driver.cancel();
    }
    let ended = driver.start("sew").await.unwrap();
    let snapshot = driver.session().export_snapshot().await.unwrap().to_json().unwrap();
    let conversation = driver.session().export_conversation(None).await.unwrap().unwrap();
    let conversation = serde_json::to_string(&conversation).unwrap();
    (ended, Snapshot::from_json(&snapshot).unwrap(), serde_json::from_str(&conversation).unwrap())
}

#[tokio::test]
async fn an_evaluation_that_ended_elsewhere_has_ended() {
    let loops = || vec![reply("", &[("nothing", json!({}))]), reply("done", &[])];
    let completed = exported(scripted(vec![reply("sewn", &[])]), false).await;
    let failed = exported(scripted(loops()).max_turns(1), false).await;
    let cancelled = exported(scripted(loops()), true).await;
    assert!(matches!(completed.0, DriveOutcome::Completed(_)), "{:?}", completed.0);
    assert!(matches!(failed.0, DriveOutcome::Failed { .. }), "{:?}", failed.0);
    assert!(matches!(cancelled.0, DriveOutcome::Cancelled { .. }), "{:?}", cancelled.0);
    for (ended, snapshot, conversation) in [completed, failed, cancelled] {
        let mut agent = scripted(vec![]);
        agent.policy = nobody();
        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let options = SessionOptions::default;
        let adopted = elsewhere.adopt_snapshot(agent.clone(), &snapshot, options()).await.unwrap();
        assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap(), ended);
        let adopted = elsewhere.adopt_conversation(agent, &conversation, options()).await.unwrap();
        assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap(), ended);
    }
}

#[tokio::test]
async fn an_evaluation_that_was_superseded_elsewhere_is_followed_by_another() {
    let replies: Vec<ScriptedReply> =
        vec![reply("", &[open(&["room"])]), reply("", &[("sew", json!({}))]), reply("done", &[])];
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let evaluator = Evaluator::of(nameless(replies.clone()));
    let session = evaluator.create_session(&runtime, SessionOptions::default()).await.unwrap();
    // Driven by hand, so that nothing happens after the end of the first evaluation.
    let prompt = workshop();
    let rendered = prompt.render(&session.state().await.session).unwrap();
    let agent = nameless(replies).rendered_prompt(&prompt, rendered).unwrap();
    let ended = backstitch_runtime::Driver::new(session.clone(), agent).start("begin").await.unwrap();
    assert!(matches!(ended, DriveOutcome::Superseded { .. }), "{ended:?}");
    let snapshot = session.export_snapshot().await.unwrap();

    let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
    let adopted = evaluator.adopt_session(&elsewhere, &snapshot, SessionOptions::default()).await.unwrap();
    let answered = evaluator.evaluate(&prompt, &adopted, true).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    let first = elsewhere.view(adopted.id()).await.unwrap().evaluations().next().unwrap().evaluation_id;
    let first = ResumeOptions { evaluation: Some(first), ..ResumeOptions::default() };
    let again = evaluator.evaluate(&prompt, &adopted, first).await.unwrap().answer().unwrap();
    assert_eq!(again.text, "done", "the evaluation that superseded it is resumed");
}
