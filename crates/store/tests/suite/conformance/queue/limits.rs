//! Properties of limits: how many sessions with a tag are held at a time.

use std::thread;

use backstitch_core::ports::{Queue, QueueLimit, QueueRest, Store};
use backstitch_testkit::{block_on, sample};

use super::{enqueued, entry, sessions_of, take};

fn set(queue: &dyn Queue, tag: &str, most: Option<u32>) {
    block_on(queue.set_limit(tag, most)).expect("limits can be set");
}

/// No more sessions with a tag are held than its limit says. Those without one, and those after them, are not held up.
pub(crate) fn limits_hold_for_each_tag(store: &dyn Store, queue: &dyn Queue) {
    for seed in 1..=4 {
        enqueued(store, seed, entry().with_priority(9).with_tag("team=a").with_tag("slow"));
    }
    for seed in 5..=6 {
        enqueued(store, seed, entry().with_priority(5).with_tag("team=b").with_tag("slow"));
    }
    enqueued(store, 7, entry().with_tag("other"));
    set(queue, "team=a", Some(2));
    set(queue, "slow", Some(3));
    set(queue, "none", Some(0));
    let taken = take(queue, 10);
    assert_eq!(sessions_of(&taken), [1, 2, 5, 7].map(sample::session));
    assert!(take(queue, 10).is_empty());
    let limit = |tag: &str, most, held| QueueLimit { tag: tag.into(), most, held };
    let limits = block_on(queue.limits()).expect("limits can be read");
    assert_eq!(limits, [limit("none", 0, 0), limit("slow", 3, 3), limit("team=a", 2, 2)]);

    // One is released, and the first in the order takes its place.
    block_on(queue.release(taken[0].clone(), QueueRest::Done)).expect("it is held");
    assert_eq!(sessions_of(&take(queue, 10)), [sample::session(3)]);
    set(queue, "slow", None);
    set(queue, "team=a", Some(3));
    assert_eq!(sessions_of(&take(queue, 10)), [4, 6].map(sample::session));
}

/// Workers that take at the same time do not exceed a limit together.
pub(crate) fn limits_hold_for_workers_side_by_side(store: &dyn Store, queue: &dyn Queue) {
    for seed in 1..=20 {
        enqueued(store, seed, entry().with_tag("slow"));
    }
    set(queue, "slow", Some(5));
    let held = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..10).map(|_| take(queue, 2).len()).sum::<usize>())).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).sum::<usize>()
    });
    let rest = take(queue, 20).len();
    assert_eq!(held + rest, 5);
}
