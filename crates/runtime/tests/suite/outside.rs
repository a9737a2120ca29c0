//! Input of a session while it is driven: decisions, messages, and requests to cancel or to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{CallStarted, Decision, Effect, PauseReason};
use backstitch_core::message::{Arguments, Large, PolicyName};
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::view::{CallStatus, DriverPresence as Presence, SessionStatus};
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, ResumeOptions, Runtime, SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::findings::Finding;
use crate::tailor::{keep, kinds, reply, scripted, started, started_until, until, with_approval, with_keep};

#[tokio::test]
async fn a_call_that_needs_approval_waits_and_follows_the_decision() {
    for (decision, expected) in [
        (Decision::Approve, "kept x"),
        (Decision::Edit { arguments: json!({"text": "y"}).as_object().cloned().unwrap() }, "kept y"),
        (Decision::Deny { reason: Some("not now".into()) }, "not now"),
    ] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let ran = Arc::new(AtomicUsize::new(0));
        let tool = with_approval(keep(Effect::External, ran.clone()));
        let agent = scripted(vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])])
            .tools(Tools::new([tool]).unwrap());
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let ended = driver.start("sew").await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::Approval, call: Some(call), .. } = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        // It stays paused, however often it is resumed.
        let again = driver.resume(ResumeOptions::default()).await.unwrap();
        assert!(matches!(again, DriveOutcome::Paused { reason: PauseReason::Approval, .. }));
        // The decision comes through the inbox, as it would from another process.
        runtime.decide(driver.session().id(), Some(call), decision, Some("ada".into())).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        let transcript = driver.session().state().await.view.transcript().unwrap();
        let results = transcript.all().iter().filter(|message| message.tool_call_id() == Some(call));
        assert_eq!(results.map(|message| message.content()).collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test]
async fn messages_arrive_through_the_inbox() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let heard = FunctionPolicy::new(PolicyName::new("listener").unwrap(), |question| async move {
        let users = question
            .transcript
            .all()
            .iter()
            .filter(|message| message.role() == backstitch_core::journal::Role::User);
        Ok(match users.count() {
            1 => PolicyAnswer::text("and?").call("keep", Arguments::from_text(r#"{"text":"x"}"#)),
            _ => PolicyAnswer::text("heard both"),
        })
    });
    let (agent, _) = with_keep(Agent::new("tests/listener").policy(Arc::new(heard)), Effect::Pure);
    let agent = agent.max_turns(3);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    runtime.send(driver.session().id(), "and be quick").await.unwrap();
    let answered = driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "heard both");
    assert!(runtime.store().inbox(driver.session().id()).await.unwrap().is_empty());

    let alone = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let ended = alone.start("sew").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "max_turns"),
        "{ended:?}"
    );

    // No evaluation is open yet, so there is nothing to cancel.
    let unasked = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let refused = runtime.cancel(unasked.session().id()).await.unwrap_err();
    assert!(refused.to_string().contains("there is nothing to cancel"), "{refused}");
}

#[tokio::test]
async fn a_cancel_does_not_wait_for_the_call_that_runs() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("long", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let running = started_until(&driver, &ran, 1).await;
    runtime.cancel(session).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
    let view = runtime.view(session).await.unwrap();
    assert_eq!(view.status(Presence::Absent), SessionStatus::Idle);
    assert!(driver.session().state().await.session.all::<Finding>().unwrap().is_empty());
    assert!(runtime.store().inbox(session).await.unwrap().is_empty(), "the cancellation is removed");
    // The script has one more reply, and the next mission gets it.
    assert_eq!(driver.start("again").await.unwrap().answer().unwrap().text, "done");
}

#[tokio::test]
async fn a_cancel_ends_an_evaluation_that_waits_for_an_answer_and_no_other() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = FunctionPolicy::new(PolicyName::new("slow").unwrap(), {
        let asked = asked.clone();
        move |_| {
            let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(PolicyAnswer::text("done"))
            }
        }
    });
    let agent = Agent::new("tests/slow").policy(Arc::new(policy));
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let running = started_until(&driver, &asked, 1).await;
    runtime.cancel(driver.session().id()).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
    assert!(runtime.store().inbox(driver.session().id()).await.unwrap().is_empty());
    assert_eq!(driver.start("again").await.unwrap().answer().unwrap().text, "done");
}

#[tokio::test]
async fn a_stop_pauses_and_a_resume_continues_at_the_call() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("long", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let driver = Arc::new(runtime.create(agent.clone(), SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let running = started_until(&driver, &ran, 1).await;
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    driver.session().release().await.unwrap();
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    let records = kinds(&runtime, session).await;
    assert!(records.contains(&"resolved") && records.contains(&"evaluation_resumed"), "{records:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 2, "it was rolled back, and ran again");
    let view = runtime.view(session).await.unwrap();
    let results: Vec<_> = view.transcript().unwrap().all().filter(|message| message.tool_call_id().is_some());
    assert_eq!(results.len(), 1, "the transcript has only its final result");
    assert_eq!(view.calls().next_back().unwrap().status(), CallStatus::Completed);
}

#[tokio::test]
async fn a_call_that_was_approved_and_stopped_is_not_asked_about_again() {
    for effect in [Effect::Pure, Effect::Workspace] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let ran = Arc::new(AtomicUsize::new(0));
        let replies = vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])];
        let agent = scripted(replies).tools(Tools::new([with_approval(keep(effect, ran.clone()))]).unwrap());
        let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
        let DriveOutcome::Paused { call: Some(call), .. } = driver.start("sew").await.unwrap() else {
            panic!("it waits")
        };
        let arguments = json!({"text": "wait"}).as_object().cloned().unwrap();
        driver.session().resolve(Some(call), Decision::Edit { arguments }, None).await.unwrap();
        let running = tokio::spawn({
            let driver = driver.clone();
            async move { driver.resume(ResumeOptions::default()).await }
        });
        until(&ran, 1).await;
        driver.stop();
        let ended = running.await.unwrap().unwrap();
        assert!(
            matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }),
            "{effect:?}: {ended:?}"
        );
        let session = driver.session().id();
        driver.session().release().await.unwrap();
        let agent = driver.agent().clone();
        let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
        let ended = driver.resume(ResumeOptions::default()).await.unwrap();
        assert_eq!(ended.answer().unwrap().text, "done", "{effect:?}");
        let view = runtime.view(session).await.unwrap();
        let told = view.transcript().unwrap().all().filter(|message| message.tool_call_id().is_some());
        assert_eq!(told[0].content(), "kept wait", "{effect:?}: as it was edited");
    }
}

#[tokio::test]
async fn a_stopped_external_call_is_reported_and_does_not_run_again() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("long", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::External);
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let running = started_until(&driver, &ran, 1).await;
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    let view = runtime.view(driver.session().id()).await.unwrap();
    let told = view.transcript().unwrap().all().latest().unwrap().content();
    assert!(told.contains("whether it had an effect outside is not known"), "{told}");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_was_approved_and_cut_off_is_not_asked_about_again() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = |ran: &Arc<AtomicUsize>| {
        let tool = with_approval(keep(Effect::Workspace, ran.clone()));
        // Arguments that are edited to something too large for a record have to survive as well.
        scripted(vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])])
            .tools(Tools::new([tool]).unwrap())
    };
    let driver = Arc::new(runtime.create(agent(&ran), SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let DriveOutcome::Paused { call: Some(call), .. } = driver.start("sew").await.unwrap() else {
        panic!("it waits")
    };
    let large = "y".repeat(100_000);
    let arguments = json!({"text": large.clone(), }).as_object().cloned().unwrap();
    driver.session().resolve(Some(call), Decision::Edit { arguments }, None).await.unwrap();
    // The record of a process that died inside of the call.
    let state = driver.session().state().await;
    let evaluation = state.view.latest_evaluation().unwrap().evaluation_id;
    let started = CallStarted {
        arguments: json!({"text": large.clone()}).as_object().cloned().map(Large::Inline),
        ..started(session, evaluation, call)
    };
    drop(state);
    driver.session().record(vec![started.into()]).await.unwrap();
    driver.session().release().await.unwrap();
    let driver = runtime.open(session, agent(&ran), SessionOptions::default()).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let findings = driver.session().state().await.session.all::<Finding>().unwrap();
    assert_eq!(findings.get(0).unwrap().0, large);
}
