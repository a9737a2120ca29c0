//! Answers that did not come to their end: what was said is kept, charged, and shown again if a person stopped it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::journal::{Finish, RecordBody, Role};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    BoxFuture, Delta, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo,
};
use backstitch_runtime::{Agent, Backoff, DriveOutcome, LiveKind, Run, Runtime};
use backstitch_store::MemoryStore;

/// Largest possible cost of a request.
const ESTIMATE: Amounts = Amounts { input_tokens: 100, output_tokens: 10, ..Amounts::ZERO };

/// How the first answer ends.
#[derive(Clone, Copy, PartialEq)]
enum FirstEnd {
    Hangs,
    Drops,
}

/// A policy whose first answer has a beginning and no end.
struct Stammering {
    name: PolicyName,
    first: FirstEnd,
    /// The texts of each request.
    shown: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Policy for Stammering {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo { estimate: ESTIMATE, ..RequestInfo::default() }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        _: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            let texts = question.shown.iter().map(|message| message.content()).collect();
            let count = {
                let mut shown = self.shown.lock().unwrap();
                shown.push(texts);
                shown.len()
            };
            if count > 1 {
                return Ok(PolicyAnswer::text(" 12 cm long."));
            }
            question.deltas.emit(Delta::Reasoning("a thought".to_owned()));
            question.deltas.emit(Delta::Text("The seam ".to_owned()));
            question.deltas.emit(Delta::Text("is".to_owned()));
            if self.first == FirstEnd::Hangs {
                std::future::pending::<()>().await;
            }
            Err(PolicyError { retryable: true, ..PolicyError::new(self.name.clone(), "network", "cut") })
        })
    }
}

type Shown = Arc<Mutex<Vec<Vec<String>>>>;

fn agent(first: FirstEnd) -> (Agent, Shown) {
    let shown = Shown::default();
    let policy = Stammering { name: PolicyName::new("tailor").unwrap(), first, shown: shown.clone() };
    let backoff = Backoff { first: Duration::from_millis(1), ..Backoff::default() };
    (Agent::new("tests/tailor").policy(Arc::new(policy)).backoff(backoff), shown)
}

/// Waits until the last piece of the first answer has arrived.
async fn wait_for_text(run: &mut Run) {
    while let Some(event) = run.next().await {
        if matches!(event.live().map(|live| &live.kind), Some(LiveKind::Text { text, .. }) if text == "is") {
            return;
        }
    }
    panic!("the answer did not arrive");
}

#[tokio::test]
async fn an_answer_that_a_person_stops_is_recorded_charged_and_shown_again() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, shown) = agent(FirstEnd::Hangs);
    let mut run = runtime.start(&agent, "Measure").await.unwrap();
    wait_for_text(&mut run).await;
    run.pause();
    assert!(matches!(run.outcome().await.unwrap(), DriveOutcome::Paused { .. }));
    let session = run.session();

    let view = runtime.view(session).await.unwrap();
    let messages = view.messages(0..view.message_count()).unwrap();
    let last = messages.last().unwrap();
    assert_eq!((last.role(), last.content().as_str()), (Role::Assistant, "The seam is"));
    assert_eq!(last.provider.as_ref().unwrap().finish, Some(Finish::Interrupted));
    let spent = view.ledger().charged();
    assert_eq!((spent.input_tokens, spent.output_tokens), (100, 10));

    runtime.cancel(session).await.unwrap();
    runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
    let answer: String = runtime.ask(session, &agent, "Continue").await.unwrap().answer().await.unwrap();
    assert_eq!(answer, " 12 cm long.");
    let shown = shown.lock().unwrap().clone();
    let again = shown.last().unwrap();
    assert_eq!(again.last().unwrap(), "Continue");
    let stopped = again.iter().find(|text| text.starts_with("The seam is")).unwrap();
    assert!(stopped.contains("interrupted"), "{stopped}");
    assert!(!again.iter().any(|text| text.contains("a thought")), "reasoning is not sent again");

    let records = runtime.records(session).await.unwrap();
    let notes = records.iter().filter(|record| matches!(&record.body, RecordBody::Note(_)));
    let notes: Vec<String> = notes.map(|record| serde_json::to_string(record).unwrap()).collect();
    assert!(notes.iter().any(|note| note.contains("a thought")), "{notes:?}");
}

#[tokio::test]
async fn a_stopped_answer_is_continued_by_a_resume() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) = agent(FirstEnd::Hangs);
    let mut run = runtime.start(&agent, "Measure").await.unwrap();
    wait_for_text(&mut run).await;
    run.pause();
    run.outcome().await.unwrap();
    let resumed = runtime.resume(run.session(), &agent).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), "The seam is 12 cm long.");
}

#[tokio::test]
async fn a_dropped_answer_is_kept_and_charged_and_its_request_is_repeated_unchanged() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, shown) = agent(FirstEnd::Drops);
    let run = runtime.start(&agent, "Measure").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), " 12 cm long.");
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown[0], shown[1]);
    let records = runtime.records(run.session()).await.unwrap();
    let failed = records.iter().find_map(|record| match &record.body {
        RecordBody::RequestFailed(failed) => Some(failed.usage),
        _ => None,
    });
    assert_eq!(failed, Some(ESTIMATE));
    let note = records.iter().find(|record| matches!(&record.body, RecordBody::Note(_))).unwrap();
    let note = serde_json::to_string(note).unwrap();
    assert!(note.contains("The seam is") && note.contains("a thought"), "{note}");
}

#[tokio::test]
async fn a_shutdown_repeats_the_request_unchanged() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    let (agent, shown) = agent(FirstEnd::Hangs);
    let mut run = runtime.start(&agent, "Measure").await.unwrap();
    wait_for_text(&mut run).await;
    runtime.shutdown().await;
    let later = Runtime::new(store);
    let resumed = later.resume(run.session(), &agent).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), " 12 cm long.");
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown[0], shown[1]);
}
