//! Snapshotable resources: part of every transaction, of rewinds and forks, and restored when a session is
//! opened.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::execution::{
    CompositeSnapshot, ExecutionStateError, PreparedRestore, ResourceSnapshot, Resources, SnapshotMetadata,
    SnapshotPhase, Snapshotable, snapshots_equivalent,
};
use backstitch_core::id::IdStream;
use backstitch_core::journal::{Effect, PauseReason, RecordBody};
use backstitch_core::ports::{ClaimMode, Owner, Store as _, Workspace};
use backstitch_core::rng::Seed;
use backstitch_core::session::BoxError;
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{ResourceUse, Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    CallOutcome, CallRequest, Fork, LiveSession, PointSpec, Runtime, RuntimeError, SessionEnvironment,
    SessionOptions, ToolRunner, Tools,
};
use backstitch_store::MemoryStore;
use backstitch_testkit::tool::{Act, Counter, Outcome, Script, tools};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::callers::{Caller, Place, Way, open};
use crate::counting::CountingStore;
use crate::findings::Finding;
use crate::harness::Harness;
use crate::tailor::{reply, scripted};

/// The counter of a session, in memory.
async fn number(live: &LiveSession) -> u64 {
    live.state().await.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap()
}

/// The counter of a session, as recorded in the journal.
async fn recorded(live: &LiveSession) -> Value {
    live.state().await.view.resource(Counter::NAME).unwrap().state.inline().unwrap().clone()
}

async fn harness(tools: impl IntoIterator<Item = Tool>, counter: Counter) -> Harness {
    let store = Arc::new(MemoryStore::new());
    Harness::with_resources(store, tools, None, counter.resources()).await
}

fn script(acts: impl IntoIterator<Item = Act>, outcome: Outcome) -> Value {
    serde_json::to_value(Script::new(acts, outcome)).unwrap()
}

/// Counts by one with the tool that uses no files.
async fn count(harness: &Harness) -> CallRequest {
    let call = harness.call("count", script([Act::Count(1)], Outcome::Success)).await;
    let end = harness.runner.run(call.clone()).await.unwrap();
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    call
}

/// The environment of another process that opens or forks the session of a harness with its own resources.
fn environment(harness: &Harness, resources: Resources) -> SessionEnvironment {
    let (store, clock) = (harness.live.store().clone(), harness.live.clock().clone());
    let owner = Owner::new("another");
    SessionEnvironment { store, clock, owner, resources, workspace: None, snapshot_interval: 1 }
}

async fn reopened(harness: &Harness, resources: Resources) -> Arc<LiveSession> {
    let environment = environment(harness, resources);
    LiveSession::open(environment, harness.live.id(), ClaimMode::TakeOver, |_| {}).await.unwrap()
}

/// A call that changes state, files and the counter, and then hangs.
async fn hanging(caller: &Caller) -> CallRequest {
    let acts = [Act::Append("more".into()), Act::Write("file.txt".into(), "changed".into()), Act::Count(5)];
    caller.harness.call("act", script(acts, Outcome::Hang)).await
}

async fn until_counted(live: &LiveSession, before: u64) {
    while number(live).await == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A session with state, a file and a counter.
fn prepared(place: Place) -> Caller {
    let caller = open(place, Way::Direct, tools());
    let acts = [Act::Append("plan".into()), Act::Write("file.txt".into(), "original".into()), Act::Count(7)];
    caller.turn(vec![Script::new(acts, Outcome::Success).asked("act")]);
    caller
}

#[test]
fn a_deadline_inside_of_a_call_rolls_everything_back() {
    for place in [Place::Memory, Place::Directory] {
        let caller = prepared(place);
        let before = caller.state();
        caller.block_on(async {
            let live = &caller.harness.live;
            let soon = live.clock().now().saturating_add(Duration::from_millis(300));
            live.set_deadline(caller.harness.evaluation, soon);
            let call = hanging(&caller).await;
            let end = caller.harness.runner.run(call).await.unwrap();
            assert!(matches!(end, CallOutcome::DeadlineExceeded(_)), "{end:?}");
        });
        assert!(snapshots_equivalent(&before, &caller.state()).unwrap());
    }
}

#[test]
fn a_cancelled_call_is_rolled_back() {
    for place in [Place::Memory, Place::Directory] {
        let caller = prepared(place);
        let before = caller.state();
        caller.block_on(async {
            let live = &caller.harness.live;
            let cancel = CancellationToken::new();
            let runner = ToolRunner::new(live.clone(), Tools::new(tools()).unwrap());
            let runner = runner.with_cancellation(cancel.clone()).with_grace(Duration::from_secs(60));
            let call = hanging(&caller).await;
            let stopping = async {
                until_counted(live, 7).await;
                cancel.cancel();
            };
            let (end, ()) = tokio::join!(runner.run(call), stopping);
            assert!(matches!(end.unwrap(), CallOutcome::Cancelled(_)));
        });
        assert!(snapshots_equivalent(&before, &caller.state()).unwrap());
    }
}

/// Adds one to the counter and overwrites all findings. In the first attempt another call adds a finding
/// concurrently.
fn overwrites(harness: Arc<std::sync::OnceLock<Harness>>, ran: Arc<AtomicUsize>) -> Tool {
    let builder = Tool::builder("overwrite", "Overwrites.").unwrap().effect(Effect::Workspace);
    let builder = builder.workspace(WorkspaceUse::None).resources(ResourceUse::Write);
    builder.handler(move |context: ToolContext, (): ()| {
        let (harness, ran) = (harness.clone(), ran.clone());
        async move {
            context.resource_mut::<Counter>()?.unwrap().number += 1;
            context.session(|draft| draft.seed([Finding("mine".into())]).map(|_| ()))??;
            if ran.fetch_add(1, Ordering::SeqCst) == 0 {
                harness.get().unwrap().run("add", json!({})).await;
            }
            Ok(ToolResult::ok("done"))
        }
    })
}

fn adds() -> Tool {
    let builder = Tool::builder("add", "Adds.").unwrap().effect(Effect::Workspace);
    builder.workspace(WorkspaceUse::None).handler(|context: ToolContext, (): ()| async move {
        context.session(|draft| draft.append(Finding("theirs".into())).map(|_| ()))??;
        Ok(ToolResult::ok("done"))
    })
}

#[tokio::test]
async fn a_call_that_runs_again_after_a_conflict_changes_a_resource_once() {
    let (cell, ran) = (Arc::new(std::sync::OnceLock::new()), Arc::new(AtomicUsize::new(0)));
    let tools = [overwrites(cell.clone(), ran.clone()), adds()];
    assert!(cell.set(harness(tools, Counter::at(4)).await).is_ok());
    let harness = cell.get().unwrap();
    let end = harness.run("overwrite", json!({})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 2, "it ran again");
    assert_eq!(number(&harness.live).await, 5);
    assert_eq!(recorded(&harness.live).await, json!(5));
}

#[tokio::test]
async fn states_are_recorded_with_the_session_and_with_calls_that_change_them() {
    let harness = harness(tools(), Counter::at(4)).await;
    let changes = || async {
        let records = harness.records().await;
        let changed = records.iter().filter_map(|record| match &record.body {
            RecordBody::ResourceChanged(changed) => Some(changed.state.inline().unwrap().clone()),
            _ => None,
        });
        changed.collect::<Vec<_>>()
    };
    assert_eq!(harness.records().await[1].body.kind(), "resource_changed", "it is in the first batch");
    assert_eq!(changes().await, [json!(4)]);
    count(&harness).await;
    harness.run("count", script([Act::Append("nothing counted".into())], Outcome::Success)).await;
    harness.run("count", script([Act::Count(9)], Outcome::Error)).await;
    assert_eq!(changes().await, [json!(4), json!(13)], "only what changed, and only of calls that succeeded");
    let records = harness.records().await;
    let at = records.iter().position(|record| record.body.kind() == "call_finished").unwrap();
    assert_eq!(records[at - 1].body.kind(), "resource_changed", "the end of the call comes last");
}

#[tokio::test]
async fn rewinding_undoing_and_forking_restore_resources() {
    let harness = harness(tools(), Counter::at(0)).await;
    let mut calls = Vec::new();
    for expected in [1, 4, 13] {
        calls.push(count(&harness).await.call_id);
        assert_eq!(number(&harness.live).await, expected);
    }
    let before_second = PointSpec::Before(calls[1].to_string());
    harness.live.rewind(&before_second, None).await.unwrap();
    assert_eq!(number(&harness.live).await, 1);
    harness.live.undo().await.unwrap();
    assert_eq!(number(&harness.live).await, 13);
    harness.live.rewind(&PointSpec::Start, None).await.unwrap();
    assert_eq!(number(&harness.live).await, 0);
    harness.live.undo().await.unwrap();

    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let ids = IdStream::from_seed([2; 32], clock);
    let fork = Fork { parent: harness.live.id(), at: before_second, seed: Seed::new(8), definition: None };
    let environment = environment(&harness, Counter::at(99).resources());
    let fork = LiveSession::fork(environment, fork, ids.next(), |_| {}).await.unwrap();
    assert_eq!(number(&fork).await, 1, "the fork starts with the value recorded at its point");
    assert_eq!(number(&harness.live).await, 13, "its parent keeps its own");
}

#[tokio::test]
async fn opening_a_session_restores_its_recorded_resources() {
    let harness = harness(tools(), Counter::at(0)).await;
    count(&harness).await;
    count(&harness).await;
    let live = reopened(&harness, Counter::at(99).resources()).await;
    assert_eq!(number(&live).await, 4);
    // A process without the resource leaves its state to processes that have it.
    let idle = reopened(&harness, Resources::default()).await;
    idle.rewind(&PointSpec::Start, None).await.unwrap();
    let again = reopened(&harness, Counter::at(99).resources()).await;
    assert_eq!(number(&again).await, 0);
}

#[tokio::test]
async fn a_resource_that_is_registered_later_is_recorded_before_it_is_changed() {
    let harness = Harness::new(tools()).await;
    harness.run("think", script([Act::Append("early".into())], Outcome::Success)).await;
    let early = PointSpec::Position(harness.live.state().await.view.head());
    let live = reopened(&harness, Counter::at(5).resources()).await;
    assert!(live.state().await.view.resource(Counter::NAME).is_none(), "opening records nothing");
    let runner = ToolRunner::new(live.clone(), Tools::new(tools()).unwrap());
    let call = CallRequest::new(
        IdStream::from_seed([3; 32], live.clock().clone()).next(),
        harness.evaluation,
        "count",
        backstitch_core::message::Arguments::from_object(
            script([Act::Count(1)], Outcome::Success).as_object().cloned().unwrap(),
        ),
    );
    let end = runner.run(call).await;
    assert!(matches!(end, Ok(CallOutcome::Succeeded(_))), "{end:?}");
    assert_eq!(number(&live).await, 16);
    live.rewind(&early, None).await.unwrap();
    assert_eq!(number(&live).await, 5);
}

/// Asserts that an operation fails because the session is poisoned, and that the pause names the resource.
async fn assert_poisoned(live: &LiveSession, result: Result<impl std::fmt::Debug, RuntimeError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, RuntimeError::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("it refuses"), "{error}");
    let state = live.state().await;
    let pause = state.view.pause().unwrap();
    assert_eq!(pause.reason, PauseReason::Poisoned);
    assert!(pause.detail.as_deref().unwrap().contains("counter"), "{pause:?}");
}

#[tokio::test]
async fn a_resource_that_refuses_to_be_restored_poisons_the_session() {
    // When a call is rolled back.
    let counter = Counter::at(0);
    let refusal = counter.refusal();
    let harness = harness(tools(), counter).await;
    count(&harness).await;
    refusal.store(true, Ordering::SeqCst);
    let failing = harness.call("count", script([Act::Count(1)], Outcome::Error)).await;
    assert_poisoned(&harness.live, harness.runner.run(failing).await).await;
    // What is tried after that fails with the cause, too.
    assert_poisoned(&harness.live, harness.live.rewind(&PointSpec::Start, None).await).await;
    // A person may decide to continue; then it is restored, or poisoned again.
    let continued = |live: Arc<LiveSession>| async move {
        live.resolve(None, backstitch_core::journal::Decision::Continue, Some("ada".into())).await
    };
    assert_poisoned(&harness.live, continued(harness.live.clone()).await).await;
    refusal.store(false, Ordering::SeqCst);
    continued(harness.live.clone()).await.unwrap();
    assert_eq!(number(&harness.live).await, 1);

    // When the session is rewound.
    refusal.store(true, Ordering::SeqCst);
    assert_poisoned(&harness.live, harness.live.rewind(&PointSpec::Start, None).await).await;
}

#[tokio::test]
async fn a_resource_that_refuses_when_its_session_is_opened_poisons_it() {
    let harness = harness(tools(), Counter::at(0)).await;
    count(&harness).await;
    let counter = Counter::at(0);
    counter.refusal().store(true, Ordering::SeqCst);
    let live = reopened(&harness, counter.resources()).await;
    let paused = live.state().await.view.pause().cloned().unwrap();
    assert_eq!(paused.reason, PauseReason::Poisoned);
    assert_poisoned(&live, live.record(Vec::new()).await).await;
    assert_poisoned(&live, live.rewind(&PointSpec::Start, None).await).await;
    // Also in a process that only reads the cause in the journal.
    let idle = reopened(&harness, Resources::default()).await;
    assert_poisoned(&idle, idle.rewind(&PointSpec::Start, None).await).await;
}

/// A counter that refuses to be restored, and stalls the store when it does.
struct StallingCounter {
    number: Arc<AtomicUsize>,
    store: Arc<CountingStore>,
}

impl Snapshotable for StallingCounter {
    fn snapshot_name(&self) -> &'static str {
        "counter"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        ResourceSnapshot::of(&self.number.load(Ordering::SeqCst))
    }

    fn prepare_restore(&self, _: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        self.store.stall();
        Err("it refuses".into())
    }
}

#[tokio::test]
async fn a_session_stays_poisoned_if_the_caller_is_dropped_while_that_is_recorded() {
    let store = Arc::new(CountingStore::default());
    let number = Arc::new(AtomicUsize::new(0));
    let counter = StallingCounter { number: number.clone(), store: store.clone() };
    let resources = Resources::builder().with_snapshotable(counter).build().unwrap();
    let options = SessionOptions { resources, ..SessionOptions::default() };
    let agent = scripted(vec![reply("done", &[])]);
    let driver = Runtime::new(store.clone()).create(agent, options).await.unwrap();
    driver.start("sew").await.unwrap();
    number.store(1, Ordering::SeqCst);
    let (live, start) = (driver.session(), PointSpec::Start);
    {
        let mut rewind = pin!(live.rewind(&start, None));
        tokio::select! {
            biased;
            _ = &mut rewind => panic!("the store has answered"),
            () = store.wait_until_stalled() => {}
        }
    }
    store.unstall();
    assert_poisoned(live, live.flush().await).await;
}

#[tokio::test]
async fn a_repaired_session_continues_after_one_call_of_the_runtime() {
    let counter = Counter::at(0);
    let refusal = counter.refusal();
    let harness = harness(tools(), counter).await;
    count(&harness).await;
    refusal.store(true, Ordering::SeqCst);
    let failing = harness.call("count", script([Act::Count(1)], Outcome::Error)).await;
    assert_poisoned(&harness.live, harness.runner.run(failing).await).await;
    let (session, store) = (harness.live.id(), harness.live.store().clone());
    harness.live.release().await.unwrap();

    let runtime = backstitch_runtime::Runtime::new(store);
    let refused = runtime.rewind(session, PointSpec::Start).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::Poisoned { .. }), "{refused}");
    let resolved = runtime.resolve(session, Some("ada".into())).await.unwrap();
    assert_eq!(resolved, backstitch_runtime::DecisionState::Recorded);
    assert!(runtime.view(session).await.unwrap().pause().is_none());
    assert_eq!(runtime.store().holder(session).await.unwrap(), None);
    let again = runtime.resolve(session, None).await.unwrap_err();
    assert!(matches!(again, RuntimeError::Unresolvable(_)), "{again}");
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    // The resource is restored with the next process that has it.
    let live = reopened(&harness, Counter::at(99).resources()).await;
    assert_eq!(number(&live).await, 0);
}

/// Notes of any size. They cannot be captured while the last one is "broken" or "panic".
#[derive(Default)]
struct Notes(Vec<String>);

impl Snapshotable for Notes {
    fn snapshot_name(&self) -> &'static str {
        "notes"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        match self.0.last().map(String::as_str) {
            Some("broken") => Err("it is broken".into()),
            Some("panic") => panic!("it panics"),
            _ => ResourceSnapshot::of(&self.0),
        }
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        Ok(PreparedRestore::replace(Self(serde_json::from_value(snapshot.to_json()?)?)))
    }
}

fn notes() -> Resources {
    Resources::builder().with_snapshotable(Notes::default()).build().unwrap()
}

/// Writes a note, and holds the guard while it yields.
fn notes_tool() -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Told {
        text: String,
    }
    let builder = Tool::builder("note", "Notes.").unwrap().effect(Effect::Workspace);
    let builder = builder.workspace(WorkspaceUse::None).resources(ResourceUse::Write);
    builder.handler(|context: ToolContext, told: Told| async move {
        let mut notes = context.resource_mut::<Notes>()?.ok_or_else(|| ToolError::new("no notes"))?;
        notes.0.push(told.text);
        tokio::task::yield_now().await;
        Ok(ToolResult::ok(notes.0.len().to_string()))
    })
}

async fn noted(live: &LiveSession) -> Vec<String> {
    live.state().await.resources.inspect(|notes: &Notes| notes.0.clone()).unwrap().unwrap()
}

#[tokio::test]
async fn a_large_state_is_an_object_and_is_restored() {
    let store = Arc::new(MemoryStore::new());
    let harness = Harness::with_resources(store, [notes_tool()], None, notes()).await;
    let large = "x".repeat(100_000);
    harness.run("note", json!({"text": large})).await;
    let changed = harness.live.state().await.view.resource("notes").unwrap().clone();
    assert!(changed.state.object().is_some());
    let live = reopened(&harness, notes()).await;
    assert_eq!(noted(&live).await, [large]);
}

#[tokio::test]
async fn a_resource_that_cannot_be_captured_fails_the_call_that_left_it_so() {
    let store = Arc::new(MemoryStore::new());
    let harness = Harness::with_resources(store, [notes_tool()], None, notes()).await;
    harness.run("note", json!({"text": "one"})).await;
    for text in ["broken", "panic"] {
        let CallOutcome::Failed(told) = harness.run("note", json!({"text": text})).await else {
            panic!("{text}")
        };
        let result = told.message.option_result().cloned().unwrap();
        assert_eq!(result.error_type.as_deref(), Some("capture_failed"));
        assert!(result.error_message.unwrap().contains("notes"));
        assert_eq!(noted(&harness.live).await, ["one"]);
    }
    harness.run("note", json!({"text": "two"})).await;
    assert_eq!(noted(&harness.live).await, ["one", "two"]);
}

#[tokio::test]
async fn a_session_does_not_begin_with_a_resource_that_cannot_be_captured() {
    let resources = Resources::builder().with_snapshotable(Notes(vec!["broken".into()])).build().unwrap();
    let harness = Harness::new([]).await;
    let environment = environment(&harness, resources);
    let mut created = harness.live.state().await.view.created().clone();
    created.session_id = IdStream::from_seed([4; 32], harness.live.clock().clone()).next();
    let id = created.session_id;
    let Err(error) = LiveSession::create(environment, created, |_| {}).await else { panic!("it began") };
    assert!(matches!(error, RuntimeError::State(_)), "{error}");
    assert!(harness.live.store().read(id, backstitch_core::journal::Position::START, 1).await.is_err());
}

#[tokio::test]
async fn a_run_does_not_start_with_a_resource_that_cannot_be_captured() {
    for broken in ["broken", "panic"] {
        let resources = Resources::builder().with_snapshotable(Notes(vec![broken.into()])).build().unwrap();
        let runtime = backstitch_runtime::Runtime::new(Arc::new(backstitch_store::MemoryStore::new()));
        let agent = crate::tailor::scripted(vec![crate::tailor::reply("done", &[])]);
        let options = backstitch_runtime::SessionOptions { resources, ..Default::default() };
        let error = runtime.start_with(&agent, "sew", options).await.unwrap_err();
        assert!(matches!(error, RuntimeError::State(_)), "{error}");
        let all = runtime.sessions(backstitch_core::ports::SessionQuery::roots()).await.unwrap();
        assert!(all.sessions.is_empty(), "nothing is stored");
    }
}

#[test]
fn boundaries_beside_a_running_call_hold_what_is_committed() {
    let caller = prepared(Place::Memory);
    caller.block_on(async {
        let harness = &caller.harness;
        let thinking = harness.call("think", script([Act::Append("beside".into())], Outcome::Success)).await;
        let hanging = hanging(&caller).await;
        let cancel = CancellationToken::new();
        let runner = ToolRunner::new(harness.live.clone(), Tools::new(tools()).unwrap());
        let runner = runner.with_cancellation(cancel.clone()).with_grace(Duration::from_secs(60));
        let beside = async {
            until_counted(&harness.live, 7).await;
            harness.runner.run(thinking.clone()).await.unwrap();
            cancel.cancel();
        };
        let (_, ()) = tokio::join!(runner.run(hanging), beside);
        let checkpoints = harness.live.checkpoints().await.unwrap();
        let mut checkpoints = checkpoints.list_checkpoints();
        let checkpoint = checkpoints.find(|one| one.call_id == thinking.call_id).unwrap();
        for snapshot in [Some(&checkpoint.pre_snapshot), checkpoint.post_snapshot.as_ref()] {
            let counter = snapshot.unwrap().resources[Counter::NAME].to_json().unwrap();
            assert_eq!(counter, json!(7), "changes of the running call are not committed");
        }
        assert_eq!(checkpoint.pre_snapshot.metadata.phase, SnapshotPhase::PreTool);
        assert_eq!(checkpoint.pre_snapshot.metadata.tag, Some(format!("pre:{}", thinking.call_id)));
    });
}

#[tokio::test]
async fn a_composite_snapshot_is_adopted_with_its_resources_and_files() {
    let store = Arc::new(MemoryStore::new());
    let files = |store: &Arc<MemoryStore>| -> Arc<dyn Workspace> {
        Arc::new(MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), store.clone()))
    };
    let resources = Counter::default().resources();
    let harness = Harness::with_resources(store.clone(), tools(), Some(files(&store)), resources).await;
    let acts = [Act::Append("plan".into()), Act::Write("file.txt".into(), "original".into()), Act::Count(7)];
    harness.run("act", script(acts, Outcome::Success)).await;
    let text = harness.live.state().await.snapshot(SnapshotMetadata::tag("export")).unwrap();
    let snapshot = CompositeSnapshot::from_json(&text.to_json().unwrap()).unwrap();

    let options = |store| {
        let resources = Counter::at(99).resources();
        SessionOptions { resources, ..SessionOptions::with_workspace(files(store)) }
    };
    let runtime = Runtime::new(store.clone());
    let driver = runtime.adopt_state(scripted(Vec::new()), &snapshot, options(&store)).await.unwrap();
    let live = driver.session();
    assert_eq!((number(live).await, recorded(live).await), (7, json!(7)));
    let path = backstitch_filesystem::FilePath::new("file.txt").unwrap();
    assert_eq!(live.workspace().unwrap().filesystem().read_bytes(&path).unwrap(), b"original");
    let found = live.workspace().unwrap().capture().unwrap().root;
    assert_eq!(live.state().await.view.files().unwrap().root, found);

    // A snapshot that does not fit is refused, and no session is created.
    let before = store.sessions().await.unwrap().len();
    let without = SessionOptions::with_workspace(files(&store));
    let refused = runtime.adopt_state(scripted(Vec::new()), &snapshot, without).await;
    let Err(RuntimeError::State(ExecutionStateError::UnknownResource { resource })) = refused else {
        panic!("it was adopted")
    };
    assert_eq!(resource, Counter::NAME);
    assert_eq!(store.sessions().await.unwrap().len(), before);
    let other = Arc::new(MemoryStore::new());
    let elsewhere = Runtime::new(other.clone());
    let refused = elsewhere.adopt_state(scripted(Vec::new()), &snapshot, options(&other)).await;
    let Err(RuntimeError::State(ExecutionStateError::Unprepared { resource, .. })) = refused else {
        panic!("it was adopted")
    };
    assert_eq!(resource, "workspace", "its objects are in the other store");
    assert!(other.sessions().await.unwrap().is_empty());
}

#[tokio::test]
async fn only_tools_that_change_files_cost_a_scan() {
    let store = Arc::new(MemoryStore::new());
    let files = Arc::new(MemoryFilesystem::new());
    let workspace: Arc<dyn Workspace> = Arc::new(MemoryWorkspace::new(files, store.clone()));
    let resources = Counter::default().resources();
    let harness = Harness::with_resources(store, tools(), Some(workspace), resources).await;
    let call = count(&harness).await;
    let state = harness.live.state().await;
    let call = state.view.call(call.call_id).unwrap();
    assert_eq!(call.intent.as_ref().unwrap().record.root, None);
    assert_eq!(call.finished.as_ref().unwrap().record.root, None);
}
