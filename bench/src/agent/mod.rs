//! Agents on a durable store: the cost of a turn, also late in a long session, of resuming after a crash, of
//! many concurrent sessions, of requests, and how much of a request repeats the one before.

mod crowd;
mod length;
mod model;
mod render;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{Script, ScriptedCall, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{Agent, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::SqliteStore;
use serde_json::{Map, json};

use crate::aims;
use crate::alone::{self, Alone};
use crate::measure::{Samples, Scope};
use crate::report::{Report, ratio};

const TURNS: usize = 100;
const STEPS: usize = 1_000;

pub(crate) const ALONE: &[Alone] = &[(crowd::NAME, crowd::run)];

pub(crate) fn run(report: &mut Report) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return eprintln!("the async runtime cannot be started") };
    runtime.block_on(async {
        explain(turns(report).await);
        explain(recovery(report).await);
        explain(length::run(report).await);
        explain(model::turns(report).await);
        explain(model::late_turns(report).await);
        explain(render::run(report).await);
        explain(room::run(report).await);
    });
    alone::run(crowd::NAME);
}

/// Prints why something could not be measured. The rest is measured all the same.
fn explain(measured: Result<(), Failed>) {
    if let Err(error) = measured {
        eprintln!("agent: {error}");
    }
}

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The cost of a turn with one call, and how often it is synced.
async fn turns(report: &mut Report) -> Result<(), Failed> {
    for (name, effect) in [("external", Effect::External), ("pure", Effect::Pure)] {
        let directory = tempfile::tempdir()?;
        let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
        let runtime = Runtime::new(store.clone());
        let mut samples = Samples::default();
        let mut syncs = 0;
        for _ in 0..7 {
            let agent = agent(effect, TURNS, Arc::default(), true)?;
            let driver = runtime.create(agent, SessionOptions::default()).await?;
            let before = store.counters().commits;
            let clock = Scope::Process.start();
            driver.start("sew").await?;
            samples.add(clock.elapsed());
            syncs = store.counters().commits - before;
            driver.session().release().await?;
        }
        let timing = samples.timing().divided(TURNS);
        report.time("agent.durable_turn", json!({ "effect": name, "calls": 1 }), &timing);
        aims::DURABLE_TURN.judge(report, json!({ "effect": name, "calls": 1 }), timing.cpu / 1e6);
        // The mission, the first request and the end are not part of any turn with a call.
        let per_turn = (syncs as f64 - 4.0) / TURNS as f64;
        report.value("agent.syncs_per_turn", json!({ "effect": name, "calls": 1 }), ratio(per_turn), "syncs");
    }
    Ok(())
}

/// Measures resuming a session that has finished all steps except the last answer.
async fn recovery(report: &mut Report) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
    let runtime = Runtime::new(store);
    let mut samples = Samples::default();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        // The script ends before the answer, so the session is left interrupted.
        let cut = agent(Effect::Workspace, STEPS, ran.clone(), false)?;
        let driver = runtime.create(cut, SessionOptions::default()).await?;
        let session = driver.session().id();
        drop(driver.start("sew").await);
        driver.session().release().await?;
        let agent = agent(Effect::Workspace, STEPS, ran.clone(), true)?;
        let before = ran.load(Ordering::SeqCst);
        let clock = Scope::Process.start();
        let driver = runtime.open(session, agent, SessionOptions::default()).await?;
        driver.resume(ResumeOptions::default()).await?;
        samples.add(clock.elapsed());
        if ran.load(Ordering::SeqCst) != before {
            return Err("a step that was done ran again".into());
        }
        driver.session().release().await?;
    }
    report.time("agent.recovery", json!({ "steps": STEPS, "reexecuted": 0 }), &samples.timing());
    Ok(())
}

/// An agent that makes one call a turn. Unless `whole`, its script ends before the final answer.
fn agent(effect: Effect, turns: usize, ran: Arc<AtomicUsize>, whole: bool) -> Result<Agent, Failed> {
    let turn = ScriptedReply::text("on we go").call(ScriptedCall::new("stitch", Map::new()));
    let mut replies = vec![turn; turns];
    if whole {
        replies.push(ScriptedReply::text("done"));
    }
    let tool = Tool::builder("stitch", "Makes a stitch.")?
        .effect(effect)
        .workspace(WorkspaceUse::None)
        .handler(move |_, (): ()| {
            ran.fetch_add(1, Ordering::SeqCst);
            async { Ok(ToolResult::ok("stitched")) }
        });
    scripted(replies, tool)
}

/// An agent with one tool whose model follows a script.
pub(crate) fn scripted(replies: Vec<ScriptedReply>, tool: Tool) -> Result<Agent, Failed> {
    let policy = ScriptedPolicy::new(PolicyName::new("tailor")?, Script { replies });
    let agent = Agent::new("bench/tailor").policy(Arc::new(policy)).max_repeats(None);
    Ok(agent.tools(Tools::new([tool])?))
}
