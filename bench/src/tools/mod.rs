//! The group `tools`: a call as a transaction, in memory and without files.
//!
//! One run is a whole call: its arguments are checked, its intent is appended, its handler adds an item to a
//! slice, and its outcome is appended: the change, the result message, the log of the call. It should cost the same with 0 and
//! with 100,000 items of state.

use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Effect, EvaluationStarted, SessionCreated};
use backstitch_core::message::Arguments;
use backstitch_core::ports::Owner;
use backstitch_core::rng::Seed;
use backstitch_core::session::{Slice, StoredSlice};
use backstitch_core::time::Clock as _;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    CallOutcome, CallRequest, LiveSession, SNAPSHOT_INTERVAL, SessionEnvironment, SystemClock, ToolRunner,
    Tools, fresh_ids,
};
use backstitch_store::MemoryStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::aims;
use crate::measure::{Effort, time};
use crate::report::Report;

const SIZES: [usize; 3] = [0, 1_000, 100_000];

/// An item of working state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Finding {
    file: String,
    text: String,
}

impl Slice for Finding {
    const NAME: &'static str = "bench/finding";
}

/// Measures the group.
pub(crate) fn run(report: &mut Report) {
    for items in SIZES {
        for (name, effect) in [("workspace", Effect::Workspace), ("pure", Effect::Pure)] {
            measure(report, items, name, effect);
        }
    }
}

fn measure(report: &mut Report, items: usize, name: &str, effect: Effect) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be started");
    let (runner, evaluation) = runtime.block_on(prepare(items, effect));
    let ids = fresh_ids(Arc::new(SystemClock::new())).expect("the system has entropy");
    let arguments = json!({"file": "src/lib.rs", "text": "the seam between these two modules is not tested"});
    let arguments = Arguments::from_object(arguments.as_object().cloned().unwrap_or_default());
    let call = || {
        let call = CallRequest::new(ids.next(), evaluation, "note", arguments.clone()).in_turn(1, Some(0));
        runtime.block_on(runner.run(call))
    };
    assert!(matches!(call(), Ok(CallOutcome::Succeeded(_))), "the call succeeds");
    let timing = time(Effort { samples: 101, per_sample: 64 }, call);
    let params = json!({"items": items, "effect": name});
    report.time("tool_transaction", params.clone(), &timing);
    aims::TOOL_TRANSACTION.judge(report, params, timing.cpu / 1e3);
}

async fn prepare(items: usize, effect: Effect) -> (ToolRunner, EvaluationId) {
    let clock = Arc::new(SystemClock::new());
    let ids = fresh_ids(clock.clone()).expect("the system has entropy");
    let session_id = ids.next();
    let environment = SessionEnvironment {
        store: Arc::new(MemoryStore::new()),
        clock: clock.clone(),
        owner: Owner::new("bench"),
        resources: Resources::default(),
        workspace: None,
        snapshot_interval: SNAPSHOT_INTERVAL,
    };
    let finding = |number| Finding { file: format!("src/file_{number}.rs"), text: "not tested".to_owned() };
    let findings: Vec<Arc<Finding>> = (0..items).map(|number| Arc::new(finding(number))).collect();
    let state = vec![StoredSlice::of(&findings).expect("the items can be stored")];
    let created = SessionCreated { state, ..SessionCreated::new(session_id, clock.now(), Seed::new(7)) };
    let live = LiveSession::create(environment, created, |_| {}).await.expect("a session can be created");
    let evaluation = ids.next();
    let started = EvaluationStarted::new(evaluation, "bench", "tools");
    live.record(vec![started.into()]).await.expect("an evaluation can be started");
    let tools = Tools::new([note(effect)]).expect("there is one tool");
    (ToolRunner::new(live, tools), evaluation)
}

fn note(effect: Effect) -> Tool {
    let builder = Tool::builder("note", "Takes a note.").expect("this is a name");
    let builder = builder.effect(effect).workspace(WorkspaceUse::None);
    builder.handler(|context: ToolContext, finding: Finding| async move {
        context.session(|draft| draft.append(finding).map(drop))??;
        Ok(ToolResult::ok("noted"))
    })
}
