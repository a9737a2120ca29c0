//! Events of a session that is driven: records, deltas of answers, and backoffs before retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::journal::{Effect, PauseReason, Position};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{
    BoxFuture, Delta, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo,
};
use backstitch_core::rng::Seed;
use backstitch_core::tool::WorkspaceUse;
use backstitch_runtime::{
    Agent, Backoff, DriveOutcome, Driver, EventStream, LiveKind, ResumeOptions, Retry, Runtime, RuntimeError,
    SessionEvent, SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;

/// A policy with scripted failures, which then emits `words` deltas.
struct Failing {
    name: PolicyName,
    failures: Vec<(&'static str, Option<Duration>)>,
    asked: Arc<AtomicUsize>,
    words: usize,
}

impl Failing {
    fn new(failures: &[(&'static str, Option<Duration>)], words: usize) -> (Self, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let name = PolicyName::new("tailor").unwrap();
        (Self { name, failures: failures.to_vec(), asked: asked.clone(), words }, asked)
    }
}

impl Policy for Failing {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo::default()
    }

    fn decide(
        &self,
        question: PolicyRequest,
        _: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            if let Some((kind, retry_after)) = self.failures.get(asked).copied() {
                return Err(PolicyError {
                    retryable: kind != "auth",
                    retry_after,
                    ..PolicyError::new(self.name.clone(), kind, "not now")
                });
            }
            for word in 0..self.words {
                question.deltas.emit(Delta::Text(format!("word {word} ")));
            }
            Ok(PolicyAnswer::text("all words"))
        })
    }
}

async fn driver(policy: Failing, backoff: Backoff, deadline: Option<Duration>) -> Driver {
    let mut agent = Agent::new("tests/tailor").policy(Arc::new(policy)).backoff(backoff);
    agent.deadline = deadline;
    let options = SessionOptions { seed: Some(Seed::new(7)), ..SessionOptions::default() };
    Runtime::new(Arc::new(MemoryStore::new())).create(agent, options).await.unwrap()
}

/// All events until the session is released.
async fn all(mut events: EventStream) -> Vec<SessionEvent> {
    let mut all = Vec::new();
    while let Some(happening) = events.next().await.unwrap() {
        all.push(happening);
    }
    all
}

fn retries(all: &[SessionEvent]) -> Vec<Retry> {
    let retries = all.iter().filter_map(|event| match &event.live()?.kind {
        LiveKind::Retry(retry) => Some(Retry::clone(retry)),
        _ => None,
    });
    retries.collect()
}

#[tokio::test(start_paused = true)]
async fn retryable_errors_are_retried_after_published_backoffs() {
    let mut waits = Vec::new();
    for _ in 0..2 {
        let failures =
            [("overloaded", None), ("rate_limit", Some(Duration::from_secs(7))), ("network", None)];
        let (policy, asked) = Failing::new(&failures, 0);
        let driver = driver(policy, Backoff::default(), None).await;
        let watch = driver.events();
        assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "all words");
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        drop(driver);
        let told = retries(&all(watch).await);
        let kinds: Vec<_> = told.iter().map(|retry| (retry.attempt, retry.kind.as_str())).collect();
        assert_eq!(kinds, [(1, "overloaded"), (2, "rate_limit"), (3, "network")]);
        let millis: Vec<_> = told.iter().map(|retry| retry.wait.as_millis()).collect();
        assert!((250..=500).contains(&millis[0]), "{millis:?}");
        assert!((7_000..=7_700).contains(&millis[1]), "{millis:?}");
        assert!((1_000..=2_000).contains(&millis[2]), "{millis:?}");
        waits.push(millis);
    }
    assert_eq!(waits[0], waits[1], "the same seed has the same backoffs");
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried_and_the_number_of_retries_is_limited() {
    let (policy, asked) = Failing::new(&[("auth", None)], 0);
    let one = driver(policy, Backoff::default(), None).await;
    let error = one.start("sew").await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Policy(error) if error.kind == "auth"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // The session can be resumed once the cause is fixed.
    assert!(one.resume(ResumeOptions::default()).await.unwrap().answer().is_ok());

    let (policy, asked) = Failing::new(&[("network", None); 9], 0);
    let other = driver(policy, Backoff { retries: 2, ..Backoff::default() }, None).await;
    let error = other.start("sew").await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Policy(error) if error.kind == "network"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn no_backoff_exceeds_the_deadline_of_the_evaluation() {
    let (policy, _) = Failing::new(&[("rate_limit", Some(Duration::from_secs(3_600))); 9], 0);
    let driver = driver(policy, Backoff::default(), Some(Duration::from_secs(20))).await;
    let watch = driver.events();
    let ended = driver.start("sew").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. }), "{ended:?}");
    drop(driver);
    let told = retries(&all(watch).await);
    assert!(told[0].wait <= Duration::from_secs(20), "{told:?}");
}

#[tokio::test]
async fn records_and_deltas_are_published_in_order() {
    let (policy, _) = Failing::new(&[], 3);
    let driver = driver(policy, Backoff::NEVER, None).await;
    let watch = driver.events().from(Position::START);
    driver.start("sew").await.unwrap();
    drop(driver);
    let kinds: Vec<_> = all(watch)
        .await
        .into_iter()
        .map(|happening| match happening {
            SessionEvent::Record(record) => record.body.kind().to_owned(),
            other => format!("Text({:?})", other.text().unwrap()),
        })
        .collect();
    let words = (0..3).map(|word| format!("Text(\"word {word} \")"));
    let mut expected = vec!["session_created".to_owned()];
    expected.extend(["evaluation_started", "message_appended", "request_started"].map(str::to_owned));
    expected.extend(words);
    let ends = ["message_appended", "request_finished", "slice_changed", "evaluation_finished"];
    expected.extend(ends.map(str::to_owned));
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_slow_reader_misses_deltas_but_never_records() {
    let (policy, _) = Failing::new(&[], 5_000);
    let driver = driver(policy, Backoff::NEVER, None).await;
    let watch = driver.events().from(Position::START);
    driver.start("sew").await.unwrap();
    let head = driver.session().state().await.view.head();
    drop(driver);
    let (mut positions, mut pieces, mut missed) = (Vec::new(), 0, 0);
    for happening in all(watch).await {
        match happening {
            SessionEvent::Record(record) => positions.push(record.position.number()),
            SessionEvent::Live(_) => pieces += 1,
            SessionEvent::Missed(some) => missed += some,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(positions, (0..head.number()).collect::<Vec<_>>());
    assert!(missed > 0 && pieces > 0);
    assert_eq!(pieces + missed, 5_000);
}

#[tokio::test]
async fn missed_deltas_are_reported_after_the_records_before_them() {
    let (policy, _) = Failing::new(&[], 5_000);
    let driver = driver(policy, Backoff::NEVER, None).await;
    let watch = driver.events().from(Position::START);
    driver.start("sew").await.unwrap();
    drop(driver);
    let events = all(watch).await;
    let missed = events.iter().position(|event| matches!(event, SessionEvent::Missed(_))).unwrap();
    let before: Vec<_> = events[..missed].iter().filter_map(SessionEvent::record).collect();
    assert_eq!(before.last().map(|record| record.body.kind()), Some("request_started"));
    let next = events[missed + 1].live().unwrap();
    assert_eq!(next.follows(), before.last().map(|record| record.position));
    assert_eq!(events.iter().filter(|event| matches!(event, SessionEvent::Missed(_))).count(), 1);
}

#[tokio::test]
async fn deltas_of_a_sub_agent_name_its_session() {
    let (policy, _) = Failing::new(&[("network", None)], 2);
    let backoff = Backoff { first: Duration::from_millis(1), ..Backoff::default() };
    let helper = Agent::new("tests/helper").policy(Arc::new(policy)).backoff(backoff);
    let helper = SubAgent::new("helper", "Helps.", helper).unwrap();
    let helper = helper.described(|tool| tool.effect(Effect::Workspace).workspace(WorkspaceUse::None));
    let caller =
        backstitch_runtime::FunctionPolicy::new(PolicyName::new("caller").unwrap(), |question| async move {
            Ok(match question.turn {
                1 => PolicyAnswer::default().call("helper", Arguments::from_text(r#"{"mission": "help"}"#)),
                _ => PolicyAnswer::text("done"),
            })
        });
    let agent =
        Agent::new("tests/caller").policy(Arc::new(caller)).tools(Tools::new([helper.into_tool()]).unwrap());
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let watch = driver.events();
    driver.start("sew").await.unwrap().answer().unwrap();
    let view = runtime.view(driver.session().id()).await.unwrap();
    let child = view.calls().next().unwrap().session().unwrap();
    drop(driver);
    let all = all(watch).await;
    let of = |kind: fn(&LiveKind) -> bool| {
        let live = all.iter().filter_map(SessionEvent::live);
        live.filter(|event| kind(&event.kind)).map(|event| event.session).collect::<Vec<_>>()
    };
    assert_eq!(of(|kind| matches!(kind, LiveKind::Text { .. })), [child; 2]);
    assert_eq!(of(|kind| matches!(kind, LiveKind::Retry(_))), [child]);
    assert_eq!(retries(&all).len(), 1);
}

#[tokio::test]
async fn a_stream_that_was_opened_while_the_session_was_idle_has_the_live_events_of_the_next_run() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (policy, _) = Failing::new(&[], 7);
    let agent = Agent::new("tests/tailor").policy(policy);
    let run = runtime.start(&agent, "sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    // It ends at the last record.
    let mut until_idle = runtime.events(session).until_idle();
    let mut last = None;
    while let Some(event) = until_idle.next().await.unwrap() {
        last = event.record().map(|record| record.position);
    }
    let head = runtime.view(session).await.unwrap().head();
    assert_eq!((last.map(Position::next), until_idle.position()), (Some(head), head));
    // It stays, and has everything of the next run, in order.
    let mut events = runtime.events(session).from(head);
    let run = runtime.ask(session, &agent, "more").await.unwrap();
    let (mut words, mut next) = (0, head);
    while words < 7 {
        match events.next().await.unwrap().unwrap() {
            SessionEvent::Record(record) => {
                assert_eq!(record.position, next);
                next = next.next();
            }
            SessionEvent::Live(live) => {
                words += usize::from(matches!(live.kind, LiveKind::Text { .. }));
                assert_eq!(live.at, next);
            }
            other => panic!("{other:?}"),
        }
    }
    run.outcome().await.unwrap();
    let rest = all(events.until_idle()).await;
    let records = rest.iter().filter(|event| event.record().is_some()).count();
    let head = runtime.view(session).await.unwrap().head();
    assert_eq!(next.number() + records as u64, head.number());
}

#[tokio::test]
async fn a_stream_with_content_has_texts_that_are_too_large_for_records() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let large = "wool ".repeat(40_000);
    let agent = crate::tailor::scripted(vec![crate::tailor::reply(&large, &[])]);
    let run = runtime.start(&agent, "sew").await.unwrap();
    run.outcome().await.unwrap();
    let texts = async |events: EventStream| {
        let events = all(events.until_idle()).await;
        let records = events.iter().filter_map(|event| event.record());
        let texts = records.filter_map(|record| match &record.body {
            backstitch_core::journal::RecordBody::MessageAppended(message) => Some(message.content()),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    let plain = texts(runtime.events(run.session())).await;
    let whole = texts(runtime.events(run.session()).with_content()).await;
    assert_eq!((plain.last().unwrap().as_str(), whole.last().unwrap()), ("", &large));
}
