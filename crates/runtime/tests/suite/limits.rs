//! Limits of an evaluation: budgets of every kind, deadlines, and repeated turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::journal::{Effect, PauseReason};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::PolicyAnswer;
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, Price, Prices, ResumeOptions, Runtime, RuntimeError, SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::json;
use tokio::sync::watch;

use crate::tailor::{reply, scripted, with_keep};

#[tokio::test]
async fn a_spent_budget_pauses_and_a_larger_one_resumes() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let usage = Some(Amounts { input_tokens: 50, output_tokens: 10, ..Amounts::ZERO });
    let mut replies = vec![reply("one", &[("keep", json!({"text": "x"}))]), reply("two", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage);
    let (agent, _) = with_keep(scripted(replies), Effect::Pure);
    let limits = Limits { total_tokens: Some(60), ..Limits::default() };
    let driver = runtime.create(agent.budget(limits), SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Budget, .. }), "{ended:?}");
    let again = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(again, DriveOutcome::Paused { reason: PauseReason::Budget, .. }), "{again:?}");
    let more = Limits { total_tokens: Some(1_000), ..Limits::default() };
    let options = ResumeOptions { budget: Some(more), ..ResumeOptions::default() };
    assert_eq!(driver.resume(options).await.unwrap().answer().unwrap().text, "two");
    let state = driver.session().state().await;
    assert_eq!(state.view.ledger().charged().total_tokens(), 120);
}

#[tokio::test]
async fn a_budget_of_any_kind_pauses_when_it_is_spent_and_a_larger_one_resumes() {
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
        let price = Price { input: 1_000_000, output: 2_000_000, ..Price::default() };
        let prices = Prices(std::collections::BTreeMap::from([("tailor".to_owned(), price)]));
        let agent = agent.budget(limits).prices(prices);
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let ended = driver.start("sew").await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::Budget, detail, .. } = &ended else {
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
    let driver = runtime.create(agent.budget(limits), SessionOptions::default()).await.unwrap();
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
async fn an_agent_that_repeats_its_calls_is_stopped_unless_repeats_are_unlimited() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let circle = || (0..30).map(|_| reply("again", &[("keep", json!({"text": "x"}))]));
    let replies = || circle().chain([reply("done", &[])]).collect::<Vec<_>>();
    let (agent, ran) = with_keep(scripted(replies()), Effect::Pure);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    let DriveOutcome::Failed { failure, .. } = &ended else { panic!("{ended:?}") };
    assert_eq!((failure.kind.as_str(), ran.load(Ordering::SeqCst)), ("loop_detected", 12));
    assert!(failure.message.contains("same calls with the same arguments: keep"), "{}", failure.message);
    let (agent, _) = with_keep(scripted(replies()), Effect::Pure);
    let driver = runtime.create(agent.max_repeats(None), SessionOptions::default()).await.unwrap();
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
}

#[tokio::test]
async fn a_deadline_pauses_the_evaluation_and_a_later_one_resumes_it() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    // The model answers once it may, however long a deadline takes to be noticed.
    let (may_answer, allowed) = watch::channel(false);
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |_| {
        let mut allowed = allowed.clone();
        async move {
            allowed.wait_for(|may| *may).await?;
            Ok(PolicyAnswer::text("late"))
        }
    });
    let agent = Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew.");
    let agent = agent.deadline(Duration::from_millis(50));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. }), "{ended:?}");
    assert!(matches!(ended.answer(), Err(RuntimeError::DeadlineExceeded { session: None, .. })));
    // Without more time it stays paused; with more time it resumes.
    let ended = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. }), "{ended:?}");
    may_answer.send(true).unwrap();
    let more = ResumeOptions { deadline: Some(Duration::from_secs(60)), ..ResumeOptions::default() };
    assert_eq!(driver.resume(more).await.unwrap().answer().unwrap().text, "late");
}
