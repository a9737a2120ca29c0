//! Claims from a long queue: 100,000 sessions are ready, and 100,000 more of a higher priority wait for a time that has not come.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, QueueEntry};
use backstitch_core::ports::{ClaimMode, Owner, Queue, Store, TakeRequest};
use backstitch_store::{PostgresAddress, PostgresStore, SqliteStore};
use backstitch_testkit::postgres::{TestServer, schema_of};
use backstitch_testkit::sample;
use rusqlite::{Connection, params};
use serde_json::json;
use tokio::task::JoinSet;

use super::{AGENT, add_sessions, executor, percentile};
use crate::agent::Failed;
use crate::aims;
use crate::report::Report;

/// Sessions that are ready, and as many timers.
pub(super) const QUEUED: usize = 100_000;

/// Workers, the sessions that each takes at a time, and how often each does.
const MEASURED: [(usize, usize, usize); 2] = [(1, 1, 500), (8, 8, 250)];

pub(super) fn measure_server(report: &mut Report, server: &TestServer) -> Result<(), Failed> {
    let address = server.address();
    let store = Arc::new(PostgresStore::open(&PostgresAddress::parse(&address)?)?);
    let executor = executor()?;
    executor.block_on(enqueue_one(&*store))?;
    let schema = schema_of(&address);
    server.sql(&add_sessions(schema, QUEUED, 0, "now()", "ready"));
    server.sql(&add_sessions(
        schema,
        QUEUED,
        9,
        "now() + interval '1 day' * random() + interval '1 hour'",
        "waiting",
    ));
    server.sql("ANALYZE");
    for measured in MEASURED {
        executor.block_on(measure(report, "postgres", store.clone(), measured))?;
    }
    Ok(())
}

pub(super) fn measure_file(report: &mut Report, path: &str) -> Result<(), Failed> {
    let store = Arc::new(SqliteStore::open(path)?);
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    let ids = sample::ids(9);
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
    for number in 0..2 * QUEUED {
        let session: SessionId = ids.next();
        let is_timer = number >= QUEUED;
        let (priority, state) = if is_timer { (9, "waiting") } else { (0, "ready") };
        let due = if is_timer { now + 3_600_000_000 + i64::try_from(number)? } else { now };
        transaction
            .prepare_cached("INSERT INTO sessions (session) VALUES (?1)")?
            .execute([session.to_string()])?;
        let row = transaction.last_insert_rowid();
        transaction
            .prepare_cached(
                "INSERT INTO queue (session, agent, priority, due, tags, state, is_begun, attempts)
                VALUES (?1, ?2, ?3, ?4, '[]', ?5, 1, 0)",
            )?
            .execute(params![row, AGENT, priority, due, state])?;
    }
    transaction.commit()?;
    let executor = executor()?;
    for measured in MEASURED {
        executor.block_on(measure(report, "sqlite", store.clone(), measured))?;
    }
    Ok(())
}

/// Enqueues the session that all others are copies of.
async fn enqueue_one(store: &dyn Store) -> Result<(), Failed> {
    let created = sample::created(sample::session(1));
    let claim = store.claim(created.session_id, Owner::new("bench"), ClaimMode::IfFree).await?;
    let mut batch = Batch::at(created.created_at).with(created);
    batch.enqueue(QueueEntry::new(AGENT));
    store.append(claim.session, Position::START, claim.fence, batch).await?;
    store.release(claim).await?;
    Ok(())
}

async fn measure(
    report: &mut Report,
    store: &str,
    queue: Arc<dyn Queue>,
    (workers, batch, calls): (usize, usize, usize),
) -> Result<(), Failed> {
    let began = Instant::now();
    let mut all = JoinSet::new();
    for worker in 0..workers {
        all.spawn(take(queue.clone(), worker, batch, calls));
    }
    let (mut claimed, mut times) = (0, Vec::new());
    while let Some(done) = all.join_next().await {
        let (count, of_worker) = done??;
        claimed += count;
        times.extend(of_worker);
    }
    let rate = claimed as f64 / began.elapsed().as_secs_f64();
    let params = json!({ "store": store, "workers": workers, "batch": batch, "claimed": claimed, "queued": QUEUED,
        "timers": QUEUED });
    let slow = percentile(&mut times, 0.99);
    if store == "postgres" && workers > 1 {
        aims::CLAIMS.judge(report, params.clone(), rate);
        aims::SLOW_CLAIM.judge(report, params.clone(), slow);
    } else {
        report.value("fleet.claims_per_second", params.clone(), rate, "sessions/s");
        report.precise("fleet.claim_p99", params.clone(), slow, "ms");
    }
    report.precise("fleet.claim_p50", params, percentile(&mut times, 0.5), "ms");
    Ok(())
}

/// Takes sessions again and again. Returns their number, and the milliseconds of each time.
async fn take(
    queue: Arc<dyn Queue>,
    worker: usize,
    batch: usize,
    calls: usize,
) -> Result<(usize, Vec<f64>), Failed> {
    let owner = Owner::new(format!("bench {worker}"));
    let request = TakeRequest { owner, agents: vec![AGENT.to_owned()], limit: batch };
    let (mut claimed, mut times) = (0, Vec::with_capacity(calls));
    for _ in 0..calls {
        let began = Instant::now();
        claimed += queue.take(request.clone()).await?.len();
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((claimed, times))
}
