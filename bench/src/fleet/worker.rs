//! The processes of Backstitch that are measured: workers, and one that enqueues sessions.
//!
//! The model answers at once, so that what is measured is the fleet. A session is two requests with a call between them. Both processes print
//! what happens as lines, with the time in nanoseconds, and end when their input ends; so they do not outlive the bench.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use backstitch::CancellationToken;
use backstitch_core::journal::Effect;
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::session::BoxError;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    Agent, AgentRegistry, EnqueueOptions, FunctionPolicy, Runtime, Tools, Worker, WorkerEvent, WorkerOptions,
};
use tokio::task::JoinSet;

use super::{AGENT, executor, note, open};
use crate::agent::Failed;
use crate::report::Report;

pub(super) const WORKER: &str = "fleet.worker";
pub(super) const ENQUEUE: &str = "fleet.enqueue";

/// The variable with the address of the store.
pub(super) const STORE: &str = "BACKSTITCH_BENCH_STORE";

/// Sessions that a worker drives at a time, and that are enqueued at a time.
pub(super) const CONCURRENCY: usize = 8;

/// Drives the sessions of a store until its input ends.
pub(super) fn drive(_: &mut Report) {
    note(executor().and_then(|executor| executor.block_on(work())));
}

async fn work() -> Result<(), Failed> {
    let runtime = open(&std::env::var(STORE)?)?.with_agents(Arc::new(AgentRegistry::new([agent()?])));
    let options = WorkerOptions { concurrency: CONCURRENCY, ..WorkerOptions::default() };
    let worker = Worker::new(runtime).with_options(options).with_report(|event| match event {
        WorkerEvent::Rested { session, .. } => println!("rested {session} {}", nanoseconds()),
        WorkerEvent::Taken { .. } => {}
        other => eprintln!("fleet: a worker reports {other:?}"),
    });
    let stop = CancellationToken::new();
    let ended = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.cancel();
    });
    println!("ready - {}", nanoseconds());
    Ok(worker.run(stop).await?)
}

/// Enqueues as many sessions as each line of its input says.
pub(super) fn enqueue(_: &mut Report) {
    let all = || -> Result<(), Failed> {
        let (executor, agent) = (executor()?, agent()?);
        let runtime = open(&std::env::var(STORE)?)?;
        println!("ready - {}", nanoseconds());
        for line in std::io::stdin().lines() {
            executor.block_on(enqueue_some(&runtime, &agent, line?.trim().parse()?))?;
        }
        Ok(())
    };
    note(all());
}

async fn enqueue_some(runtime: &Runtime, agent: &Agent, count: usize) -> Result<(), Failed> {
    let mut running = JoinSet::new();
    for _ in 0..count {
        if running.len() == CONCURRENCY
            && let Some(done) = running.join_next().await
        {
            done??;
        }
        let (runtime, agent) = (runtime.clone(), agent.clone());
        running.spawn(async move {
            let began = nanoseconds();
            let enqueued = runtime.enqueue(&agent, "Mend the coat.", EnqueueOptions::default()).await?;
            println!("enqueued {} {began}", enqueued.session);
            Ok::<_, Failed>(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

/// An agent whose model makes one call.
fn agent() -> Result<Agent, Failed> {
    let policy = FunctionPolicy::new(PolicyName::new(AGENT)?, |request: PolicyRequest| async move {
        if request.turn > 1 {
            return Ok::<_, BoxError>(PolicyAnswer::text("Mended."));
        }
        println!("first {} {}", request.session_id, nanoseconds());
        Ok(PolicyAnswer::text("First a stitch.").call("stitch", Arguments::none()))
    });
    let tool = Tool::builder("stitch", "Makes a stitch.")?
        .effect(Effect::External)
        .workspace(WorkspaceUse::None)
        .handler(|_, (): ()| async { Ok(ToolResult::ok("stitched")) });
    Ok(Agent::new(AGENT).policy(policy).tools(Tools::new([tool])?))
}

/// The time, in nanoseconds since 1970.
fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
