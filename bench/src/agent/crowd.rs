//! Many concurrent sessions in one process, each with a model that has latency.

use std::sync::Arc;
use std::time::Duration;

use backstitch_providers::Provider;
use backstitch_runtime::{Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use serde_json::json;

use super::Failed;
use super::model::agent;
use crate::measure::Scope;
use crate::memory;
use crate::report::Report;

const SESSIONS: usize = 1_000;
const LATENCY: Duration = Duration::from_millis(50);

/// Turns with a call; one more answer ends each session.
const TURNS: usize = 2;

pub(super) const NAME: &str = "agent.crowd";

pub(super) fn run(report: &mut Report) {
    if let Err(error) = measure(report) {
        eprintln!("agent: {error}");
    }
}

/// Runs all sessions concurrently on one durable store. A single session would take `LATENCY` for each
/// answer.
fn measure(report: &mut Report) -> Result<(), Failed> {
    let threads = 2;
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
    let runtime = Runtime::new(store);
    // The first session allocates what all share.
    executor.block_on(session(runtime.clone(), Duration::ZERO))?;
    let before = memory::resident();
    memory::forget_peak();
    let clock = Scope::Process.start();
    executor.block_on(async {
        let all: Vec<_> = (0..SESSIONS).map(|_| tokio::spawn(session(runtime.clone(), LATENCY))).collect();
        for one in all {
            one.await??;
        }
        Ok::<_, Failed>(())
    })?;
    let elapsed = clock.elapsed();
    let params = json!({
        "sessions": SESSIONS, "latency_ms": LATENCY.as_millis() as u64, "answers": TURNS + 1, "calls": TURNS,
        "threads": threads, "store": "sqlite",
    });
    report.value("agent.crowd_wall", params.clone(), elapsed.wall.as_secs_f64() * 1e3, "ms");
    let per_session = elapsed.cpu.as_secs_f64() * 1e6 / SESSIONS as f64;
    report.value("agent.crowd_cpu_per_session", params.clone(), per_session, "us");
    if let (Some(before), Some(peak)) = (before, memory::peak()) {
        let grown = peak.saturating_sub(before) as f64;
        report.value("agent.crowd_peak_rss", params.clone(), peak as f64 / (1024.0 * 1024.0), "MiB");
        report.value("agent.crowd_memory_per_session", params, grown / SESSIONS as f64 / 1024.0, "KiB");
    }
    Ok(())
}

async fn session(runtime: Runtime, latency: Duration) -> Result<(), String> {
    let driven = async {
        let agent = agent(Provider::OpenAiChat, TURNS, latency)?;
        let driver = runtime.create(agent, SessionOptions::default()).await?;
        driver.start("sew").await?.answer()?;
        driver.session().release().await?;
        Ok::<_, Failed>(())
    };
    driven.await.map_err(|error| error.to_string())
}
