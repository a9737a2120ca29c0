//! Expiry: old sessions are listed, and those that others need stay.

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    Batch, EvaluationStarted, JournalState, Origin, Position, SessionCreated, SessionSummary,
};
use backstitch_core::ports::{ClaimMode, IndexedStatus, Store as _};
use backstitch_core::time::{Clock as _, Timestamp};
use backstitch_store::{Expiry, SqliteStore};
use backstitch_testkit::{block_on, sample};

use super::support::{Temporary, claim};

fn at(day: u64) -> Timestamp {
    sample::clock().now().saturating_add(std::time::Duration::from_secs(day * 24 * 60 * 60))
}

/// Creates a session with a summary, and releases it.
fn indexed(store: &SqliteStore, seed: u64, day: u64, state: JournalState, origin: Origin) -> SessionId {
    let session = sample::session(seed);
    let lease = claim(store, session, ClaimMode::IfFree).unwrap();
    let created = SessionCreated { origin: origin.clone(), ..sample::created(session) };
    let mut batch = Batch::at(created.created_at).with(created);
    batch.summarize(SessionSummary {
        position: Position::new(1),
        updated_at: at(day),
        state,
        origin,
        ..sample::summary(session)
    });
    block_on(store.append(session, Position::START, lease.fence, batch)).unwrap();
    block_on(store.release(lease)).unwrap();
    session
}

fn expired(store: &SqliteStore, expiry: Expiry) -> Vec<SessionId> {
    store.expired(&expiry).unwrap()
}

#[test]
fn age_and_status_decide() {
    let store = Temporary::new();
    let idle = indexed(&store, 1, 1, JournalState::Idle, Origin::Root);
    let failed = indexed(&store, 2, 1, JournalState::Failed, Origin::Root);
    let paused = indexed(&store, 3, 1, JournalState::Paused, Origin::Root);
    let open = indexed(&store, 4, 1, JournalState::Open, Origin::Root);
    let young = indexed(&store, 5, 9, JournalState::Idle, Origin::Root);
    let held = indexed(&store, 6, 1, JournalState::Idle, Origin::Root);
    let _lease = claim(&*store, held, ClaimMode::IfFree).unwrap();
    assert_eq!(expired(&store, Expiry::before(at(5))), [idle, failed]);
    assert_eq!(expired(&store, Expiry::before(at(1))), []);
    assert_eq!(expired(&store, Expiry::before(at(10))), [idle, failed, young]);
    let named = Expiry::before(at(5)).with_statuses([IndexedStatus::Paused, IndexedStatus::Interrupted]);
    assert_eq!(expired(&store, named), [paused, open]);
    let running = Expiry::before(at(10)).with_statuses(IndexedStatus::ALL);
    assert!(!expired(&store, running).contains(&held));
}

#[test]
fn what_others_need_stays() {
    let store = Temporary::new();
    let call: CallId = sample::ids(9).next();
    let fork = |session| Origin::Fork { session, position: Position::new(1) };
    // An old session with a young fork, and one whose fork is old too.
    let kept = indexed(&store, 1, 1, JournalState::Idle, Origin::Root);
    let _young = indexed(&store, 2, 9, JournalState::Idle, fork(kept));
    let old = indexed(&store, 3, 1, JournalState::Idle, Origin::Root);
    let old_fork = indexed(&store, 4, 1, JournalState::Idle, fork(old));
    // A session with a sub-agent that has ended, and one with a sub-agent that has not.
    let calling = indexed(&store, 5, 1, JournalState::Idle, Origin::Root);
    let _ended = indexed(&store, 6, 9, JournalState::Idle, Origin::Call { session: calling, call });
    let waiting = indexed(&store, 7, 1, JournalState::Idle, Origin::Root);
    let child = indexed(&store, 8, 1, JournalState::Open, Origin::Call { session: waiting, call });
    let lease = claim(&*store, child, ClaimMode::IfFree).unwrap();
    let started = EvaluationStarted::new(sample::ids(9).next(), "shop", "tailor");
    let batch = Batch::at(at(1)).with(started);
    block_on(store.append(child, Position::new(1), lease.fence, batch)).unwrap();
    block_on(store.release(lease)).unwrap();
    // A session whose sub-agent was forked, and the fork stays.
    let parent = indexed(&store, 9, 1, JournalState::Idle, Origin::Root);
    let forked = indexed(&store, 10, 1, JournalState::Idle, Origin::Call { session: parent, call });
    let _fork = indexed(&store, 11, 9, JournalState::Idle, fork(forked));
    assert_eq!(expired(&store, Expiry::before(at(5))), [old, old_fork, calling]);
}

#[test]
fn a_session_that_is_not_indexed_stays() {
    let store = Temporary::new();
    let session = indexed(&store, 1, 1, JournalState::Idle, Origin::Root);
    let lease = claim(&*store, session, ClaimMode::IfFree).unwrap();
    block_on(store.append(session, Position::new(1), lease.fence, sample::notes(["later"]))).unwrap();
    block_on(store.release(lease)).unwrap();
    assert_eq!(block_on(store.unindexed(9)).unwrap(), [session]);
    assert_eq!(expired(&store, Expiry::before(at(5))), []);
}
