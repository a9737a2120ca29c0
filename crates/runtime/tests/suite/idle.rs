//! Sessions between evaluations: follow-ups, pending messages, and late requests to cancel or pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Effect, EvaluationOutcome, InboxItem, InboxKind, PauseReason};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::rng::Seed;
use backstitch_core::time::Timestamp;
use backstitch_runtime::{
    Agent, DriveOutcome, Driver, FunctionPolicy, PointSpec, ResumeOptions, Runtime, RuntimeError,
    SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::tailor::{reply, scripted, with_keep};

/// An agent that answers with a number, and fails while `is_down` is set.
struct Counting {
    runtime: Runtime,
    is_down: Arc<AtomicBool>,
    driver: Driver,
}

impl Counting {
    async fn new() -> Self {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let (is_down, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let policy = FunctionPolicy::new(PolicyName::new("counting").unwrap(), {
            let is_down = is_down.clone();
            move |_| {
                let (is_down, number) =
                    (is_down.load(Ordering::SeqCst), asked.fetch_add(1, Ordering::SeqCst));
                async move {
                    if is_down {
                        Err("not now".into())
                    } else {
                        Ok(PolicyAnswer::text(format!("answer {number}")))
                    }
                }
            }
        });
        let agent = Agent::new("tests/counting").policy(Arc::new(policy));
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        Self { runtime, is_down, driver }
    }

    /// How every evaluation ended, in order.
    async fn outcomes(&self) -> Vec<Option<EvaluationOutcome>> {
        let view = self.runtime.view(self.driver.session().id()).await.unwrap();
        view.evaluations().map(|evaluation| evaluation.outcome()).collect()
    }

    /// The evaluation that is open now.
    async fn open(&self) -> Option<EvaluationId> {
        let view = self.runtime.view(self.driver.session().id()).await.unwrap();
        view.latest_evaluation().filter(|latest| latest.finished.is_none()).map(|latest| latest.evaluation_id)
    }

    async fn messages_waiting(&self) -> usize {
        let waiting = self.runtime.store().inbox(self.driver.session().id()).await.unwrap();
        waiting.iter().filter(|(_, item)| item.kind == InboxKind::Message).count()
    }

    async fn resume(&self) -> Result<DriveOutcome, RuntimeError> {
        self.driver.resume(ResumeOptions::default()).await
    }
}

#[tokio::test]
async fn a_message_to_an_idle_session_starts_the_next_evaluation_however_the_last_one_ended() {
    for ending in ["unasked", "completed", "failed", "cancelled", "rewound"] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let first = match ending {
            "failed" => reply("", &[("keep", json!({"text": "x"}))]),
            _ => reply("first", &[]),
        };
        let (agent, _) = with_keep(scripted(vec![first, reply("second", &[])]), Effect::Pure);
        let limited = agent.clone().max_turns(1);
        let driver = runtime.create(limited, SessionOptions::default()).await.unwrap();
        let session = driver.session().id();
        match ending {
            "unasked" => {}
            "cancelled" => {
                let evaluation = driver.begin("sew".into(), None).await.unwrap();
                runtime.cancel(session).await.unwrap();
                let options = ResumeOptions { evaluation: Some(evaluation), ..ResumeOptions::default() };
                assert!(matches!(driver.resume(options).await.unwrap(), DriveOutcome::Cancelled { .. }));
            }
            _ => {
                driver.start("sew").await.unwrap();
            }
        }
        if ending == "rewound" {
            driver.session().rewind(&PointSpec::Start, None).await.unwrap();
            assert!(matches!(
                driver.resume(ResumeOptions::default()).await,
                Err(RuntimeError::ConversationNotFound { .. })
            ));
        }
        runtime.send(session, "second?").await.unwrap();
        runtime.send(session, "please").await.unwrap();
        driver.session().release().await.unwrap();
        let driver = runtime.open(session, agent.max_turns(1), SessionOptions::default()).await.unwrap();
        let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert!(!answered.text.is_empty(), "{ending}");
        let view = runtime.view(session).await.unwrap();
        let latest = view.latest_evaluation().unwrap().evaluation_id;
        let said = view.transcript().unwrap().inner_messages(latest);
        let said: Vec<_> = said.iter().map(|message| message.content()).collect();
        assert_eq!(said[1..3], ["second?", "please"], "{ending}: {said:?}");
        assert!(runtime.store().inbox(session).await.unwrap().is_empty(), "{ending}");
        // After that it is the recorded answer.
        assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap(), answered);
    }
}

#[tokio::test]
async fn a_rewound_session_can_be_started_again_and_a_named_evaluation_is_resumed_alone() {
    let counting = Counting::new().await;
    let first = counting.driver.start("one").await.unwrap().answer().unwrap();
    counting.runtime.send(counting.driver.session().id(), "two").await.unwrap();
    let options = ResumeOptions { evaluation: Some(first.evaluation), ..ResumeOptions::default() };
    assert_eq!(counting.driver.resume(options).await.unwrap().answer().unwrap(), first);
    assert_eq!(counting.messages_waiting().await, 1);
    assert_eq!(counting.resume().await.unwrap().answer().unwrap().text, "answer 1");
    counting.driver.session().rewind(&PointSpec::Start, None).await.unwrap();
    assert_eq!(counting.driver.start("again").await.unwrap().answer().unwrap().text, "answer 2");
}

#[tokio::test]
async fn a_cancel_is_refused_when_nothing_is_open_and_an_old_one_without_an_evaluation_is_dropped() {
    let counting = Counting::new().await;
    let session = counting.driver.session().id();
    counting.driver.start("one").await.unwrap().answer().unwrap();
    assert!(matches!(counting.runtime.cancel(session).await, Err(RuntimeError::NothingToCancel { .. })));
    assert!(matches!(counting.runtime.pause(session).await, Err(RuntimeError::NothingToPause { .. })));
    // Items of an older version name no evaluation.
    for kind in [InboxKind::Cancel, InboxKind::Pause] {
        let item = InboxItem { kind, at: Timestamp::from_unix_micros(0).unwrap(), data: Value::Null };
        counting.runtime.store().send(session, item).await.unwrap();
    }
    counting.driver.start("two").await.unwrap().answer().unwrap();
    assert!(counting.runtime.store().inbox(session).await.unwrap().is_empty(), "both were removed");
    // Such an item applies to the evaluation that is open when it arrives.
    counting.is_down.store(true, Ordering::SeqCst);
    counting.driver.start("three").await.unwrap_err();
    let (kind, at) = (InboxKind::Cancel, Timestamp::from_unix_micros(0).unwrap());
    counting.runtime.store().send(session, InboxItem { kind, at, data: Value::Null }).await.unwrap();
    assert!(matches!(counting.resume().await.unwrap(), DriveOutcome::Cancelled { .. }));
}

/// The next step of a session of the property below.
#[derive(Debug, Clone, Copy)]
enum Step {
    Start {
        is_down: bool,
    },
    Resume {
        is_down: bool,
    },
    Send,
    /// A user requests to cancel or pause the evaluation that is open.
    Wish(InboxKindOf),
    /// The oldest such request is delivered, perhaps much later.
    Deliver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxKindOf {
    Cancel,
    Pause,
}

fn step(random: u64) -> Step {
    let is_down = random & 64 != 0;
    match random % 9 {
        0 | 1 => Step::Start { is_down },
        2 | 3 => Step::Resume { is_down },
        4 => Step::Send,
        5 => Step::Wish(InboxKindOf::Cancel),
        6 => Step::Wish(InboxKindOf::Pause),
        _ => Step::Deliver,
    }
}

/// For any order of starts, ends, messages and requests to cancel or pause: a request affects only the
/// evaluation that was open when it was made, and a resume that ends with an answer leaves no message
/// pending.
#[tokio::test]
async fn requests_affect_the_evaluation_they_were_made_for_and_every_message_is_answered() {
    let (mut cancelled, mut paused, mut answered) = (0, 0, 0);
    for seed in 0..60 {
        let counting = Counting::new().await;
        let session = counting.driver.session().id();
        let mut rng = Seed::new(seed).rng();
        // Requests that are not delivered yet; requests that are delivered but not granted yet.
        let (mut made, mut delivered) = (Vec::<(InboxKindOf, EvaluationId)>::new(), Vec::new());
        let mut steps = Vec::new();
        for _ in 0..25 {
            let step = step(rng.next_u64());
            steps.push(step);
            let open = counting.open().await;
            match step {
                Step::Send => {
                    counting.runtime.send(session, "more").await.unwrap();
                }
                Step::Wish(kind) => match open {
                    Some(evaluation) => made.push((kind, evaluation)),
                    None if kind == InboxKindOf::Cancel => {
                        counting.runtime.cancel(session).await.unwrap_err();
                    }
                    None => {
                        counting.runtime.pause(session).await.unwrap_err();
                    }
                },
                Step::Deliver if !made.is_empty() => {
                    let (kind, evaluation) = made.remove(0);
                    let word = if kind == InboxKindOf::Cancel { InboxKind::Cancel } else { InboxKind::Pause };
                    let at = Timestamp::from_unix_micros(0).unwrap();
                    let item = InboxItem::about(word, evaluation, at);
                    counting.runtime.store().send(session, item).await.unwrap();
                    delivered.push((kind, evaluation));
                }
                Step::Deliver => {}
                Step::Start { is_down } | Step::Resume { is_down } => {
                    counting.is_down.store(is_down, Ordering::SeqCst);
                    let before = counting.outcomes().await;
                    let is_start = matches!(step, Step::Start { .. });
                    let ended =
                        if is_start { counting.driver.start("go").await } else { counting.resume().await };
                    let wishes = delivered.clone();
                    let wants = |kind| open.is_some_and(|open| wishes.contains(&(kind, open)));
                    match &ended {
                        Err(RuntimeError::EvaluationOpen { .. }) => assert!(is_start && open.is_some()),
                        Err(RuntimeError::ConversationNotFound { .. }) => assert!(before.is_empty()),
                        Err(RuntimeError::Policy(_)) => assert!(is_down),
                        Ok(DriveOutcome::Cancelled { evaluation }) if open == Some(*evaluation) => {
                            assert!(wants(InboxKindOf::Cancel), "{seed}: {steps:?}");
                            cancelled += 1;
                        }
                        // The recorded outcome of an earlier step.
                        Ok(DriveOutcome::Cancelled { .. }) => {
                            assert_eq!(before.last(), Some(&Some(EvaluationOutcome::Cancelled)))
                        }
                        Ok(DriveOutcome::Paused { reason, evaluation, .. }) => {
                            assert_eq!((*reason, Some(*evaluation)), (PauseReason::Asked, open));
                            assert!(wants(InboxKindOf::Pause), "{seed}: {steps:?}");
                            delivered.retain(|wish| *wish != (InboxKindOf::Pause, *evaluation));
                            paused += 1;
                        }
                        Ok(DriveOutcome::Completed(_)) => {
                            assert!(!wants(InboxKindOf::Cancel) || is_start, "{seed}: {steps:?}");
                            answered += 1;
                            if !is_start {
                                assert_eq!(counting.messages_waiting().await, 0, "{seed}: {steps:?}");
                            }
                        }
                        other => panic!("{seed}: {steps:?}: {other:?}"),
                    }
                    // A cancellation that was delivered in time is granted by the next driver of the
                    // evaluation.
                    if !is_start && wants(InboxKindOf::Cancel) {
                        assert!(
                            matches!(ended, Ok(DriveOutcome::Cancelled { .. })),
                            "{seed}: {steps:?}: {ended:?}"
                        );
                    }
                    // Evaluations that had ended before do not change.
                    let after = counting.outcomes().await;
                    let settled = before.iter().zip(&after).filter(|(before, _)| before.is_some());
                    assert!(settled.clone().all(|(before, after)| before == after), "{seed}: {steps:?}");
                }
            }
        }
    }
    assert!(cancelled > 5 && paused > 5 && answered > 50, "{cancelled} {paused} {answered}");
}
