//! Failed attempts, answers and stops are in the journal, and survive the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::journal::{
    AfterFailure, Effect, Finish, PauseReason, RecordBody, RequestFailed, RequestFinished, SessionStopped,
    StopReason,
};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo, Store,
};
use backstitch_core::secrets::Secrets;
use backstitch_core::view::{DriverPresence as Presence, SessionStatus};
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{
    Agent, Backoff, DriveOutcome, ResumeOptions, Runtime, RuntimeError, SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::counting::CountingStore;
use crate::tailor::{reply, scripted, with_keep};

const KEY: &str = "sk-test-0123456789abcdef";

/// A policy that fails `times` times with this kind of error, and then answers.
struct Failing {
    name: PolicyName,
    times: usize,
    kind: &'static str,
    retryable: bool,
    asked: AtomicUsize,
}

impl Policy for Failing {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo::default()
    }

    fn decide(&self, _: PolicyRequest, _: RequestInfo) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            if self.asked.fetch_add(1, Ordering::SeqCst) >= self.times {
                return Ok(PolicyAnswer { usage: USAGE, ..PolicyAnswer::text("done") });
            }
            Err(PolicyError {
                retryable: self.retryable,
                retry_after: Some(Duration::from_millis(3)),
                ..PolicyError::new(self.name.clone(), self.kind, format!("refused with {KEY}"))
            })
        })
    }
}

const USAGE: Amounts = Amounts {
    input_tokens: 50,
    cache_read_tokens: 40,
    output_tokens: 10,
    reasoning_tokens: 4,
    ..Amounts::ZERO
};

fn failing(times: usize, kind: &'static str, retryable: bool) -> Agent {
    let (name, asked) = (PolicyName::new("tailor").unwrap(), AtomicUsize::new(0));
    let policy = Failing { name, times, kind, retryable, asked };
    Agent::new("tests/tailor").policy(policy).secrets(Secrets::new([KEY]))
}

async fn bodies(runtime: &Runtime, session: backstitch_core::id::SessionId) -> Vec<RecordBody> {
    let records = runtime.records(session).await.unwrap();
    records.into_iter().map(|record| record.body).collect()
}

fn failures(bodies: &[RecordBody]) -> Vec<&RequestFailed> {
    let failed = bodies.iter().filter_map(|body| match body {
        RecordBody::RequestFailed(failed) => Some(&**failed),
        _ => None,
    });
    failed.collect()
}

fn stops(bodies: &[RecordBody]) -> Vec<&SessionStopped> {
    let stops = bodies.iter().filter_map(|body| match body {
        RecordBody::SessionStopped(stopped) => Some(&**stopped),
        _ => None,
    });
    stops.collect()
}

#[tokio::test(start_paused = true)]
async fn retries_and_their_answer_are_recorded() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(failing(2, "overloaded", true), SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
    let session = driver.session().id();
    let view = runtime.view(session).await.unwrap();
    let evaluation = view.latest_evaluation().unwrap();
    let request = &evaluation.requests[0];
    assert_eq!((evaluation.requests.len(), request.attempts()), (1, 3));
    for (index, failure) in request.failures.iter().enumerate() {
        let RequestFailed { attempt, kind, message, retry_after_millis, then, turn, .. } = &*failure.record;
        assert_eq!((*turn, *attempt, kind.as_str()), (1, index as u32 + 1, "overloaded"));
        assert_eq!(message, "refused with [secret]", "keys are not recorded");
        assert_eq!(*retry_after_millis, Some(3));
        assert!(matches!(then, AfterFailure::Retry { wait_millis: 3 }), "{then:?}");
    }
    let finished = &request.finished.as_ref().unwrap().record;
    let expected = RequestFinished {
        attempt: 3,
        usage: USAGE,
        elapsed_millis: finished.elapsed_millis,
        ..RequestFinished::new(evaluation.evaluation_id, 1, Finish::Stop)
    };
    assert_eq!(**finished, expected);
    assert_eq!(view.ledger().charged(), USAGE.plus(Amounts::ONE_TURN), "it is charged once");
    assert!(view.last_stop().is_none(), "nothing stopped it");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_durable_before_the_wait_that_follows_it() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = failing(1, "overloaded", true).backoff(Backoff {
        retries: 1,
        first: Duration::from_secs(60),
        longest: Duration::from_secs(60),
    });
    let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
    let session = driver.session().id();
    let driving = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    let seen = async {
        while failures(&bodies(&runtime, session).await).is_empty() {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_millis(2), seen).await.expect("it does not wait for the retry");
    driving.abort();
}

#[tokio::test(start_paused = true)]
async fn the_error_that_stops_a_session_survives_it_and_the_resume() {
    let retries = Backoff::default().retries as usize;
    for (kind, retryable, attempts) in [("auth", false, 1), ("network", true, retries + 1)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = Runtime::new(store.clone());
        let agent = failing(attempts, kind, retryable);
        let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
        let error = driver.start("sew").await.unwrap_err();
        assert!(!error.to_string().contains(KEY), "{error}");
        let session = driver.session().id();
        driver.session().release().await.unwrap();

        let view = Runtime::new(store.clone()).view(session).await.unwrap();
        let evaluation = view.latest_evaluation().unwrap();
        let stop = SessionStopped::error(evaluation.evaluation_id, kind, "refused with [secret]");
        assert_eq!(view.stopped(), Some(&stop));
        assert_eq!(view.status(Presence::Absent), SessionStatus::Interrupted);
        let request = evaluation.requests.back().unwrap();
        assert_eq!(request.attempts() as usize, attempts);
        assert_eq!(request.last_failure().unwrap().then, AfterFailure::Stop);

        let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        driver.session().release().await.unwrap();
        let view = runtime.view(session).await.unwrap();
        assert!(view.stopped().is_none());
        assert_eq!(*view.last_stop().unwrap().record, stop, "it is kept");
        let requests = &view.latest_evaluation().unwrap().requests;
        assert_eq!(
            requests.iter().map(|request| request.attempts()).collect::<Vec<_>>(),
            [attempts as u32, 1]
        );
        assert_eq!(stops(&bodies(&runtime, session).await).len(), 1);
    }
}

#[tokio::test]
async fn a_withheld_answer_is_a_failed_attempt_of_a_failed_evaluation() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver =
        runtime.create(failing(1, "content_filter", false), SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(matches!(ended, DriveOutcome::Failed { .. }), "{ended:?}");
    let bodies = bodies(&runtime, driver.session().id()).await;
    assert_eq!(failures(&bodies)[0].kind, "content_filter");
    assert!(stops(&bodies).is_empty(), "the end of the evaluation records it");
}

/// An answer and its `request_finished` are one batch, and a stop joins the buffered records: a failure costs
/// one batch.
#[tokio::test]
async fn recording_costs_no_batch_of_its_own_unless_something_failed() {
    let appends = async |agent: Agent| {
        let store = Arc::new(CountingStore::default());
        let runtime = Runtime::new(store.clone());
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let before = store.appends();
        let _ = driver.start("sew").await;
        driver.session().release().await.unwrap();
        store.appends() - before
    };
    // The mission, the request, and the answer with the end.
    assert_eq!(appends(failing(0, "auth", false)).await, 3);
    // The mission, the request, and the failed attempt with the stop.
    assert_eq!(appends(failing(1, "auth", false)).await, 3);
    // One more batch for each attempt that is followed by a backoff.
    assert_eq!(appends(failing(2, "overloaded", true)).await, 5);
}

#[tokio::test]
async fn a_session_that_is_released_in_the_middle_says_so_and_one_that_is_killed_does_not() {
    let slow = ScriptedReply { delay_ms: Some(60_000), ..reply("done", &[]) };
    for is_released in [true, false] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = Runtime::new(store.clone());
        let driver = runtime.create(scripted(vec![slow.clone()]), SessionOptions::default()).await.unwrap();
        let session = driver.session().id();
        // The driver is dropped during the request.
        let asked = async {
            let is_request = |body: &RecordBody| matches!(body, RecordBody::RequestStarted(_));
            while !bodies(&runtime, session).await.iter().any(is_request) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            ended = driver.start("sew") => panic!("{ended:?}"),
            () = asked => {}
        }
        if is_released {
            driver.session().release().await.unwrap();
        }
        let view = runtime.view(session).await.unwrap();
        assert_eq!(view.status(Presence::Absent), SessionStatus::Interrupted);
        let reason = view.stopped().map(|stopped| stopped.reason);
        assert_eq!(reason, is_released.then_some(StopReason::Released));
    }
}

#[tokio::test]
async fn opening_a_stopped_session_changes_nothing_about_why_it_stopped() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = failing(1, "auth", false);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let before = bodies(&runtime, session).await.len();
    runtime.open(session, agent, SessionOptions::default()).await.unwrap().session().release().await.unwrap();
    assert_eq!(bodies(&runtime, session).await.len(), before);
}

#[tokio::test]
async fn a_shutdown_is_the_reason_of_the_pause() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("wait", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let run = runtime.start(&agent, "sew").await.unwrap();
    crate::tailor::until(&ran, 1).await;
    runtime.shutdown().await;
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    let view = runtime.view(run.session()).await.unwrap();
    assert_eq!(view.stopped().unwrap().reason, StopReason::Shutdown);
    assert_eq!(view.status(Presence::Absent), SessionStatus::Paused { reason: PauseReason::Asked });
}

#[test]
fn errors_have_stable_kinds() {
    let error = RuntimeError::Policy(PolicyError::new(PolicyName::new("tailor").unwrap(), "auth", ""));
    assert_eq!(RuntimeError::Shared(Arc::new(error)).kind(), "auth");
    assert_eq!(RuntimeError::ShuttingDown.kind(), "shutdown");
    assert_eq!(RuntimeError::EmptyMission.kind(), "empty_mission");
}
