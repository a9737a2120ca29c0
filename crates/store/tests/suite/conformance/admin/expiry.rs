//! Properties of expiry: old sessions are listed, and those that others need are not.

use std::time::Duration;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Batch, EvaluationStarted, JournalState, Origin, Position, SessionSummary};
use backstitch_core::ports::{ClaimMode, Expiry, IndexedStatus, Store};
use backstitch_core::time::{Clock as _, Timestamp};
use backstitch_testkit::{block_on, sample};

use super::super::{Writer, claim, first_batch_of};
use super::HasAdmin;

fn at(day: u64) -> Timestamp {
    sample::clock().now().saturating_add(Duration::from_secs(day * 24 * 60 * 60))
}

/// Creates a session with a summary, and releases it.
fn summarized(store: &dyn Store, seed: u64, day: u64, state: JournalState, origin: Origin) -> SessionId {
    let session = sample::session(seed);
    let mut writer = Writer::claim(store, session);
    let mut batch = first_batch_of(session, origin.clone());
    batch.summarize(SessionSummary {
        position: Position::new(1),
        updated_at: at(day),
        state,
        origin,
        ..sample::summary(session)
    });
    writer.append(batch).expect("a claimed session can be created");
    writer.release()
}

/// Appends a batch to a session of one record, and releases it.
fn continue_session(store: &dyn Store, session: SessionId, batch: Batch) {
    let mut writer = Writer::claim(store, session);
    writer.next = Position::new(1);
    writer.append_all([batch]);
    writer.release();
}

fn expired(one: &dyn HasAdmin, expiry: Expiry) -> Vec<SessionId> {
    block_on(one.admin().expired(expiry)).expect("expired sessions can be listed")
}

/// A session expires by the time of its last record and by its status, unless a process holds it.
pub(crate) fn age_and_status_decide_about_expiry(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let store = one.store();
    let idle = summarized(store, 1, 1, JournalState::Idle, Origin::Root);
    let failed = summarized(store, 2, 1, JournalState::Failed, Origin::Root);
    let paused = summarized(store, 3, 1, JournalState::Paused, Origin::Root);
    let open = summarized(store, 4, 1, JournalState::Open, Origin::Root);
    let young = summarized(store, 5, 9, JournalState::Idle, Origin::Root);
    let held = summarized(store, 6, 1, JournalState::Idle, Origin::Root);
    let _lease =
        claim(store, held, "holder", ClaimMode::IfFree).expect("a session that is free can be claimed");
    assert_eq!(expired(one, Expiry::before(at(5))), [idle, failed]);
    assert_eq!(expired(one, Expiry::before(at(1))), []);
    assert_eq!(expired(one, Expiry::before(at(10))), [idle, failed, young]);
    assert_eq!(expired(one, Expiry::after_days(at(10), 5)), [idle, failed]);
    assert_eq!(expired(one, Expiry::after_days(at(10), u32::MAX)), [], "there is no such time");
    let named = Expiry::before(at(5)).with_statuses([IndexedStatus::Paused, IndexedStatus::Interrupted]);
    assert_eq!(expired(one, named), [paused, open]);
    let running = Expiry::before(at(10)).with_statuses(IndexedStatus::ALL);
    assert!(!expired(one, running).contains(&held));
}

/// A session stays if a fork of it stays, or if a sub-agent of it has not ended.
pub(crate) fn what_others_need_does_not_expire(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let store = one.store();
    let call: CallId = sample::ids(9).next();
    let fork = |session| Origin::Fork { session, position: Position::new(1) };
    // An old session with a young fork, and one whose fork is old too.
    let kept = summarized(store, 1, 1, JournalState::Idle, Origin::Root);
    let _young = summarized(store, 2, 9, JournalState::Idle, fork(kept));
    let old = summarized(store, 3, 1, JournalState::Idle, Origin::Root);
    let old_fork = summarized(store, 4, 1, JournalState::Idle, fork(old));
    // A session with a sub-agent that has ended, and one with a sub-agent that has not.
    let calling = summarized(store, 5, 1, JournalState::Idle, Origin::Root);
    let _ended = summarized(store, 6, 9, JournalState::Idle, Origin::Call { session: calling, call });
    let waiting = summarized(store, 7, 1, JournalState::Idle, Origin::Root);
    let child = summarized(store, 8, 1, JournalState::Open, Origin::Call { session: waiting, call });
    let started = EvaluationStarted::new(sample::ids(9).next(), "shop", "tailor");
    continue_session(store, child, Batch::at(at(1)).with(started));
    // A session whose sub-agent was forked, and the fork stays.
    let parent = summarized(store, 9, 1, JournalState::Idle, Origin::Root);
    let forked = summarized(store, 10, 1, JournalState::Idle, Origin::Call { session: parent, call });
    let _fork = summarized(store, 11, 9, JournalState::Idle, fork(forked));
    assert_eq!(expired(one, Expiry::before(at(5))), [old, old_fork, calling]);
}

/// Nothing is known about the age of a session without a summary.
pub(crate) fn a_session_that_is_not_indexed_does_not_expire(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let session = summarized(one.store(), 1, 1, JournalState::Idle, Origin::Root);
    continue_session(one.store(), session, sample::notes(["later"]));
    assert_eq!(block_on(one.store().unindexed(9)).expect("unindexed sessions are listed"), [session]);
    assert_eq!(expired(one, Expiry::before(at(5))), []);
}
