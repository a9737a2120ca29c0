//! A session driven from its mission to its answer: the records that it leaves, limits, pauses, and what is said from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, Effect, Outcome, PauseReason, RecordBody};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::Answer;
use backstitch_core::tool::{Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_core::view::{Driver as Presence, SessionStatus};
use backstitch_providers::{Reply, Script, ScriptedCall, ScriptedPolicy};
use backstitch_runtime::{
    Agent, Ended, Fidelity, FunctionPolicy, Price, Prices, ResumeOptions, Runtime, RuntimeError,
    SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::harness::Finding;

pub(crate) fn reply(text: &str, calls: &[(&str, Value)]) -> Reply {
    let calls = calls
        .iter()
        .map(|(name, arguments)| ScriptedCall::new(*name, arguments.as_object().cloned().unwrap()));
    Reply { text: Some(text.to_owned()), calls: calls.collect(), ..Reply::default() }
}

pub(crate) fn scripted(replies: Vec<Reply>) -> Agent {
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    Agent::new("tests", "tailor", Arc::new(policy)).with_system("You sew.")
}

/// A tool that keeps what it is told as a finding, and counts how often it ran.
pub(crate) fn keep(effect: Effect, ran: Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Told {
        text: String,
    }
    Tool::builder("keep", "Keeps a finding.").unwrap().effect(effect).workspace(WorkspaceUse::None).handler(
        move |context, told: Told| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                if told.text == "wait" {
                    context.cancelled().await;
                }
                if told.text == "fail" {
                    return Err(ToolError::new("it tore"));
                }
                context.session(|draft| draft.append(Finding(told.text.clone())).map(|_| ()))??;
                Ok(ToolResult::ok(format!("kept {}", told.text)))
            }
        },
    )
}

fn with_keep(agent: Agent, effect: Effect) -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    (agent.with_tools(Tools::new([keep(effect, ran.clone())]).unwrap()), ran)
}

fn two_findings() -> Agent {
    scripted(vec![
        reply("first", &[("keep", json!({"text": "a seam"}))]),
        reply("then two", &[("keep", json!({"text": "a hem"})), ("keep", json!({"text": "fail"}))]),
        reply("done", &[]),
    ])
}

async fn kinds(runtime: &Runtime, session: SessionId) -> Vec<&'static str> {
    let mut events = runtime.events(session);
    let mut kinds = Vec::new();
    while let Some(record) = events.try_next().await.unwrap() {
        kinds.push(record.body.kind());
    }
    kinds
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
    assert_eq!((evaluation.turns, evaluation.outcome()), (3, Some(Outcome::Completed)));
    assert_eq!(view.status(Presence::Absent), SessionStatus::Idle);
    let findings = driver.session().state().await.execution.session.all::<Finding>().unwrap();
    assert_eq!(findings.len(), 2, "a failed call leaves no trace");
    let transcript = view.transcript().unwrap();
    let said: Vec<_> = transcript.all().iter().map(|message| message.content()).collect();
    assert_eq!(said[..3], ["You sew.", "sew", "first"]);
    assert!(said.contains(&"it tore".to_owned()), "{said:?}");

    // What is in memory is what the journal says.
    let state = driver.session().state().await;
    let clock = driver.session().clock().clone();
    assert_eq!(state.view.content_digest(clock.clone()).unwrap(), view.content_digest(clock).unwrap());
}

#[tokio::test]
async fn a_turn_with_one_call_is_two_batches() {
    let store = Arc::new(crate::counting::CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let replies = (0..10).map(|_| reply("go on", &[("keep", json!({"text": "a stitch"}))]));
    let (agent, _) = with_keep(scripted(replies.chain([reply("done", &[])]).collect()), Effect::External);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let before = store.appends();
    driver.start("sew").await.unwrap().answer().unwrap();
    // The mission, the first request, two batches for each turn with a call, and the answer with its end.
    assert_eq!(store.appends() - before, 1 + 1 + 2 * 10 + 1);
}

#[tokio::test]
async fn a_finished_evaluation_gives_its_recorded_answer_and_asks_nobody() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, ran) = with_keep(two_findings(), Effect::Workspace);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let first = driver.start("sew").await.unwrap();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let before = kinds(&runtime, session).await.len();
    let nobody =
        FunctionPolicy::new(PolicyName::new("nobody").unwrap(), |_| async { panic!("nobody may be asked") });
    let mut agent = agent;
    agent.policy = Arc::new(nobody);
    let again = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    assert_eq!(again.resume(ResumeOptions::default()).await.unwrap(), first);
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    assert_eq!(kinds(&runtime, session).await.len(), before, "resuming what is done records nothing");
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
async fn another_prompt_cannot_go_on() {
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
async fn a_changed_prompt_goes_on_unless_it_must_not() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(scripted(Vec::new()), SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let changed = scripted(vec![reply("done", &[])]).with_system("You sew, and you hum.");
    let driver = runtime.open(session, changed, SessionOptions::default()).await.unwrap();
    let strict = ResumeOptions { fidelity: Fidelity::Strict, ..ResumeOptions::default() };
    assert!(matches!(driver.resume(strict).await, Err(RuntimeError::PromptMismatch { .. })));
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    let view = runtime.view(session).await.unwrap();
    let system = view.transcript().unwrap().all().get(0).unwrap().content();
    assert_eq!(system, "You sew.", "the recorded system message is the one that counts");
}

#[tokio::test]
async fn a_spent_budget_pauses_and_more_of_it_goes_on() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let usage = Some(Amounts { input_tokens: 50, output_tokens: 10, ..Amounts::ZERO });
    let mut replies = vec![reply("one", &[("keep", json!({"text": "x"}))]), reply("two", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage);
    let (agent, _) = with_keep(scripted(replies), Effect::Pure);
    let limits = Limits { total_tokens: Some(60), ..Limits::default() };
    let driver = runtime.create(agent.with_budget(limits), SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(matches!(ended, Ended::Paused { reason: PauseReason::Budget, .. }), "{ended:?}");
    let again = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(again, Ended::Paused { reason: PauseReason::Budget, .. }), "{again:?}");
    let more = Limits { total_tokens: Some(1_000), ..Limits::default() };
    let options = ResumeOptions { budget: Some(more), ..ResumeOptions::default() };
    assert_eq!(driver.resume(options).await.unwrap().answer().unwrap().text, "two");
    let state = driver.session().state().await;
    assert_eq!(state.view.ledger().charged().total_tokens(), 120);
}

#[tokio::test]
async fn a_budget_of_any_kind_pauses_when_it_is_spent_and_more_of_it_goes_on() {
    let usage = Amounts { input_tokens: 50, output_tokens: 10, ..Amounts::ZERO };
    let cases = [
        ("input tokens", Limits { input_tokens: Some(60), ..Limits::default() }),
        ("output tokens", Limits { output_tokens: Some(9), ..Limits::default() }),
        ("money", Limits { money_micros: Some(69), ..Limits::default() }),
        ("turns", Limits { turns: Some(2), ..Limits::default() }),
        ("calls", Limits { calls: Some(1), ..Limits::default() }),
        ("milliseconds", Limits { millis: Some(1), ..Limits::default() }),
    ];
    for (kind, limits) in cases {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let mut replies = vec![
            reply("one", &[("keep", json!({"text": "x"}))]),
            reply("two", &[("keep", json!({"text": "y"}))]),
            reply("three", &[]),
        ];
        for reply in &mut replies {
            (reply.usage, reply.delay_ms) = (Some(usage), Some(5));
        }
        let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
        let price = Price { input: 1_000_000, output: 2_000_000 };
        let prices = Prices(std::collections::BTreeMap::from([("tailor".to_owned(), price)]));
        let agent = agent.with_budget(limits).with_prices(prices);
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let ended = driver.start("sew").await.unwrap();
        let Ended::Paused { reason: PauseReason::Budget, detail, .. } = &ended else {
            panic!("{kind}: {ended:?}")
        };
        assert!(detail.contains(kind), "{kind}: {detail}");
        let options = ResumeOptions { budget: Some(Limits::default()), ..ResumeOptions::default() };
        assert_eq!(driver.resume(options).await.unwrap().answer().unwrap().text, "three", "{kind}");
        assert_eq!(ran.load(Ordering::SeqCst), 2, "{kind}: nothing runs twice");
        let charged = driver.session().state().await.view.ledger().charged();
        let charged = (charged.input_tokens, charged.money_micros, charged.turns);
        assert_eq!(charged, (150, 210, 3), "{kind}");
    }
}

#[tokio::test]
async fn each_evaluation_of_a_session_has_the_budget_of_its_agent() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let usage = Some(Amounts { input_tokens: 50, ..Amounts::ZERO });
    let mut replies = vec![reply("one", &[]), reply("two", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage);
    let (agent, _) = with_keep(scripted(replies), Effect::Pure);
    let limits = Limits { input_tokens: Some(51), turns: Some(1), ..Limits::default() };
    let driver = runtime.create(agent.with_budget(limits), SessionOptions::default()).await.unwrap();
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "one");
    assert_eq!(driver.start("sew more").await.unwrap().answer().unwrap().text, "two");
    let view = runtime.view(driver.session().id()).await.unwrap();
    let evaluations: Vec<_> = view.evaluations().collect();
    assert_eq!(view.spent_by(evaluations[1]).input_tokens, 50);
    let left = view.budget_left(evaluations[1]).unwrap();
    assert_eq!((left.input_tokens, left.turns), (Some(1), Some(0)));
    assert_eq!(view.ledger().charged().input_tokens, 100);
}

#[tokio::test]
async fn an_agent_that_goes_in_circles_is_stopped_unless_it_may() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let circle = || (0..30).map(|_| reply("again", &[("keep", json!({"text": "x"}))]));
    let replies = || circle().chain([reply("done", &[])]).collect::<Vec<_>>();
    let (agent, ran) = with_keep(scripted(replies()), Effect::Pure);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    let Ended::Failed { failure, .. } = &ended else { panic!("{ended:?}") };
    assert_eq!((failure.kind.as_str(), ran.load(Ordering::SeqCst)), ("loop_detected", 12));
    assert!(failure.message.contains("same calls with the same arguments: keep"), "{}", failure.message);
    let (agent, _) = with_keep(scripted(replies()), Effect::Pure);
    let driver = runtime.create(agent.with_max_repeats(None), SessionOptions::default()).await.unwrap();
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_and_goes_on_as_decided() {
    for (decision, expected) in [
        (Decision::Approve, "kept x"),
        (Decision::Edit { arguments: json!({"text": "y"}).as_object().cloned().unwrap() }, "kept y"),
        (Decision::Deny { reason: Some("not now".into()) }, "not now"),
    ] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let ran = Arc::new(AtomicUsize::new(0));
        let mut tool = keep(Effect::External, ran.clone());
        let mut spec = (*tool.spec).clone();
        spec.approval = backstitch_core::tool::Approval::Needed;
        tool.spec = Arc::new(spec);
        let agent = scripted(vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])])
            .with_tools(Tools::new([tool]).unwrap());
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let ended = driver.start("sew").await.unwrap();
        let Ended::Paused { reason: PauseReason::Approval, call: Some(call), .. } = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        // It goes on waiting, however often it is resumed.
        let again = driver.resume(ResumeOptions::default()).await.unwrap();
        assert!(matches!(again, Ended::Paused { reason: PauseReason::Approval, .. }));
        // The decision comes through the inbox, as it would from another process.
        runtime.decide(driver.session().id(), Some(call), decision, Some("ada".into())).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        let transcript = driver.session().state().await.view.transcript().unwrap();
        let results = transcript.all().iter().filter(|message| message.tool_call_id() == Some(call));
        assert_eq!(results.map(|message| message.content()).collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test]
async fn messages_and_cancels_come_in_through_the_inbox() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let heard = FunctionPolicy::new(PolicyName::new("listener").unwrap(), |question| async move {
        let users = question
            .transcript
            .all()
            .iter()
            .filter(|message| message.role() == backstitch_core::journal::Role::User);
        Ok(match users.count() {
            1 => Answer::text("and?").call("keep", Arguments::from_text(r#"{"text":"x"}"#)),
            _ => Answer::text("heard both"),
        })
    });
    let (agent, _) = with_keep(Agent::new("tests", "listener", Arc::new(heard)), Effect::Pure);
    let agent = agent.with_max_turns(3);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    runtime.send(driver.session().id(), "and be quick").await.unwrap();
    let answered = driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "heard both");
    assert!(runtime.store().inbox(driver.session().id()).await.unwrap().is_empty());

    let alone = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let ended = alone.start("sew").await.unwrap();
    assert!(matches!(&ended, Ended::Failed { failure, .. } if failure.kind == "max_turns"), "{ended:?}");

    let cancelled = runtime.create(agent, SessionOptions::default()).await.unwrap();
    runtime.cancel(cancelled.session().id()).await.unwrap();
    assert!(matches!(cancelled.start("sew").await.unwrap(), Ended::Cancelled { .. }));
}

#[tokio::test]
async fn a_cancel_does_not_wait_for_the_call_that_runs() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("long", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    runtime.cancel(session).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, Ended::Cancelled { .. }), "{ended:?}");
    let view = runtime.view(session).await.unwrap();
    assert_eq!(view.status(Presence::Absent), SessionStatus::Idle);
    assert!(driver.session().state().await.execution.session.all::<Finding>().unwrap().is_empty());
    assert!(runtime.store().inbox(session).await.unwrap().is_empty(), "the wish went with what it ended");
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
                Ok(Answer::text("done"))
            }
        }
    });
    let agent = Agent::new("tests", "slow", Arc::new(policy));
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    while asked.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    runtime.cancel(driver.session().id()).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, Ended::Cancelled { .. }), "{ended:?}");
    assert!(runtime.store().inbox(driver.session().id()).await.unwrap().is_empty());
    assert_eq!(driver.start("again").await.unwrap().answer().unwrap().text, "done");
}

#[tokio::test]
async fn a_stop_pauses_and_resume_goes_on_at_the_call() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("long", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let driver = Arc::new(runtime.create(agent.clone(), SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, Ended::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    driver.session().release().await.unwrap();
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    let records = kinds(&runtime, session).await;
    assert!(records.contains(&"resolved") && records.contains(&"evaluation_resumed"), "{records:?}");
}

#[tokio::test]
async fn a_deadline_ends_the_evaluation() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let mut slow = reply("late", &[]);
    slow.delay_ms = Some(10_000);
    let agent = scripted(vec![slow]).with_deadline(Duration::from_millis(50));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(
        matches!(&ended, Ended::Failed { failure, .. } if failure.kind == "deadline_exceeded"),
        "{ended:?}"
    );
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
            async { Ok(Answer::text("done")) }
        }
    });
    let agent = Agent::new("tests", "tailor", Arc::new(policy)).with_system("You sew.");
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
    let mut events = runtime.events(driver.session().id());
    let mut seen = Vec::new();
    while let Some(record) = events.try_next().await.unwrap() {
        if let RecordBody::CallStarted(_) | RecordBody::CallFinished(_) | RecordBody::RequestStarted(_) =
            record.body
        {
            seen.push((record.body.kind(), record.position));
        }
    }
    let kinds: Vec<_> = seen.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["request_started", "call_started", "call_finished", "request_started"]);
    assert_eq!(events.cursor().number() as usize, self::kinds(&runtime, driver.session().id()).await.len());
}

#[tokio::test]
async fn a_commit_that_nobody_waited_for_leaves_a_session_that_has_to_be_opened_again() {
    let store = Arc::new(crate::counting::CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(scripted(vec![reply("done", &[])]), SessionOptions::default()).await.unwrap();
    store.stall();
    let waited = tokio::time::timeout(Duration::from_millis(20), driver.start("sew")).await;
    assert!(waited.is_err(), "the store never answers");
    let error = driver.start("sew").await.unwrap_err();
    assert!(matches!(error, RuntimeError::AheadOfStore { .. }), "{error}");
}

#[tokio::test]
async fn a_call_that_was_approved_and_cut_off_is_not_asked_about_again() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = |ran: &Arc<AtomicUsize>| {
        let mut tool = keep(Effect::Workspace, ran.clone());
        let mut spec = (*tool.spec).clone();
        spec.approval = backstitch_core::tool::Approval::Needed;
        tool.spec = Arc::new(spec);
        // Arguments that are edited to something too large for a record have to survive as well.
        scripted(vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])])
            .with_tools(Tools::new([tool]).unwrap())
    };
    let driver = Arc::new(runtime.create(agent(&ran), SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let Ended::Paused { call: Some(call), .. } = driver.start("sew").await.unwrap() else {
        panic!("it waits")
    };
    let large = "y".repeat(100_000);
    let arguments = json!({"text": large.clone(), }).as_object().cloned().unwrap();
    driver.session().resolve(Some(call), Decision::Edit { arguments }, None).await.unwrap();
    // What a process that died inside of the call would have left.
    let state = driver.session().state().await;
    let started = backstitch_core::journal::CallStarted {
        call_id: call,
        evaluation_id: state.view.latest_evaluation().unwrap().evaluation_id,
        name: "keep".into(),
        arguments: json!({"text": large.clone()}).as_object().cloned(),
        arguments_object: None,
        effect: Effect::Workspace,
        idempotency_key: backstitch_core::journal::IdempotencyKey::new(session, call),
        attempt: 1,
        root: None,
        coverage: None,
        reservation: None,
        session: None,
        extra: Default::default(),
    };
    drop(state);
    driver.session().record(vec![started.into()]).await.unwrap();
    driver.session().release().await.unwrap();
    let driver = runtime.open(session, agent(&ran), SessionOptions::default()).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let findings = driver.session().state().await.execution.session.all::<Finding>().unwrap();
    assert_eq!(findings.get(0).unwrap().0, large);
}
