//! Properties of releases: what becomes of a session that a worker gives back.

use std::time::Duration;

use backstitch_core::journal::QueueEntry;
use backstitch_core::ports::{ClaimMode, Queue, QueueRest, QueueState, Store, StoreError, TakenSession};
use backstitch_testkit::{block_on, sample};

use super::super::claim;
use super::{enqueued, entry, future, listed, state_of, take, take_one};

fn release(queue: &dyn Queue, taken: TakenSession, rest: QueueRest) {
    block_on(queue.release(taken, rest)).expect("a session that was taken can be released");
}

/// What is done is gone from the queue and free. Its key stays used.
pub(crate) fn a_session_that_is_done_leaves_the_queue(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry().with_key("k"));
    let taken = take_one(queue);
    release(queue, taken.clone(), QueueRest::Done);
    assert!(listed(queue).is_empty());
    assert_eq!(block_on(store.holder(session)).expect("holders are known"), None);
    assert_eq!(block_on(queue.keyed("k")).expect("keys can be read"), Some(session));
    assert_fails!(block_on(queue.release(taken, QueueRest::Done)), StoreError::Fenced { .. });
}

/// Each failure counts, a pause of the worker does not, and a success starts again.
pub(crate) fn attempts_are_counted_until_one_succeeds(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry().with_priority(4).with_tag("t"));
    let retry = |after, reason: &str| QueueRest::Retry { after, reason: reason.to_owned() };
    for attempt in 0..3 {
        let taken = take_one(queue);
        assert_eq!(taken.attempts, attempt);
        assert_eq!((taken.entry.priority, taken.entry.tags.len()), (4, 1), "the entry stays");
        release(queue, taken, retry(Duration::ZERO, &format!("failure {attempt}\0")));
    }
    let found = &listed(queue)[0];
    assert_eq!((found.attempts, found.reason.as_deref()), (3, Some("failure 2\u{fffd}")));
    let taken = take_one(queue);
    release(queue, taken, QueueRest::Ready);
    let taken = take_one(queue);
    release(queue, taken, QueueRest::Later { after: Duration::ZERO });
    let taken = take_one(queue);
    assert_eq!(taken.attempts, 3);
    release(queue, taken, QueueRest::Wait { until: None });
    let found = &listed(queue)[0];
    assert_eq!((found.state, found.attempts, &found.reason), (QueueState::Waiting, 0, &None));
    assert!(take(queue, 1).is_empty());

    // A backoff is a time of the store.
    block_on(queue.enqueue(session, entry())).expect("it exists");
    let taken = take_one(queue);
    release(queue, taken, retry(Duration::from_secs(3600), "later"));
    assert!(take(queue, 1).is_empty());
    assert_eq!(state_of(queue, session), Some(QueueState::Waiting));
    assert!(listed(queue)[0].entry.due.is_some());
    block_on(queue.enqueue(session, entry())).expect("it exists");
    let taken = take_one(queue);
    release(queue, taken, QueueRest::Wait { until: Some(future(3)) });
    assert_eq!(listed(queue)[0].entry.due, Some(future(3)));
}

/// A session that was given up is listed with the reason, is not taken, and is not woken by items.
pub(crate) fn a_session_that_failed_stays_until_it_is_retried(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry());
    let taken = take_one(queue);
    block_on(store.send(session, sample::item("meanwhile"))).expect("it exists");
    release(queue, taken, QueueRest::Fail { reason: "no model".to_owned() });
    block_on(store.send(session, sample::item("hello"))).expect("it exists");
    assert!(take(queue, 1).is_empty());
    let found = &listed(queue)[0];
    assert_eq!(
        (found.state, found.attempts, found.reason.as_deref()),
        (QueueState::Failed, 1, Some("no model"))
    );
    let retry = || block_on(queue.retry(session)).expect("it exists");
    assert_eq!([retry(), retry()], [true, false]);
    let taken = take_one(queue);
    assert_eq!((taken.attempts, taken.claim.session), (0, session));
    assert_fails!(block_on(queue.retry(sample::session(9))), StoreError::NotFound { .. });
}

/// What no worker holds can be taken out, whatever it waits for. Its key stays used, and it can be enqueued again.
pub(crate) fn a_session_is_taken_out_unless_it_is_held(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, QueueEntry { due: Some(future(1)), ..entry().with_key("k") });
    let dequeue = || block_on(queue.dequeue(session)).expect("it exists");
    assert_eq!([dequeue(), dequeue()], [true, false]);
    assert!(listed(queue).is_empty());
    assert_eq!(block_on(queue.keyed("k")).expect("keys can be read"), Some(session));
    block_on(queue.enqueue(session, entry())).expect("it exists");
    let taken = take_one(queue);
    assert!(!dequeue(), "a worker holds it");
    assert_eq!(state_of(queue, session), Some(QueueState::Held));
    release(queue, taken, QueueRest::Fail { reason: "no model".to_owned() });
    assert!(dequeue());
    assert_fails!(block_on(queue.dequeue(sample::session(9))), StoreError::NotFound { .. });
}

/// A worker whose session was taken over cannot put it back. Once the other holder has released it, it is ready again.
pub(crate) fn a_stale_claim_releases_nothing(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry());
    let taken = take_one(queue);
    let other = claim(store, session, "person", ClaimMode::TakeOver).expect("a session can be taken over");
    assert_fails!(
        block_on(queue.release(taken, QueueRest::Done)),
        StoreError::Fenced { session: fenced, .. } if fenced == session
    );
    assert_eq!(state_of(queue, session), Some(QueueState::Held));
    let recover = || block_on(queue.recover()).expect("sessions can be recovered");
    assert_eq!(recover(), 0);
    block_on(store.release(other)).expect("it is held");
    assert_eq!([recover(), recover()], [1, 0]);
    assert_eq!(take_one(queue).attempts, 0);
}
