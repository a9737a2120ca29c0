//! Calls that are resolved as failed are compensated by their tools, once.

use std::sync::{Arc, Mutex};

use backstitch_core::journal::{CallStarted, Decision, Effect, IdempotencyKey, RecordBody};
use backstitch_core::tool::{Compensate, Tool, ToolResult, WorkspaceUse};
use backstitch_runtime::{Agent, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::{Map, Value, json};

use crate::tailor::{reply, scripted, started, with_approval};

type Undone = Arc<Mutex<Vec<(IdempotencyKey, Map<String, Value>)>>>;

/// The outcome of a compensation hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    Works,
    Fails,
    Panics,
}

fn agent(hook: Hook) -> (Agent, Undone) {
    let undone = Undone::default();
    let seen = undone.clone();
    let compensate: Compensate = Arc::new(move |key, arguments| {
        seen.lock().unwrap().push((key, arguments));
        Box::pin(async move {
            match hook {
                Hook::Works => Ok(()),
                Hook::Fails => Err("the bank is closed".into()),
                Hook::Panics => panic!("the bank is gone"),
            }
        })
    });
    let pay = Tool::builder("pay", "Pays.").unwrap().effect(Effect::External).workspace(WorkspaceUse::None);
    let pay = pay.compensate(compensate).handler(|_, _: Value| async { Ok(ToolResult::ok("paid")) });
    let replies = vec![reply("", &[("pay", json!({"to": "ada"}))]), reply("done", &[])];
    (scripted(replies).tools(Tools::new([with_approval(pay)]).unwrap()), undone)
}

#[tokio::test]
async fn a_call_that_counts_as_failed_is_compensated_once_and_the_outcome_is_recorded() {
    for (hook, told) in [
        (Hook::Works, "was compensated"),
        (Hook::Fails, "the bank is closed"),
        (Hook::Panics, "could not be"),
    ] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let (agent, undone) = agent(hook);
        let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
        let session = driver.session().id();
        driver.start("pay").await.unwrap();
        let call = driver.session().state().await.view.calls().next().unwrap().call_id;
        // The call is approved, and the process dies inside of it.
        driver.session().resolve(Some(call), Decision::Approve, None).await.unwrap();
        let evaluation = driver.session().state().await.view.latest_evaluation().unwrap().evaluation_id;
        let intent = CallStarted {
            name: "pay".into(),
            effect: Effect::External,
            ..started(session, evaluation, call)
        };
        driver.session().record(vec![intent.into()]).await.unwrap();
        let unknown = driver.resume(ResumeOptions::default()).await.unwrap().answer();
        assert!(matches!(unknown, Err(RuntimeError::ToolIdempotencyError { .. })), "{hook:?}");
        assert!(undone.lock().unwrap().is_empty(), "nothing is undone before a decision");

        runtime.decide(session, Some(call), Decision::Fail { reason: None }, None).await.unwrap();
        assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
        let expected =
            (IdempotencyKey::new(session, call), json!({"to": "ada"}).as_object().cloned().unwrap());
        assert_eq!(*undone.lock().unwrap(), [expected], "{hook:?}");
        let mut notes = Vec::new();
        for record in runtime.records(session).await.unwrap() {
            if let RecordBody::Note(note) = record.body
                && note.topic == "compensate"
            {
                notes.push(note.text.clone());
            }
        }
        assert_eq!(notes.len(), 1, "{hook:?}: {notes:?}");
        assert!(notes[0].contains(told), "{hook:?}: {notes:?}");
        // Another resume does not compensate it again.
        driver.resume(ResumeOptions::default()).await.unwrap();
        assert_eq!(undone.lock().unwrap().len(), 1, "{hook:?}");
    }
}

#[tokio::test]
async fn a_hook_whose_process_died_is_not_called_again() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, undone) = agent(Hook::Works);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    driver.start("pay").await.unwrap();
    let call = driver.session().state().await.view.calls().next().unwrap().call_id;
    driver.session().resolve(Some(call), Decision::Approve, None).await.unwrap();
    let evaluation = driver.session().state().await.view.latest_evaluation().unwrap().evaluation_id;
    let intent =
        CallStarted { name: "pay".into(), effect: Effect::External, ..started(session, evaluation, call) };
    driver.session().record(vec![intent.into()]).await.unwrap();
    driver.session().resolve(Some(call), Decision::Fail { reason: None }, None).await.unwrap();
    // The record of a process that died inside of the hook.
    let step = backstitch_core::journal::StepFinished {
        call_id: call,
        name: "backstitch:compensate:started".into(),
        value: Value::Null,
        extra: Default::default(),
    };
    driver.session().record(vec![step.into()]).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert!(undone.lock().unwrap().is_empty());
    let known = driver.session().state().await.view.call(call).unwrap().steps.clone();
    assert!(
        known["backstitch:compensate:ended"]["error"].as_str().unwrap().contains("ended while"),
        "{known:?}"
    );
}

#[tokio::test]
async fn an_adopted_call_is_compensated_under_the_key_that_it_was_made_with() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, undone) = agent(Hook::Works);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let first = driver.session().id();
    driver.start("pay").await.unwrap();
    let call = driver.session().state().await.view.calls().next().unwrap().call_id;
    driver.session().resolve(Some(call), Decision::Approve, None).await.unwrap();
    // The export is made before the process dies inside of the call.
    let snapshot = driver.session().export_snapshot().await.unwrap();

    let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
    let adopted = elsewhere.adopt_snapshot(agent, &snapshot, SessionOptions::default()).await.unwrap();
    let unknown = adopted.resume(ResumeOptions::default()).await.unwrap().answer();
    assert!(matches!(unknown, Err(RuntimeError::ToolIdempotencyError { .. })), "{unknown:?}");
    let second = adopted.session().id();
    elsewhere.decide(second, Some(call), Decision::Fail { reason: None }, None).await.unwrap();
    assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    let keys: Vec<_> = undone.lock().unwrap().iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, [IdempotencyKey::new(first, call)]);
}
