//! The commit of a call: what can fail it, what no longer can, and where its parts are recorded.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstitch_core::execution::{PreparedRestore, ResourceScope, ResourceSnapshot, Resources, Snapshotable};
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{CallVerdict, Effect, RecordBody};
use backstitch_core::message::Arguments;
use backstitch_core::session::{BoxError, Slice};
use backstitch_core::slices::ToolInvoked;
use backstitch_core::time::{Clock, FixedClock, Timestamp};
use backstitch_core::tool::{Tool, ToolBuilder, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    CallOutcome, CallRequest, EventStream, RuntimeError, SessionEvent, ToolRunner, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::findings::Finding;
use crate::harness::Harness;

fn builder(name: &str) -> ToolBuilder {
    let builder = Tool::builder(name, "Takes a note.").unwrap();
    builder.effect(Effect::Workspace).workspace(WorkspaceUse::None)
}

fn note(context: &ToolContext, text: &str) -> Result<(), ToolError> {
    Ok(context.session(|draft| draft.append(Finding(text.to_owned())).map(drop))??)
}

fn noting() -> Tool {
    builder("noting").handler(|context: ToolContext, (): ()| async move {
        note(&context, "noted")?;
        Ok(ToolResult::ok("noted"))
    })
}

/// A clock that advances by a microsecond with each reading.
#[derive(Debug, Default)]
pub(crate) struct MovingClock(AtomicI64);

impl Clock for MovingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_micros(self.0.fetch_add(1, Ordering::SeqCst)).unwrap()
    }

    fn monotonic(&self) -> Duration {
        self.now().since(Timestamp::UNIX_EPOCH)
    }
}

/// The invocations that readers of the events have seen.
async fn published(mut events: EventStream) -> Vec<ToolInvoked> {
    let mut published = Vec::new();
    while let Some(event) = events.ready().await.unwrap() {
        if let SessionEvent::Record(record) = event
            && let RecordBody::SliceChanged(change) = &record.body
        {
            published.extend(change.appended::<ToolInvoked>());
        }
    }
    published
}

#[tokio::test]
async fn what_is_recorded_and_what_is_published_of_a_call_is_one_event() {
    let failing = builder("failing")
        .handler(|_: ToolContext, (): ()| async { Err::<ToolResult, _>(ToolError::new("no")) });
    let tools = Tools::new([noting(), failing]).unwrap();
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(MovingClock::default()));
    let harness = Harness::with(store, clock, Resources::default(), [], None, |_| {}).await;
    let events = harness.live.events();
    let runner = ToolRunner::new(harness.live.clone(), tools);
    for (name, arguments) in [
        ("noting", json!({})),
        ("failing", json!({})),
        ("noting", json!({"unknown": 1})),
        ("unheard_of", json!({})),
    ] {
        let call = harness.call(name, arguments).await;
        runner.run(call).await.unwrap();
    }
    let state = harness.live.state().await;
    let recorded: Vec<_> =
        state.session.all::<ToolInvoked>().unwrap().iter().map(|one| (**one).clone()).collect();
    assert_eq!(recorded.len(), 4);
    harness.live.flush().await.unwrap();
    assert_eq!(published(events).await, recorded);
}

/// A resource that can be captured a limited number of times.
struct Brittle(AtomicUsize);

impl Snapshotable for Brittle {
    fn snapshot_name(&self) -> &'static str {
        "brittle"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Ok(ResourceSnapshot::Stored(Value::Null)),
            Err(_) => Err("it is used up".into()),
        }
    }

    fn prepare_restore(&self, _: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        Ok(PreparedRestore::new(|_: &mut Self| Ok(())))
    }
}

/// A resource of the session that a call creates.
struct Handle;

fn brittle(captures: usize, closed: Arc<AtomicUsize>) -> Resources {
    let builder = Resources::builder().with_snapshotable(Brittle(AtomicUsize::new(captures)));
    let close = move |_: &Handle| {
        closed.fetch_add(1, Ordering::SeqCst);
    };
    builder.with_closing_maker(ResourceScope::Session, |_| Ok(Arc::new(Handle)), close).build().unwrap()
}

#[tokio::test]
async fn nothing_after_the_commit_turns_a_call_into_an_error() {
    let using = builder("using").handler(|context: ToolContext, (): ()| async move {
        context.resource::<Handle>()?.unwrap();
        note(&context, "used")?;
        Ok(ToolResult::ok("used"))
    });
    let closed: Arc<AtomicUsize> = Arc::default();
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(FixedClock::default()));
    let harness = Harness::with(store, clock, brittle(1, closed.clone()), [], None, |_| {}).await;
    let events = harness.live.events();
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([using]).unwrap());
    let call = harness.call("using", json!({})).await;
    let end = runner.run(call).await.unwrap();
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert_eq!(harness.findings().await, ["used"]);
    assert_eq!(published(events).await.len(), 1);
    assert_eq!(closed.load(Ordering::SeqCst), 0, "the session's resource stays open");
}

#[tokio::test]
async fn an_error_of_the_runtime_in_one_call_hides_no_sibling() {
    let harness = Harness::new(vec![noting()]).await;
    let good = harness.call("noting", json!({})).await;
    let (ids, arguments) = (
        backstitch_core::id::IdStream::from_seed([9; 32], harness.live.clock().clone()),
        Arguments::from_object(serde_json::Map::new()),
    );
    // Its evaluation does not exist.
    let astray = CallRequest::new(ids.next(), ids.next::<EvaluationId>(), "noting", arguments);
    let later = harness.call("noting", json!({})).await;
    let ends = harness.runner.run_all(vec![good, astray, later]).await;
    assert!(matches!(ends[0], Ok(CallOutcome::Succeeded(_))), "{ends:?}");
    assert!(matches!(ends[1], Err(RuntimeError::NoEvaluation { .. })), "{ends:?}");
    assert!(matches!(ends[2], Ok(CallOutcome::Succeeded(_))), "{ends:?}");
    assert_eq!(harness.findings().await.len(), 2);
}

#[tokio::test]
async fn an_event_of_a_result_is_part_of_the_call() {
    let giving = builder("giving").handler(|_: ToolContext, (): ()| async {
        Ok(ToolResult::ok("found one").with_event(Finding("given".into())))
    });
    let failing = builder("failing").handler(|_: ToolContext, (): ()| async {
        Ok(ToolResult::failed("found none").with_event(Finding("lost".into())))
    });
    let harness = Harness::new(vec![giving, failing]).await;
    assert!(matches!(harness.run("failing", json!({})).await, CallOutcome::Failed(_)));
    assert!(harness.findings().await.is_empty());
    assert!(matches!(harness.run("giving", json!({})).await, CallOutcome::Succeeded(_)));
    assert_eq!(harness.findings().await, ["given"]);
}

#[tokio::test]
async fn a_value_that_is_kept_from_the_model_is_recorded_all_the_same() {
    let hiding = builder("hiding").handler(|_: ToolContext, (): ()| async {
        Ok(ToolResult::ok("measured").with_value(json!({"points": [1, 2, 3]}))?.exclude_value_from_context())
    });
    let harness = Harness::new(vec![hiding]).await;
    let end = harness.run("hiding", json!({})).await;
    let message = end.message().unwrap();
    assert_eq!(message.content(), "measured");
    let result = message.message.option_result().unwrap();
    assert_eq!(result.result.inline(), Some(&json!("measured")));
    let recorded = serde_json::to_value(result).unwrap();
    assert_eq!(recorded["value_not_in_context"], json!({"points": [1, 2, 3]}));
}

#[tokio::test]
async fn a_deadline_that_passes_inside_a_call_rolls_it_back() {
    let slow = builder("slow").handler(|context: ToolContext, (): ()| async move {
        note(&context, "half done")?;
        std::future::pending::<()>().await;
        Ok(ToolResult::ok("late"))
    });
    // A handler that checks the remaining time, and has none.
    let careful = builder("careful").handler(|context: ToolContext, (): ()| async move {
        note(&context, "half done")?;
        Err::<ToolResult, _>(ToolError::DeadlineExceeded)
    });
    let harness = Harness::new(vec![noting(), slow, careful]).await;
    harness.run("noting", json!({})).await;
    let deadline = harness.live.clock().now().saturating_add(Duration::from_millis(50));
    harness.live.set_deadline(harness.evaluation, deadline);
    for name in ["slow", "careful"] {
        let end = harness.run(name, json!({})).await;
        let CallOutcome::DeadlineExceeded(told) = &end else { panic!("{name}: {end:?}") };
        let result = told.message.option_result().unwrap();
        assert_eq!((result.is_error, result.error_type.as_deref()), (true, Some("deadline_exceeded")));
        assert_eq!(harness.findings().await, ["noted"], "{name}");
        let state = harness.live.state().await;
        let call = state.view.calls().next_back().unwrap();
        assert_eq!(call.finished.as_ref().unwrap().record.outcome, CallVerdict::Failed);
    }
}

#[tokio::test]
async fn a_call_that_a_handler_makes_through_the_runner_is_a_transaction_of_its_own() {
    let harness: Arc<OnceLock<Arc<Harness>>> = Arc::default();
    let inside = harness.clone();
    let outer = builder("outer").handler(move |context: ToolContext, (): ()| {
        let harness = inside.get().unwrap().clone();
        async move {
            note(&context, "outer")?;
            let end = harness.run("noting", json!({})).await;
            assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
            Err::<ToolResult, _>(ToolError::new("and then it failed"))
        }
    });
    let open = Arc::new(Harness::new(vec![noting(), outer]).await);
    assert!(harness.set(open.clone()).is_ok());
    assert!(matches!(open.run("outer", json!({})).await, CallOutcome::Failed(_)));
    assert_eq!(open.findings().await, ["noted"], "the inner call is committed");
}

/// Whether a doctor is on call.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct OnCall<const DOCTOR: char>;

impl Slice for OnCall<'a'> {
    const NAME: &'static str = "ada_on_call";
}

impl Slice for OnCall<'b'> {
    const NAME: &'static str = "bob_on_call";
}

/// A tool that ends a doctor's duty if the other one is on call. It waits for the other call between reading and writing.
fn leave<const OWN: char, const OTHER: char>(name: &str, both: &Arc<tokio::sync::Barrier>) -> Tool
where
    OnCall<OWN>: Slice,
    OnCall<OTHER>: Slice,
{
    let both = both.clone();
    builder(name).handler(move |context: ToolContext, (): ()| {
        let both = both.clone();
        async move {
            let other = context.session(|draft| draft.all::<OnCall<OTHER>>().map(|found| found.len()))??;
            if context.attempt() == 1 {
                both.wait().await;
            }
            if other == 0 {
                return Err(ToolError::new("nobody else is on call"));
            }
            context.session(|draft| draft.clear::<OnCall<OWN>>().map(drop))??;
            Ok(ToolResult::ok("off duty"))
        }
    })
}

/// What the guide about tools says of write skew: a call conflicts only if another one has changed what it overwrites, and
/// not if that one has changed what it has read.
#[tokio::test]
async fn two_calls_that_read_what_the_other_writes_both_commit() {
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let begin = builder("begin").handler(|context: ToolContext, (): ()| async move {
        context.session(|draft| draft.append(OnCall::<'a'>).map(drop))??;
        context.session(|draft| draft.append(OnCall::<'b'>).map(drop))??;
        Ok(ToolResult::ok("both are on call"))
    });
    let tools = [begin, leave::<'a', 'b'>("ada", &both), leave::<'b', 'a'>("bob", &both)];
    let harness = Harness::new(tools).await;
    harness.run("begin", json!({})).await;
    let calls = vec![harness.call("ada", json!({})).await, harness.call("bob", json!({})).await];
    for end in harness.run_all(calls).await {
        assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    }
    let state = harness.live.state().await;
    let session = &state.session;
    assert!(
        session.all::<OnCall<'a'>>().unwrap().is_empty() && session.all::<OnCall<'b'>>().unwrap().is_empty()
    );
}
