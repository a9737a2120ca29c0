//! Sessions: dispatch, drafts, snapshots, rollback, and snapshots as JSON.

use backstitch_core::session::{CaptureOptions, Session, Slice, SlicePolicy, Snapshot};
use backstitch_testkit::sample;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::measure::{Effort, time, time_repeated, time_with};
use crate::report::Report;

const SIZES: [usize; 4] = [0, 100, 10_000, 100_000];

/// For operations that make a session grow: few runs per sample, so that its size stays about the same.
const FEW: Effort = Effort { samples: 201, per_sample: 64 };

/// An item of working state, of the size that findings, tasks and plan steps have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Finding {
    id: u64,
    file: String,
    text: String,
}

impl Slice for Finding {
    const NAME: &'static str = "bench/finding";
}

/// An item of a `Log` slice.
#[derive(Debug, Serialize, Deserialize)]
struct Logged(u64);

impl Slice for Logged {
    const NAME: &'static str = "bench/logged";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// An item of a `Journal` slice, which a rollback keeps.
#[derive(Debug, Serialize, Deserialize)]
struct Remark(u64);

impl Slice for Remark {
    const NAME: &'static str = "bench/said";
    const POLICY: SlicePolicy = SlicePolicy::Journal;
}

pub(crate) fn run(report: &mut Report) {
    for items in SIZES {
        let session = session_of(items);
        dispatch(report, &session, items);
        snapshot_and_rollback(report, &session, items);
        drafts(report, &session, items);
    }
    as_json(report);
}

fn finding(id: usize) -> Finding {
    let file = format!("src/module_{}/file_{}.rs", id % 40, id % 700);
    Finding { id: id as u64, file, text: "the seam between these two modules is not tested".into() }
}

/// A session with `items` items of working state.
fn session_of(items: usize) -> Session {
    let mut session = Session::new(sample::session(1), sample::clock());
    session.seed((0..items).map(finding)).expect("items of a State slice can be seeded");
    session
}

/// The session with `items` items of a `Log` slice and of a `Journal` slice added.
fn with_logs(session: &Session, items: usize) -> Session {
    let mut session = session.clone();
    session.seed((0..items as u64).map(Logged)).expect("items of a Log slice can be seeded");
    for id in 0..items as u64 {
        session.append(Remark(id)).expect("a Journal slice can grow");
    }
    session
}

/// A clone that shares the tail of no slice with the original.
fn own(session: &Session) -> Session {
    let mut session = session.clone();
    add(&mut session);
    session
}

fn add(session: &mut Session) {
    session.append(finding(0)).expect("an item can be appended");
}

/// A session to change repeatedly, with the items to append. They are created here, outside of the measured
/// time.
fn ready(session: &Session) -> (Session, Vec<Finding>) {
    (own(session), (0..FEW.per_sample).map(finding).collect())
}

fn next(items: &mut Vec<Finding>) -> Finding {
    items.pop().expect("there is an item for each run")
}

fn dispatch(report: &mut Report, session: &Session, items: usize) {
    let params = json!({ "items": items });
    let timing = time_repeated(FEW, || ready(session), |(session, items)| session.append(next(items)));
    report.time("session.dispatch", params.clone(), &timing);

    let after_snapshot = || {
        let session = own(session);
        let snapshot = session.snapshot();
        (session, snapshot, vec![finding(0)])
    };
    let timing = time_with(Effort::SMALL, after_snapshot, |(session, _, items)| session.append(next(items)));
    report.time("session.first_dispatch_after_snapshot", params, &timing);
}

fn snapshot_and_rollback(report: &mut Report, session: &Session, items: usize) {
    for (slices, session) in [("state", session.clone()), ("state, log, journal", with_logs(session, items))]
    {
        let params = json!({ "items": items, "slices": slices });
        report.time("session.snapshot", params.clone(), &time(Effort::SMALL, || session.snapshot()));
        let timing = time(Effort::SMALL, || drop(session.snapshot()));
        report.time("session.snapshot_and_drop", params.clone(), &timing);

        let snapshot = session.snapshot();
        let back =
            |session: &mut Session| session.rollback(&snapshot).expect("the snapshot is of this session");
        let timing = time_with(Effort::SMALL, || own(&session), back);
        report.time("session.rollback", params.clone(), &timing);

        if slices != "state" {
            let logging = || {
                let mut session = own(&session);
                session.append(Logged(0)).expect("an item can be appended");
                session.append(Remark(0)).expect("an item can be appended");
                session
            };
            let timing = time_with(Effort::SMALL, logging, back);
            report.time("session.rollback_keeping_new_logs", params, &timing);
        }
    }
}

fn drafts(report: &mut Report, session: &Session, items: usize) {
    let params = json!({ "items": items });
    let timing = time(Effort::SMALL, || drop(session.draft()));
    report.time("session.draft_and_drop", params.clone(), &timing);

    let append = |session: &Session, items: &mut Vec<Finding>| {
        let mut draft = session.draft();
        draft.append(next(items)).expect("an item can be appended");
        draft
    };
    let commit = |(session, items): &mut (Session, Vec<Finding>)| {
        let draft = append(session, items);
        session.commit(draft).expect("the session has no other writer")
    };
    let timing = time_repeated(FEW, || ready(session), commit);
    report.time("session.draft_append_commit", params.clone(), &timing);

    let timing = time_repeated(FEW, || ready(session), |(session, items)| drop(append(session, items)));
    report.time("session.draft_append_drop", params, &timing);
}

fn as_json(report: &mut Report) {
    const ITEMS: usize = 10_000;
    let session = session_of(ITEMS);
    let snapshot = session.snapshot_with(CaptureOptions::include_all());
    let text = snapshot.to_json().expect("the items can be stored");
    let params = json!({ "items": ITEMS, "bytes": text.len() });

    report.time("snapshot.to_json", params.clone(), &time(Effort::LARGE, || snapshot.to_json()));
    let read = || Snapshot::from_json(&text).expect("it was written here");
    report.time("snapshot.from_json", params.clone(), &time(Effort::LARGE, read));
    let restore = || {
        let mut fresh = Session::new(sample::session(2), sample::clock());
        fresh.register_slice::<Finding>();
        fresh.rollback(&read()).expect("a fresh session takes any snapshot");
        fresh
    };
    report.time("snapshot.from_json_and_restore", params, &time(Effort::LARGE, restore));

    // The cost of serialization and parsing alone: the typed items, as an array.
    let items: Vec<Finding> = (0..ITEMS).map(finding).collect();
    let bare = serde_json::to_string(&items).expect("the items can be stored");
    let params = json!({ "items": ITEMS, "bytes": bare.len() });
    let write = || serde_json::to_string(&items);
    report.time("limit.typed_to_json", params.clone(), &time(Effort::LARGE, write));
    let typed = || serde_json::from_str::<Vec<Finding>>(&bare);
    report.time("limit.typed_from_json", params.clone(), &time(Effort::LARGE, typed));
    let plain = || serde_json::from_str::<serde_json::Value>(&bare);
    report.time("limit.value_from_json", params, &time(Effort::LARGE, plain));
}
