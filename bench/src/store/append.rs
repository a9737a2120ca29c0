//! Appends: one session, and ten concurrent sessions.

use std::thread;

use backstitch_core::journal::{Batch, Position};
use backstitch_core::ports::Store;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::bare::Bare;
use super::{claim, open, temporary};
use crate::aims;
use crate::measure::{Samples, Scope, once};
use crate::report::{Report, ratio};

const TURNS: usize = 400;

pub(crate) fn run(report: &mut Report) {
    let (alone, sync) = one_session(report);
    ten_sessions(report, alone, sync);
}

/// Measures the batches of a conversation, each with a bare commit of its rows. Returns the appends per
/// second, and the seconds of a bare commit.
fn one_session(report: &mut Report) -> (f64, f64) {
    let journal = sample::conversation(TURNS);
    let directory = temporary();
    let (store, bare) = (open(&directory), Bare::new());
    let claim = claim(&store, journal.session);
    let mut next = Position::START;
    let (mut appends, mut commits) = (Samples::default(), Samples::default());
    let before = store.counters();
    for batch in &journal.batches {
        let (records, objects) = batch.clone().into_records(next);
        let texts: Vec<String> =
            records.iter().map(|record| record.encode().expect("it can be stored")).collect();
        let batch = batch.clone();
        let append = || block_on(store.append(journal.session, next, claim.fence, batch)).expect("it fits");
        let after = appends.measure(Scope::Thread, append);
        commits.measure(Scope::Thread, || bare.commit(next.number() as i64, &texts, &objects));
        next = after;
    }
    let counted = store.counters();
    let (ours, theirs) = (appends.timing(), commits.timing());
    let params = json!({ "sessions": 1, "batches": appends.len(), "records": next.number() });
    report.time("store.append", params.clone(), &ours);
    report.time("limit.bare_commit_of_the_rows", params, &theirs);
    let params = json!({ "of": "median of interleaved pairs" });
    aims::APPEND_WALL.judge(report, params, appends.median_ratio(&commits));
    aims::APPEND_CPU.judge(report, json!({ "of": "sum" }), appends.cpu_ratio(&commits));
    let syncs = (counted.commits - before.commits) as f64 / TURNS as f64;
    let params = json!({ "batches_per_turn": journal.batches.len() as f64 / TURNS as f64, "checkpoints": counted.checkpoints });
    report.value("store.syncs_per_turn", params, ratio(syncs), "syncs");
    (1e9 / ours.median, theirs.median / 1e9)
}

/// Measures ten sessions on ten threads, each appending as fast as it can.
fn ten_sessions(report: &mut Report, alone: f64, sync: f64) {
    const SESSIONS: u64 = 10;
    const APPENDS: usize = 200;
    let directory = temporary();
    let store = open(&directory);
    let claims: Vec<_> = (0..SESSIONS).map(|seed| claim(&store, sample::session(seed))).collect();
    for claim in &claims {
        let created = sample::created(claim.session);
        let batch = Batch::at(created.created_at).with(created);
        block_on(store.append(claim.session, Position::START, claim.fence, batch)).expect("it fits");
    }
    let batches = &sample::conversation(60).batches;
    let before = store.counters();
    let ((), elapsed) = once(|| {
        thread::scope(|scope| {
            for claim in &claims {
                let store = &store;
                scope.spawn(move || {
                    let mut next = Position::new(1);
                    for batch in batches.iter().skip(1).cycle().take(APPENDS) {
                        let append = store.append(claim.session, next, claim.fence, batch.clone());
                        next = block_on(append).expect("it fits");
                    }
                });
            }
        });
    });
    let after = store.counters();
    let appends = (after.appends - before.appends) as f64;
    let commits = (after.commits - before.commits) as f64;
    let rate = appends / elapsed.wall.as_secs_f64();
    let params = json!({ "sessions": 1 });
    report.value("store.appends_per_second", params, alone, "appends/s");
    let params = json!({ "sessions": SESSIONS, "appends": appends, "bare_sync_ms": ratio(sync * 1e3) });
    report.value("store.appends_per_second", params.clone(), rate, "appends/s");
    aims::TEN_SESSIONS.judge(report, params, rate / alone);
    let params = json!({ "sessions": SESSIONS, "commits": commits });
    report.value("store.appends_per_sync", params, ratio(appends / commits), "appends");
}
