//! Listing sessions by the index. The aim: 10,000 sessions take at most 50 ms of processor time.

use std::sync::Arc;

use backstitch_core::journal::{Batch, EvaluationFinished, EvaluationOutcome, EvaluationStarted, Position};
use backstitch_core::ports::{ClaimMode, IndexedStatus, Owner, SessionQuery, Store};
use backstitch_core::view::JournalView;
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::{open, temporary};
use crate::measure::{Effort, time};
use crate::report::Report;

const SESSIONS: u64 = 10_000;

pub(crate) fn run(report: &mut Report) {
    let directory = temporary();
    let store = Arc::new(open(&directory));
    create(&store);
    let all = SessionQuery::new().with_limit(usize::MAX);
    let failed = SessionQuery::new().with_status(IndexedStatus::Failed).with_limit(50);
    let page = || block_on(store.query(all.clone())).expect("sessions can be listed");
    assert_eq!(page().sessions.len() as u64, SESSIONS);
    let effort = Effort { samples: 15, per_sample: 1 };
    report.time("store.list", json!({ "sessions": SESSIONS, "of": "all" }), &time(effort, page));
    let first = || block_on(store.query(SessionQuery::new().with_limit(50))).expect("sessions can be listed");
    report.time("store.list", json!({ "sessions": SESSIONS, "of": "the newest 50" }), &time(effort, first));
    let some = || block_on(store.query(failed.clone())).expect("sessions can be listed");
    report.time("store.list", json!({ "sessions": SESSIONS, "of": "50 that failed" }), &time(effort, some));
    let count = || block_on(store.count(SessionQuery::new())).expect("sessions can be counted");
    report.time("store.count", json!({ "sessions": SESSIONS }), &time(effort, count));
    let missing = || block_on(store.unindexed(1)).expect("sessions can be listed");
    report.time("store.unindexed", json!({ "sessions": SESSIONS }), &time(effort, missing));
}

/// Creates a store with many sessions in a directory, and returns their number.
pub(crate) fn many_sessions(directory: &std::path::Path) -> u64 {
    create(&Arc::new(SqliteStore::open(directory.join("store.db")).expect("a new store can be created")));
    SESSIONS
}

/// Sessions with an evaluation each, of which one in a hundred failed. Concurrent writers share syncs.
fn create(store: &Arc<SqliteStore>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
    runtime.block_on(async {
        for group in 0..SESSIONS / 500 {
            let mut tasks = tokio::task::JoinSet::new();
            for number in group * 500..(group + 1) * 500 {
                tasks.spawn(create_one(store.clone(), number));
            }
            while let Some(done) = tasks.join_next().await {
                done.expect("a session can be created");
            }
        }
    });
}

async fn create_one(store: Arc<SqliteStore>, number: u64) {
    let session = sample::session(number);
    let created = sample::created(session);
    let evaluation = sample::ids(number ^ (1 << 40)).next();
    let outcome = match number % 100 {
        0 => EvaluationOutcome::Failed,
        _ => EvaluationOutcome::Completed,
    };
    let mut batch = Batch::at(created.created_at)
        .with(created)
        .with(EvaluationStarted::new(evaluation, "bench", "tailor"))
        .with(EvaluationFinished::new(evaluation, outcome));
    let records: Vec<_> = batch.records(Position::START, batch.time()).collect();
    batch.summarize(JournalView::fold(&records).expect("it can be folded").summary());
    let claim = store.claim(session, Owner::new("bench"), ClaimMode::IfFree).await.expect("it is free");
    store.append(session, Position::START, claim.fence, batch).await.expect("it fits");
    store.release(claim).await.expect("it is held");
}
