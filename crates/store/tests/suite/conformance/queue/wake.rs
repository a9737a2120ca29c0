//! Properties of wake-ups: none is lost, and none comes twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use backstitch_core::ports::{Queue, QueueRest, QueueState, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::super::append;
use super::{enqueued, entry, future, state_of, take, take_one};

const WAIT: QueueRest = QueueRest::Wait { until: None };

fn release(queue: &dyn Queue, taken: super::TakenSession, rest: QueueRest) {
    block_on(queue.release(taken, rest)).expect("a session that was taken can be released");
}

/// Items of every way to an inbox wake a session that waits, also before its time.
pub(crate) fn an_item_wakes_a_session_that_waits(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry());
    let taken = take_one(queue);
    release(queue, taken, WAIT);
    assert!(take(queue, 1).is_empty());
    block_on(store.send(session, sample::item("one"))).expect("it exists");
    let taken = take_one(queue);
    release(queue, taken, QueueRest::Wait { until: Some(future(1)) });
    assert!(block_on(queue.deliver(session, "w", sample::item("two"))).expect("it exists"));
    assert_eq!(state_of(queue, session), Some(QueueState::Ready));
    assert_eq!(block_on(store.inbox(session)).expect("inboxes can be read").len(), 2);
    // The items wait, but do not make it ready again.
    let taken = take_one(queue);
    release(queue, taken, WAIT);
    assert!(take(queue, 1).is_empty());
}

/// An item that comes while a worker holds the session counts when it is released, even as done.
pub(crate) fn an_item_that_came_meanwhile_makes_a_released_session_ready(
    store: &dyn Store,
    queue: &dyn Queue,
) {
    let session = enqueued(store, 1, entry());
    for rest in [WAIT, QueueRest::Wait { until: Some(future(1)) }, QueueRest::Done] {
        let taken = take_one(queue);
        block_on(store.send(session, sample::item("meanwhile"))).expect("it exists");
        assert!(take(queue, 1).is_empty());
        release(queue, taken, rest);
        assert_eq!(state_of(queue, session), Some(QueueState::Ready));
    }
    let taken = take_one(queue);
    release(queue, taken, QueueRest::Done);
    assert_eq!(state_of(queue, session), None);
}

/// A word delivers one item, also after the item was taken out of the inbox.
pub(crate) fn an_item_is_delivered_once(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry());
    let deliver = |once: &str| block_on(queue.deliver(session, once, sample::item(once)));
    assert!(deliver("w").expect("it exists"));
    assert!(!deliver("w").expect("it exists"));
    assert!(deliver("v").expect("it exists"));
    let inbox = || block_on(store.inbox(session)).expect("inboxes can be read");
    assert_eq!(inbox().len(), 2);
    let taken = take_one(queue);
    let mut batch = sample::notes(["took"]);
    inbox().iter().for_each(|(id, _)| _ = batch.take(*id));
    let head = block_on(store.head(session)).expect("it exists");
    append(store, session, head, taken.claim.fence, batch).expect("its worker may write");
    assert!(!deliver("w").expect("it exists"));
    assert!(inbox().is_empty());
    release(queue, taken, WAIT);
    assert!(take(queue, 1).is_empty());
    let unknown = block_on(queue.deliver(sample::session(9), "w", sample::item("x")));
    assert_fails!(unknown, StoreError::NotFound { .. });
    assert_fails!(deliver(""), StoreError::QueueWord { .. });
}

/// Items are delivered while workers take, empty the inbox and release. In the end none is left, though nobody looks at a session that
/// is not ready.
pub(crate) fn no_wake_up_is_lost(store: &dyn Store, queue: &dyn Queue) {
    const ITEMS: usize = 120;
    const SESSIONS: u64 = 3;
    let sessions: Vec<_> = (1..=SESSIONS).map(|seed| enqueued(store, seed, entry())).collect();
    let done = AtomicBool::new(false);
    let drive = || {
        loop {
            let is_last = done.load(Ordering::SeqCst);
            let taken = take(queue, 1);
            if taken.is_empty() && is_last {
                return;
            }
            for taken in taken {
                let session = taken.claim.session;
                let inbox = block_on(store.inbox(session)).expect("inboxes can be read");
                if !inbox.is_empty() {
                    let mut batch = sample::notes(["took"]);
                    inbox.iter().for_each(|(id, _)| _ = batch.take(*id));
                    let head = block_on(store.head(session)).expect("it exists");
                    append(store, session, head, taken.claim.fence, batch).expect("its worker may write");
                }
                release(queue, taken, WAIT);
            }
        }
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(drive), scope.spawn(drive)];
        for number in 0..ITEMS {
            for session in &sessions {
                block_on(store.send(*session, sample::item(&number.to_string()))).expect("it exists");
            }
        }
        done.store(true, Ordering::SeqCst);
        workers.into_iter().for_each(|worker| worker.join().expect("a worker ends"));
    });
    // One worker may have looked just before the other released.
    drive();
    for session in sessions {
        assert!(block_on(store.inbox(session)).expect("inboxes can be read").is_empty());
        assert_eq!(state_of(queue, session), Some(QueueState::Waiting));
    }
}
