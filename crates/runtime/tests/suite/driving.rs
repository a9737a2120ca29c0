//! A session driven from its mission to its answer: the records that it leaves, and which agents may resume
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::journal::{Effect, EvaluationOutcome, RecordBody};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{PolicyAnswer, Store as _};
use backstitch_core::view::{DriverPresence as Presence, SessionStatus};
use backstitch_runtime::{
    Agent, Fidelity, FunctionPolicy, ResumeOptions, Runtime, RuntimeError, SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::findings::Finding;
use crate::tailor::{kinds, reply, scripted, with_keep};

fn two_findings() -> Agent {
    scripted(vec![
        reply("first", &[("keep", json!({"text": "a seam"}))]),
        reply("then two", &[("keep", json!({"text": "a hem"})), ("keep", json!({"text": "fail"}))]),
        reply("done", &[]),
    ])
}

#[tokio::test]
async fn a_mission_is_driven_to_its_answer() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, ran) = with_keep(two_findings(), Effect::Workspace);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let answered = driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 3);

    let session = driver.session().id();
    let view = runtime.view(session).await.unwrap();
    let evaluation = view.latest_evaluation().unwrap();
    assert_eq!((evaluation.turns, evaluation.outcome()), (3, Some(EvaluationOutcome::Completed)));
    assert_eq!(view.status(Presence::Absent), SessionStatus::Idle);
    let findings = driver.session().state().await.session.all::<Finding>().unwrap();
    assert_eq!(findings.len(), 2, "a failed call leaves no trace");
    let transcript = view.transcript().unwrap();
    let said: Vec<_> = transcript.all().iter().map(|message| message.content()).collect();
    assert_eq!(said[..3], ["You sew.", "sew", "first"]);
    assert!(said.contains(&"it tore".to_owned()), "{said:?}");

    // The state in memory is the state of the journal.
    let state = driver.session().state().await;
    let clock = driver.session().clock().clone();
    assert_eq!(state.view.content_digest(clock.clone()).unwrap(), view.content_digest(clock).unwrap());
}

#[tokio::test]
async fn a_session_that_is_stored_with_its_mission_is_there_with_it_or_not_at_all() {
    let store = Arc::new(crate::counting::CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let (agent, _) = with_keep(two_findings(), Effect::Workspace);
    let options = || SessionOptions { stored_with_mission: true, ..SessionOptions::default() };
    let never_asked = runtime.create(agent.clone(), options()).await.unwrap();
    never_asked.session().release().await.unwrap();
    assert_eq!((store.appends(), store.sessions().await.unwrap().len()), (0, 0));

    let driver = runtime.create(agent.clone(), options()).await.unwrap();
    assert_eq!(store.appends(), 0);
    driver.begin("sew".into(), None).await.unwrap();
    assert_eq!(store.appends(), 1, "it is one batch");
    let session = driver.session().id();
    let view = runtime.view(session).await.unwrap();
    assert_eq!(view.transcript().unwrap().all().len(), 2, "the system text and the mission");
    assert_eq!(driver.events().position(), view.head());
    driver.session().release().await.unwrap();

    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
}

#[tokio::test]
async fn each_message_is_recorded_with_its_place_its_prompt_its_time_and_an_id() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) = with_keep(two_findings(), Effect::Workspace);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let before = driver.session().clock().now();
    driver.start("sew").await.unwrap().answer().unwrap();
    let view = runtime.view(driver.session().id()).await.unwrap();
    let after = driver.session().clock().now();
    let evaluation = view.latest_evaluation().unwrap().evaluation_id;
    let transcript = view.transcript().unwrap();
    let messages = transcript.all();

    let sequences: Vec<_> = messages.iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, (0..messages.len() as u64).collect::<Vec<_>>());
    // The system text and the mission, an answer with a call and its result, one with two, and the last.
    let turns: Vec<_> = messages.iter().map(|message| message.turn).collect();
    assert_eq!(turns, [0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3]);
    let mut ids: Vec<_> = messages.iter().map(|message| message.message_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), messages.len(), "no id occurs twice");
    for message in messages.iter() {
        assert_eq!(message.evaluation_id, evaluation);
        assert_eq!((&*message.prompt_ns, &*message.prompt_key), ("tests", "tailor"));
        assert!(before <= message.created_at && message.created_at <= after);
    }
}

#[tokio::test]
async fn a_turn_with_one_call_is_two_batches() {
    let store = Arc::new(crate::counting::CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let replies = (0..10).map(|_| reply("next", &[("keep", json!({"text": "a stitch"}))]));
    let (agent, _) = with_keep(scripted(replies.chain([reply("done", &[])]).collect()), Effect::External);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let before = store.appends();
    driver.start("sew").await.unwrap().answer().unwrap();
    // The mission, the first request, two batches for each turn with a call, and the answer with its end.
    assert_eq!(store.appends() - before, 1 + 1 + 2 * 10 + 1);
}

#[tokio::test]
async fn a_finished_evaluation_returns_its_recorded_answer_without_a_request() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, ran) = with_keep(two_findings(), Effect::Workspace);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let first = driver.start("sew").await.unwrap();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let before = kinds(&runtime, session).await.len();
    let nobody =
        FunctionPolicy::new(PolicyName::new("nobody").unwrap(), |_| async { panic!("unexpected request") });
    let mut agent = agent;
    agent.policy = Arc::new(nobody);
    let again = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    assert_eq!(again.resume(ResumeOptions::default()).await.unwrap(), first);
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    assert_eq!(kinds(&runtime, session).await.len(), before, "such a resume records nothing");
}

#[tokio::test]
async fn a_policy_that_fails_leaves_a_session_that_can_be_resumed() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) =
        with_keep(scripted(vec![reply("a call", &[("keep", json!({"text": "x"}))])]), Effect::Pure);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let error = driver.start("sew").await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Policy(error) if error.kind == "script_ended"), "{error}");
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let view = runtime.view(session).await.unwrap();
    assert_eq!(view.status(Presence::Absent), SessionStatus::Interrupted);

    let longer = vec![reply("a call", &[("keep", json!({"text": "x"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(longer), Effect::Pure);
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!((answered.text.as_str(), ran.load(Ordering::SeqCst)), ("done", 0));
}

#[tokio::test]
async fn another_prompt_cannot_resume() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(scripted(Vec::new()), SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();

    let mut other = scripted(vec![reply("done", &[])]);
    other.key = "cook".into();
    let driver = runtime.open(session, other, SessionOptions::default()).await.unwrap();
    let refused = driver.resume(ResumeOptions::default()).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::PromptMismatch { .. }), "{refused}");
    let forced = ResumeOptions { fidelity: Fidelity::Forced, ..ResumeOptions::default() };
    assert!(driver.resume(forced).await.unwrap().answer().is_ok());
}

#[tokio::test]
async fn a_changed_prompt_resumes_unless_fidelity_is_strict() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(scripted(Vec::new()), SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let changed = scripted(vec![reply("done", &[])]).instructions("You sew, and you hum.");
    let driver = runtime.open(session, changed, SessionOptions::default()).await.unwrap();
    let strict = ResumeOptions { fidelity: Fidelity::Strict, ..ResumeOptions::default() };
    assert!(matches!(driver.resume(strict).await, Err(RuntimeError::PromptMismatch { .. })));
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    let view = runtime.view(session).await.unwrap();
    let system = view.transcript().unwrap().all().get(0).unwrap().content();
    assert_eq!(system, "You sew.", "the recorded system message counts");
}

#[tokio::test]
async fn large_arguments_and_results_survive_the_process() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let large = "x".repeat(200_000);
    let replies = vec![reply("large", &[("keep", json!({"text": large}))])];
    let (agent, _) = with_keep(scripted(replies.clone()), Effect::Workspace);
    // The script ends after the call, so the session is interrupted with its large content in objects.
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), {
        let seen = seen.clone();
        move |question| {
            let lengths = question.transcript.all().iter().map(|message| message.content().len());
            seen.store(lengths.max().unwrap_or(0), Ordering::SeqCst);
            async { Ok(PolicyAnswer::text("done")) }
        }
    });
    let agent = Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew.");
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert!(seen.load(Ordering::SeqCst) > 200_000);
}

#[tokio::test]
async fn a_call_is_journaled_before_it_runs_and_pure_ones_after() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) = with_keep(
        scripted(vec![reply("x", &[("keep", json!({"text": "x"}))]), reply("y", &[])]),
        Effect::External,
    );
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap();
    let mut seen = Vec::new();
    for record in runtime.records(driver.session().id()).await.unwrap() {
        if let RecordBody::CallStarted(_) | RecordBody::CallFinished(_) | RecordBody::RequestStarted(_) =
            record.body
        {
            seen.push((record.body.kind(), record.position));
        }
    }
    let kinds: Vec<_> = seen.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["request_started", "call_started", "call_finished", "request_started"]);
    let head = driver.events().position().number() as usize;
    assert_eq!(head, self::kinds(&runtime, driver.session().id()).await.len());
}

#[tokio::test]
async fn a_commit_completes_even_if_its_caller_is_dropped() {
    let store = Arc::new(crate::counting::CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(scripted(vec![reply("done", &[])]), SessionOptions::default()).await.unwrap();
    store.stall();
    let waited = tokio::time::timeout(Duration::from_millis(20), driver.start("sew")).await;
    assert!(waited.is_err(), "the store does not answer");
    store.unstall();
    // The next operation waits for the commit, and sees its effect.
    let error = driver.start("sew").await.unwrap_err();
    assert!(matches!(error, RuntimeError::EvaluationOpen { .. }), "{error}");
    let answer = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answer.text, "done");
    let view = runtime.view(driver.session().id()).await.unwrap();
    assert_eq!(driver.session().state().await.view.head(), view.head());
}
