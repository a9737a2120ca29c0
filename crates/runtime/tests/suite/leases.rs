//! A process whose lease may be over does nothing more outside and on files, whatever it knows of other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::code::ErrorCode;
use backstitch_core::execution::Resources;
use backstitch_core::journal::Effect;
use backstitch_core::ports::{Filesystem as _, ProcessSpec, Sandbox, Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    AgentRegistry, CallOutcome, EnqueueOptions, Rest, Runtime, RuntimeError, SystemClock, Worker,
    WorkerEvent, WorkerOptions,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::counting::CountingStore;
use crate::harness::Harness;
use crate::tailor::{reply, scripted};

async fn harness(
    store: &Arc<CountingStore>,
    tools: Vec<Tool>,
    workspace: Option<Arc<dyn Workspace>>,
) -> Harness {
    Harness::with(store.clone(), Arc::new(SystemClock::new()), Resources::default(), tools, workspace, |_| {})
        .await
}

/// A tool that acts outside, and how often it did.
fn paying() -> (Tool, Arc<AtomicUsize>) {
    let paid = Arc::new(AtomicUsize::new(0));
    let counted = paid.clone();
    let pay = Tool::builder("pay", "Pays.").unwrap().effect(Effect::External).workspace(WorkspaceUse::None);
    let pay = pay.handler(move |context: ToolContext, _: Value| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolResult::ok(format!("paid under claim {}", context.fence().0))) }
    });
    (pay, paid)
}

fn assert_is_lost(ended: Result<CallOutcome, RuntimeError>) {
    let error = ended.expect_err("the session is not held any more");
    assert_eq!(error.code(), ErrorCode::ClaimLost, "{error}");
}

#[tokio::test]
async fn a_call_with_an_effect_outside_does_not_start() {
    let store = Arc::new(CountingStore::default());
    let (pay, paid) = paying();
    let harness = harness(&store, vec![pay], None).await;
    let outcome = harness.run("pay", json!({})).await;
    let result = outcome.message().unwrap().content();
    assert!(result.contains(&format!("claim {}", harness.live.claim().fence.0)), "{result}");

    let call = harness.call("pay", json!({})).await;
    store.end_lease();
    assert_is_lost(harness.runner.run(call).await);
    // Another process may have had the session meanwhile.
    store.renew_lease();
    let call = harness.call("pay", json!({})).await;
    assert_is_lost(harness.runner.run(call).await);
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn processes_of_running_calls_are_killed() {
    let store = Arc::new(CountingStore::default());
    let directory = tempfile::tempdir().unwrap();
    let started = directory.path().join("started");
    let command = format!("touch {}; sleep 600", started.display());
    let shell = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::External);
    let shell = shell.workspace(WorkspaceUse::None).handler(move |context: ToolContext, _: Value| {
        let spec = ProcessSpec::shell(command.clone()).sandbox(Sandbox::off()).without_files();
        async move {
            context.run_process(spec).await?;
            Ok(ToolResult::ok("slept"))
        }
    });
    let (pay, paid) = paying();
    let harness = harness(&store, vec![shell, pay], None).await;
    let (long, next) = (harness.call("shell", json!({})).await, harness.call("pay", json!({})).await);
    let runner = harness.runner.clone();
    let running = tokio::spawn(async move { runner.run(long).await });
    while !started.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    store.end_lease();
    assert_is_lost(harness.runner.run(next).await);
    // It does not wait for its process, and a call ends only after its processes have.
    assert_is_lost(running.await.unwrap());
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn files_are_neither_written_nor_restored() {
    let store = Arc::new(CountingStore::default());
    let files = Arc::new(MemoryFilesystem::new());
    let path = |name: &str| FilePath::new(name).unwrap();
    let workspace = MemoryWorkspace::new(files.clone(), Arc::new(MemoryStore::new()));
    let lease = store.clone();
    let write = Tool::builder("write", "Writes two files.").unwrap().effect(Effect::Workspace);
    let write = write.handler(move |context: ToolContext, _: Value| {
        let lease = lease.clone();
        async move {
            let files = context.filesystem()?;
            files.write_bytes(&FilePath::new("first")?, b"1", WriteMode::Create)?;
            lease.end_lease();
            files.write_bytes(&FilePath::new("second")?, b"2", WriteMode::Create)?;
            Ok(ToolResult::ok("written"))
        }
    });
    let harness = harness(&store, vec![write], Some(Arc::new(workspace))).await;
    let call = harness.call("write", json!({})).await;
    assert_is_lost(harness.runner.run(call).await);
    // What it wrote before is left to the process that has the session now, which restores it.
    assert!(files.read_bytes(&path("first")).is_ok());
    assert!(files.read_bytes(&path("second")).is_err());
}

#[tokio::test]
async fn a_worker_releases_a_session_whose_lease_was_over_only_for_a_moment() {
    let store = Arc::new(CountingStore::default());
    let (pay, paid) = paying();
    let lease = store.clone();
    let looks = Arc::new(AtomicUsize::new(0));
    let look = Tool::builder("look", "Looks.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    let look = look.handler(move |_: ToolContext, _: Value| {
        if looks.fetch_add(1, Ordering::SeqCst) == 0 {
            lease.end_lease();
        }
        async { Ok(ToolResult::ok("seen")) }
    });
    let replies =
        vec![reply("", &[("look", json!({}))]), reply("", &[("pay", json!({}))]), reply("done", &[])];
    let agent = scripted(replies).tools([look, pay]);
    let agents = Arc::new(AgentRegistry::new([agent.clone()]));
    let runtime = Runtime::new(store.clone()).with_queue(store.queue()).with_agents(agents);
    runtime.enqueue(&agent, "Pay.", EnqueueOptions::default()).await.unwrap();
    let stop = CancellationToken::new();
    let (ended, taken, lease) = (stop.clone(), AtomicUsize::new(0), store.clone());
    let options = WorkerOptions { poll: std::time::Duration::from_millis(10), ..WorkerOptions::default() };
    let worker = Worker::new(runtime.clone()).with_options(options).with_report(move |event| match event {
        // It is taken again by the worker that has released it, and does nothing before the lease is renewed.
        WorkerEvent::Taken { .. } if taken.fetch_add(1, Ordering::SeqCst) > 0 => lease.renew_lease(),
        WorkerEvent::Rested { rest, .. } => {
            assert_eq!(rest, Rest::Finished);
            ended.cancel();
        }
        WorkerEvent::Taken { .. } => {}
        other => panic!("{other:?}"),
    });
    tokio::time::timeout(std::time::Duration::from_secs(60), worker.run(stop)).await.unwrap().unwrap();
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}
