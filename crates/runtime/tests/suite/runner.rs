//! The tool runner over session state: what is committed, what is rolled back, what the model sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::journal::{CallVerdict, Effect, EvaluationResumed, PauseReason, RecordBody};
use backstitch_core::message::Arguments;
use backstitch_core::ports::Store;
use backstitch_core::slices::ToolInvoked;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_core::view::CallStatus;
use backstitch_runtime::{CallOutcome, LiveSession, ToolRunner, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::findings::{Diagnosis, Finding};
use crate::harness::Harness;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

fn note(context: &ToolContext, text: &str) -> Result<(), ToolError> {
    context.session(|draft| {
        draft.append(Finding(text.to_owned()))?;
        draft.append(Diagnosis(format!("noted {text}")))?;
        Ok::<_, ToolError>(())
    })?
}

fn tool(name: &str, run: impl Fn(ToolContext, Note) -> Run + Send + Sync + 'static) -> Tool {
    Tool::builder(name, "Takes a note.")
        .unwrap()
        .effect(Effect::Workspace)
        .workspace(WorkspaceUse::None)
        .timeout(Duration::from_millis(if name == "timeout" { 400 } else { 300_000 }))
        .handler(run)
}

type Run = std::pin::Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send>>;

fn good() -> Tool {
    tool("good", |context, Note { text }| {
        Box::pin(async move {
            note(&context, &text)?;
            Ok(ToolResult::ok("noted").with_value(json!({"length": text.len()}))?)
        })
    })
}

fn error_of(end: &CallOutcome) -> (String, String, bool) {
    let result = end.message().unwrap().message.option_result().unwrap();
    assert!(result.is_error);
    let (kind, message) = (result.error_type.clone().unwrap(), result.error_message.clone().unwrap());
    (kind, message, result.retryable.unwrap())
}

#[tokio::test]
async fn the_changes_of_a_successful_call_are_committed() {
    let harness = Harness::new(vec![good()]).await;
    let end = harness.run("good", json!({"text": "seam"})).await;
    let CallOutcome::Succeeded(message) = &end else { panic!("{end:?}") };
    let result = message.message.option_result().unwrap();
    assert_eq!(result.result.inline(), Some(&json!({"message": "noted", "value": {"length": 4}})));
    assert_eq!(message.message.policy.as_str(), "good");
    assert_eq!(harness.findings().await, ["seam"]);
    assert_eq!(harness.diagnoses().await, ["noted seam"]);
    let state = harness.live.state().await;
    let checkpoints = harness.live.checkpoints().await.unwrap();
    let checkpoint = checkpoints.list_checkpoints().next().unwrap();
    assert!(checkpoint.success && checkpoint.post_snapshot.is_some());
    assert_eq!(checkpoint.pre_snapshot.session.all::<Finding>().unwrap().len(), 0);
    assert_eq!(state.view.calls().next().unwrap().status(), CallStatus::Completed);
    assert_eq!(state.session.all::<ToolInvoked>().unwrap().len(), 1);
}

#[tokio::test]
async fn the_intent_is_in_the_journal_before_the_handler_runs() {
    let store = Arc::new(backstitch_store::MemoryStore::new());
    let seen = store.clone();
    let spy = Tool::builder("spy", "Looks into the journal.").unwrap().workspace(WorkspaceUse::None).handler(
        move |context: ToolContext, (): ()| {
            let store = seen.clone();
            async move {
                let records =
                    store.read(context.session_id(), backstitch_core::journal::Position::START, 100).await?;
                let started = records.iter().any(|record| match &record.body {
                    RecordBody::CallStarted(started) => started.call_id == context.call_id(),
                    _ => false,
                });
                Ok(ToolResult::ok(format!("started: {started}")))
            }
        },
    );
    let harness = Harness::over(store, vec![spy], None).await;
    let end = harness.run("spy", json!({})).await;
    let message = end.message().unwrap();
    assert_eq!(message.content(), "started: true");
}

/// Every failure restores `State` slices, keeps logs, and adds an error to the transcript.
#[tokio::test]
async fn the_changes_of_a_failed_call_are_rolled_back() {
    let failing: Vec<(&str, &str, bool, Tool)> = vec![
        (
            "error",
            "tool_failed",
            false,
            tool("error", |context, Note { text }| {
                Box::pin(async move {
                    note(&context, &text)?;
                    Err(ToolError::new("no thread left"))
                })
            }),
        ),
        (
            "unsuccessful",
            "tool_failed",
            false,
            tool("unsuccessful", |context, Note { text }| {
                Box::pin(async move {
                    note(&context, &text)?;
                    Ok(ToolResult::failed("it did not hold"))
                })
            }),
        ),
        (
            "panic",
            "panic",
            false,
            tool("panic", |context, Note { text }| {
                Box::pin(async move {
                    note(&context, &text)?;
                    panic!("the needle broke")
                })
            }),
        ),
        (
            "timeout",
            "timeout",
            true,
            tool("timeout", |context, Note { text }| {
                Box::pin(async move {
                    note(&context, &text)?;
                    std::future::pending().await
                })
            }),
        ),
        (
            "validation",
            "validation",
            true,
            tool("validation", |context, Note { text }| {
                Box::pin(async move {
                    note(&context, &text)?;
                    Err(ToolError::Validation { message: "too short".into() })
                })
            }),
        ),
    ];
    for (name, kind, retryable, failing) in failing {
        let harness = Harness::new(vec![good(), failing]).await;
        harness.run("good", json!({"text": "before"})).await;
        let before = harness.live.state().await.session.snapshot().content_digest().unwrap();
        let messages = harness.live.state().await.view.transcript().unwrap().all().len();
        let end = harness.run(name, json!({"text": "during"})).await;
        let (found, message, retry) = error_of(&end);
        assert_eq!((found.as_str(), retry), (kind, retryable), "{name}: {message}");
        assert_eq!(harness.findings().await, ["before"], "{name}");
        assert_eq!(harness.diagnoses().await, ["noted before", "noted during"], "{name}");
        let state = harness.live.state().await;
        assert_eq!(
            state.view.transcript().unwrap().all().len(),
            messages + 2,
            "{name}: the call and its error"
        );
        assert_ne!(state.session.snapshot().content_digest().unwrap(), before, "the transcript grew");
        let call = state.view.calls().next_back().unwrap();
        assert_eq!(call.status(), CallStatus::Failed, "{name}");
        assert_eq!(call.finished.as_ref().unwrap().record.outcome, CallVerdict::Failed);
        let checkpoints = harness.live.checkpoints().await.unwrap();
        let checkpoint = checkpoints.list_checkpoints().next_back().unwrap();
        assert!(!checkpoint.success && checkpoint.post_snapshot.is_none(), "{name}");
    }
}

#[tokio::test]
async fn calls_with_invalid_arguments_never_run() {
    let harness = Harness::new(vec![good()]).await;
    for (name, arguments, kind) in
        [("good", json!({"txet": "x"}), "invalid_arguments"), ("goood", json!({}), "unknown_tool")]
    {
        let end = harness.run(name, arguments).await;
        let (found, message, _) = error_of(&end);
        assert_eq!(found, kind);
        assert!(message.contains("good"), "{message}");
        assert_eq!(end.message().unwrap().message.policy.as_str(), "runtime");
        let state = harness.live.state().await;
        assert!(state.view.calls().next_back().unwrap().intent.is_none());
    }
    assert!(harness.findings().await.is_empty());
}

#[tokio::test]
async fn a_cancelled_call_is_rolled_back_and_pauses_the_session() {
    let slow = tool("slow", |context, Note { text }| {
        Box::pin(async move {
            note(&context, &text)?;
            context.cancelled().await;
            // Too late: the context is revoked, so this has no effect.
            let late = note(&context, "late");
            assert!(matches!(late, Err(ToolError::Revoked)));
            Ok(ToolResult::ok("done"))
        })
    });
    let harness = Harness::new(vec![slow.clone()]).await;
    let cancel = CancellationToken::new();
    let runner =
        ToolRunner::new(harness.live.clone(), Tools::new([slow]).unwrap()).with_cancellation(cancel.clone());
    let call = harness.call("slow", json!({"text": "x"})).await;
    let id = call.call_id;
    let running = tokio::spawn(async move { runner.run(call).await });
    while harness.live.state().await.view.call(id).unwrap().intent.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cancel.cancel();
    let end = running.await.unwrap().unwrap();
    assert!(matches!(end, CallOutcome::Cancelled(_)), "{end:?}");
    assert!(harness.findings().await.is_empty());
    let state = harness.live.state().await;
    assert_eq!(state.view.pause().unwrap().reason, PauseReason::Asked);
}

#[tokio::test]
async fn a_handler_that_does_not_end_poisons_the_session() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    let stuck = tool("stuck", move |_, _| {
        let (released, cancelled) = (released.clone(), cancelled.clone());
        Box::pin(async move {
            cancelled.cancel();
            // Blocks its thread until the grace period is over, so that it cannot be stopped.
            let _ = released.lock().unwrap().recv();
            Ok(ToolResult::ok("late"))
        })
    });
    let harness = Harness::new(vec![]).await;
    let call = harness.call("stuck", json!({"text": "x"})).await;
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([stuck]).unwrap());
    let runner = runner.with_grace(Duration::from_millis(300)).with_cancellation(cancel);
    let error = tokio::task::spawn_blocking(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let error = runtime.block_on(runner.run(call)).unwrap_err();
        // Dropping the async runtime waits for its threads.
        drop(release);
        error
    })
    .await
    .unwrap();
    assert!(error.to_string().contains("poisoned"), "{error}");
    let state = harness.live.state().await;
    assert_eq!(state.view.pause().unwrap().reason, PauseReason::Poisoned);
}

#[tokio::test]
async fn approval_pauses_before_anything_starts() {
    let guarded = Tool::builder("guarded", "Needs approval.")
        .unwrap()
        .workspace(WorkspaceUse::None)
        .needs_approval()
        .handler(|_: ToolContext, (): ()| async { Ok(ToolResult::ok("done")) });
    let harness = Harness::new(vec![guarded]).await;
    let mut call = harness.call("guarded", json!({})).await;
    assert!(matches!(harness.runner.run(call.clone()).await.unwrap(), CallOutcome::NeedsApproval));
    assert_eq!(harness.live.state().await.view.pause().unwrap().reason, PauseReason::Approval);
    assert!(harness.live.state().await.view.call(call.call_id).unwrap().intent.is_none());
    call.approved = true;
    assert!(matches!(harness.runner.run(call).await.unwrap(), CallOutcome::Succeeded(_)));
}

#[tokio::test]
async fn observers_and_readers_run_after_the_commit_and_cannot_undo_it() {
    let store = Arc::new(backstitch_store::MemoryStore::new());
    let clock = Arc::new(backstitch_core::time::FixedClock::default());
    let (sender, receiver) = std::sync::mpsc::channel();
    let harness = Harness::with(store, clock, Default::default(), [good()], None, move |session| {
        session.observe::<ToolInvoked>(|_| panic!("a broken observer"));
        session.observe::<ToolInvoked>(move |observation| {
            sender.send(observation.new.len()).unwrap();
            Ok(())
        });
    })
    .await;
    let mut events = harness.live.events();
    let call = harness.call("good", json!({"text": "seam"})).await;
    assert!(matches!(harness.runner.run(call).await.unwrap(), CallOutcome::Succeeded(_)));
    assert_eq!(harness.findings().await, ["seam"]);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1]);
    let mut finished = 0;
    while let Some(event) = events.ready().await.unwrap() {
        let body = event.record().map(|record| &record.body);
        finished += usize::from(matches!(body, Some(RecordBody::CallFinished(_))));
    }
    assert_eq!(finished, 1);
}

#[tokio::test]
async fn concurrent_calls_lose_nothing() {
    let slow = tool("slow", |context, Note { text }| {
        Box::pin(async move {
            note(&context, &text)?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(ToolResult::ok("noted"))
        })
    });
    let harness = Harness::new(vec![slow]).await;
    let mut calls = Vec::new();
    for number in 0..8 {
        calls.push(harness.call("slow", json!({"text": number.to_string()})).await);
    }
    let ends = harness.run_all(calls).await;
    assert!(ends.iter().all(|end| matches!(end, CallOutcome::Succeeded(_))));
    let mut findings = harness.findings().await;
    findings.sort();
    assert_eq!(findings, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[tokio::test]
async fn a_call_that_overwrites_what_another_changed_runs_again() {
    static LIVE: OnceLock<Arc<LiveSession>> = OnceLock::new();
    static HAS_READ: AtomicBool = AtomicBool::new(false);
    const MOMENT: Duration = Duration::from_millis(1);
    let appending = tool("appending", |context, Note { text }| {
        Box::pin(async move {
            while !HAS_READ.load(Ordering::SeqCst) {
                tokio::time::sleep(MOMENT).await;
            }
            note(&context, &text)?;
            Ok(ToolResult::ok("noted"))
        })
    });
    let seeding = tool("seeding", |context, Note { text }| {
        Box::pin(async move {
            let count = context.session(|draft| draft.all::<Finding>())??.len();
            HAS_READ.store(true, Ordering::SeqCst);
            // The other call has committed.
            while LIVE.get().unwrap().state().await.session.all::<Finding>().unwrap().is_empty() {
                tokio::time::sleep(MOMENT).await;
            }
            context.session(|draft| draft.seed([Finding(format!("{text} after {count}"))]).map(|_| ()))??;
            Ok(ToolResult::ok("seeded"))
        })
    });
    let harness = Harness::new(vec![appending, seeding]).await;
    LIVE.set(harness.live.clone()).unwrap_or_else(|_| panic!("it is set once"));
    let calls = vec![
        harness.call("seeding", json!({"text": "all"})).await,
        harness.call("appending", json!({"text": "one"})).await,
    ];
    let ends = harness.run_all(calls).await;
    assert!(ends.iter().all(|end| matches!(end, CallOutcome::Succeeded(_))), "{ends:?}");
    assert_eq!(harness.findings().await, ["all after 1"]);
    let state = harness.live.state().await;
    let seeding = state.view.calls().find(|call| call.name == "seeding").unwrap();
    assert_eq!(seeding.intent.as_ref().unwrap().record.attempt, 2);
}

#[tokio::test]
async fn a_step_runs_once() {
    let stepping = Tool::builder("stepping", "Sends a letter.")
        .unwrap()
        .workspace(WorkspaceUse::None)
        .handler(|context: ToolContext, (): ()| async move {
            let mut sent = 0;
            for _ in 0..3 {
                let number: u64 = context
                    .step("letter", async {
                        sent += 1;
                        Ok(41 + sent)
                    })
                    .await?;
                assert_eq!(number, 42);
            }
            Ok(ToolResult::ok(format!("sent {sent}")))
        });
    let harness = Harness::new(vec![stepping]).await;
    let end = harness.run("stepping", json!({})).await;
    assert_eq!(end.message().unwrap().content(), "sent 1");
}

#[tokio::test]
async fn a_step_whose_value_json_would_change_is_refused() {
    let measuring = Tool::builder("measuring", "Measures.").unwrap().workspace(WorkspaceUse::None).handler(
        |context: ToolContext, (): ()| async move {
            let mean: f64 = context.step("mean", async { Ok(f64::NAN) }).await?;
            Ok(ToolResult::ok(format!("{mean}")))
        },
    );
    let harness = Harness::new(vec![measuring]).await;
    let end = harness.run("measuring", json!({})).await;
    let CallOutcome::Failed(message) = end else { panic!("it was recorded as something else: {end:?}") };
    assert!(message.content().contains("mean"), "{}", message.content());
}

#[tokio::test]
async fn a_tool_can_read_the_remaining_budget() {
    let asking = Tool::builder("asking", "Asks.").unwrap().workspace(WorkspaceUse::None).handler(
        |context: ToolContext, (): ()| async move {
            let left = context.budget_left().await.and_then(|left| left.calls);
            Ok(ToolResult::ok(format!("{left:?}")))
        },
    );
    let harness = Harness::new(vec![asking]).await;
    let end = harness.run("asking", json!({})).await;
    assert_eq!(end.message().unwrap().content(), "None", "without a budget nothing is limited");
    let resumed = EvaluationResumed {
        budget: Some(Limits { calls: Some(3), ..Limits::default() }),
        ..EvaluationResumed::new(harness.evaluation)
    };
    harness.live.record(vec![resumed.into()]).await.unwrap();
    // One call is reserved for the running call itself.
    for left in ["Some(2)", "Some(1)", "Some(0)"] {
        let end = harness.run("asking", json!({})).await;
        assert_eq!(end.message().unwrap().content(), left);
    }
    assert!(matches!(harness.run("asking", json!({})).await, CallOutcome::BudgetExhausted));
}

#[tokio::test]
async fn arguments_that_a_person_edited_are_part_of_the_intent() {
    let harness = Harness::new(vec![good()]).await;
    let call = harness.call("good", json!({"text": "hem"})).await;
    let plain = call.call_id;
    harness.runner.run(call).await.unwrap();
    let mut call = harness.call("good", json!({"text": "hem"})).await;
    call.arguments = Arguments::from_object(json!({"text": "seam"}).as_object().cloned().unwrap());
    call.edited = true;
    let edited = call.call_id;
    harness.runner.run(call).await.unwrap();
    assert_eq!(harness.findings().await, ["hem", "seam"]);
    let state = harness.live.state().await;
    let arguments = |call| state.view.call(call).unwrap().intent.as_ref().unwrap().record.arguments.clone();
    assert_eq!(arguments(plain), None, "they are in the message");
    assert_eq!(arguments(edited).unwrap().inline().unwrap()["text"], "seam");
}
