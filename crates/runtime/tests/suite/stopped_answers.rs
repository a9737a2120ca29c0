//! Answers that did not come to their end: what was said is kept, charged, and shown again if a person stopped it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Effect, Finish, PauseReason, RecordBody, Role};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{
    BoxFuture, Delta, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo,
};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_repl::LispAgent;
use backstitch_runtime::{
    Agent, Backoff, DriveOutcome, FunctionPolicy, KeptAttempt, LiveKind, ResumeOptions, Run, Runtime,
    SessionOptions, SubAgent, Tools, load_kept_attempts,
};
use backstitch_store::MemoryStore;
use serde_json::{Map, json};

use crate::counting::CountingStore;

/// Largest possible cost of a request.
const ESTIMATE: Amounts = Amounts { input_tokens: 100, output_tokens: 10, ..Amounts::ZERO };

/// The estimated cost of what comes of the first answer: 20 bytes, four to a token.
const ARRIVED: Amounts = Amounts { input_tokens: 100, output_tokens: 5, ..Amounts::ZERO };

/// How the first answer ends.
#[derive(Clone)]
enum FirstEnd {
    Hangs,
    Drops,
    /// It drops once the store has saved, or refused to save, its beginning.
    DropsOnceSaved(Arc<CountingStore>),
    /// It drops while the store saves its beginning.
    DropsWhileSaved(Arc<CountingStore>),
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
            if count == 2 && !question.options.is_empty() {
                let nothing = Arguments::from_object(Map::new());
                return Ok(PolicyAnswer::default().call("measure", nothing));
            }
            if count > 1 {
                return Ok(PolicyAnswer::text(" 12 cm long."));
            }
            question.deltas.emit(Delta::Reasoning("a thought".to_owned()));
            question.deltas.emit(Delta::Text("The seam ".to_owned()));
            if let FirstEnd::DropsOnceSaved(store) = &self.first {
                store.wait_for_unsynced(1).await;
            }
            if let FirstEnd::DropsWhileSaved(store) = &self.first {
                store.stall();
                store.wait_for_unsynced(1).await;
                let store = store.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    store.unstall();
                });
            }
            question.deltas.emit(Delta::Text("is".to_owned()));
            if matches!(self.first, FirstEnd::Hangs) {
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
    assert_eq!((spent.input_tokens, spent.output_tokens), (100, 5));

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
async fn a_lisp_agent_sees_what_it_said_before_it_was_stopped_and_nothing_of_it_runs() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let shown = Shown::default();
    let requests = shown.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question: PolicyRequest| {
        let texts = question.shown.iter().map(|message| message.content()).collect();
        let mut requests = requests.lock().unwrap();
        requests.push(texts);
        let is_first = requests.len() == 1;
        async move {
            if is_first {
                let program = "```clojure\n(return {:cm 1})\n```\nThe seam ";
                question.deltas.emit(Delta::Text(program.to_owned()));
                question.deltas.emit(Delta::Text("is".to_owned()));
                std::future::pending::<()>().await;
            }
            Ok(PolicyAnswer::text("```clojure\n(return {:cm 12})\n```"))
        }
    });
    let agent = Agent::lisp("tests/lisp", Arc::new(policy), LispAgent::new(), Tools::default()).unwrap();
    let mut run = runtime.start(&agent, "Measure").await.unwrap();
    wait_for_text(&mut run).await;
    run.pause();
    run.outcome().await.unwrap();
    let resumed = runtime.resume(run.session(), &agent).await.unwrap();
    let answer = resumed.outcome().await.unwrap().answer().unwrap();
    assert_eq!(answer.output, Some(json!({"cm": 12})));
    let shown = shown.lock().unwrap().clone();
    let again = shown.last().unwrap().join("\n");
    assert!(again.contains("The seam is") && again.contains("interrupted this answer"), "{again}");
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
    assert_eq!(failed, Some(ARRIVED));
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

/// Returns what is kept of the attempts of all requests.
async fn load_kept(runtime: &Runtime, session: SessionId) -> Vec<KeptAttempt> {
    let view = runtime.view(session).await.unwrap();
    let mut all = Vec::new();
    for request in view.evaluations().flat_map(|evaluation| &evaluation.requests) {
        all.extend(load_kept_attempts(&**runtime.store(), request.started.point).await.unwrap());
    }
    all
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_saved_in_pieces_while_it_arrives() {
    let store = Arc::new(CountingStore::default());
    let runtime = Runtime::new(store.clone());
    let (agent, shown) = agent(FirstEnd::DropsOnceSaved(store));
    let run = runtime.start(&agent, "Measure").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), " 12 cm long.");
    let records = runtime.records(run.session()).await.unwrap();
    let notes = records.iter().filter(|record| matches!(&record.body, RecordBody::Note(_)));
    let notes: Vec<String> = notes.map(|record| serde_json::to_string(record).unwrap()).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("The seam ") && notes[1].contains("\"is\""), "{notes:?}");
    let expected = KeptAttempt {
        turn: 1,
        attempt: 1,
        text: "The seam is".to_owned(),
        reasoning: "a thought".to_owned(),
        calls: String::new(),
    };
    assert_eq!(load_kept(&runtime, run.session()).await, [expected]);
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown[0], shown[1], "nothing of it is sent");
}

#[tokio::test(start_paused = true)]
async fn a_save_that_fails_does_not_fail_the_run() {
    let store = Arc::new(CountingStore::default());
    store.refuse_unsynced();
    let runtime = Runtime::new(store.clone());
    let (agent, _) = agent(FirstEnd::DropsOnceSaved(store));
    let run = runtime.start(&agent, "Measure").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), " 12 cm long.");
    // What could not be saved is recorded with the failed attempt.
    let kept = load_kept(&runtime, run.session()).await;
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].text.as_str(), kept[0].reasoning.as_str()), ("The seam is", "a thought"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_being_saved_when_it_drops_is_kept_once() {
    for is_refused in [false, true] {
        let store = Arc::new(CountingStore::default());
        if is_refused {
            store.refuse_unsynced();
        }
        let runtime = Runtime::new(store.clone());
        let (agent, _) = agent(FirstEnd::DropsWhileSaved(store));
        let run = runtime.start(&agent, "Measure").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), " 12 cm long.");
        let kept = load_kept(&runtime, run.session()).await;
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].text.as_str(), kept[0].reasoning.as_str()), ("The seam is", "a thought"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_and_charged_when_its_time_is_up() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, shown) = agent(FirstEnd::Hangs);
    let agent = agent.deadline(Duration::from_secs(20));
    let run = runtime.start(&agent, "Measure").await.unwrap();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. }), "{ended:?}");
    assert_eq!(load_kept(&runtime, run.session()).await[0].text, "The seam is");
    let view = runtime.view(run.session()).await.unwrap();
    assert_eq!(view.ledger().charged(), ARRIVED);
    assert_eq!(view.ledger().reserved(), Amounts::ZERO, "the cost takes the place of the reservation");
    assert_eq!(view.messages(0..view.message_count()).unwrap().last().unwrap().role(), Role::User);
    assert_eq!(shown.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dropped_answer_that_is_not_retried_is_charged_once() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) = agent(FirstEnd::Drops);
    let agent = agent.backoff(Backoff { retries: 0, ..Backoff::default() });
    let run = runtime.start(&agent, "Measure").await.unwrap();
    assert!(run.outcome().await.is_err());
    let view = runtime.view(run.session()).await.unwrap();
    assert_eq!((view.ledger().charged(), view.ledger().reserved()), (ARRIVED, Amounts::ZERO));
    let resumed = runtime.resume(run.session(), &agent).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), " 12 cm long.");
}

#[tokio::test]
async fn a_dropped_answer_does_not_use_up_a_small_budget() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, _) = agent(FirstEnd::Drops);
    let measure =
        Tool::builder("measure", "Measures.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    let measure = measure.handler(|_, (): ()| async { Ok(ToolResult::ok("12 cm")) });
    // Twice the largest cost of a request would not fit.
    let limits = Limits { total_tokens: Some(220), ..Limits::default() };
    let agent = agent.tools([measure]).budget(limits);
    let run = runtime.start(&agent, "Measure").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), " 12 cm long.");
}

#[tokio::test]
async fn a_dropped_answer_is_not_retried_beyond_the_budget() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (agent, shown) = agent(FirstEnd::Drops);
    // What arrived costs 105 tokens, and another attempt may cost 110.
    let limits = Limits { total_tokens: Some(214), ..Limits::default() };
    let run = runtime.start(&agent.clone().budget(limits), "Measure").await.unwrap();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Budget, .. }), "{ended:?}");
    assert_eq!(shown.lock().unwrap().len(), 1);
    let view = runtime.view(run.session()).await.unwrap();
    assert_eq!((view.ledger().charged(), view.ledger().reserved()), (ARRIVED, Amounts::ZERO));
    assert_eq!(load_kept(&runtime, run.session()).await[0].text, "The seam is");
    let more = Limits { total_tokens: Some(300), ..Limits::default() };
    let resume = ResumeOptions { budget: Some(more), ..ResumeOptions::default() };
    let options = SessionOptions::default();
    let resumed = runtime.resume_with(run.session(), &agent, resume, options).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), " 12 cm long.");
}

#[tokio::test]
async fn a_shutdown_repeats_the_request_of_a_sub_agent_unchanged() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    let (helper, shown) = agent(FirstEnd::Hangs);
    let helper = SubAgent::new("helper", "Measures.", helper).unwrap();
    let policy =
        FunctionPolicy::new(PolicyName::new("master").unwrap(), |question: PolicyRequest| async move {
            Ok(match question.turn {
                1 => {
                    let mission = Map::from_iter([("mission".to_owned(), json!("Measure"))]);
                    PolicyAnswer::default().call("helper", Arguments::from_object(mission))
                }
                _ => PolicyAnswer::text("measured"),
            })
        });
    let agent = Agent::new("tests/master").policy(Arc::new(policy)).tools([helper]);
    let mut run = runtime.start(&agent, "Measure").await.unwrap();
    wait_for_text(&mut run).await;
    runtime.shutdown().await;
    let later = Runtime::new(store);
    let resumed = later.resume(run.session(), &agent).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), "measured");
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], shown[1]);
}
