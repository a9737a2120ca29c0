//! Properties of queues that many use at a time.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;

use backstitch_core::ports::{Queue, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{enqueued, entry, listed, sessions_of, take, try_enqueued};

/// Of callers that enqueue with the same key at the same time one creates a session, and the others get its id.
pub(crate) fn of_many_callers_with_a_key_one_enqueues(store: &dyn Store, queue: &dyn Queue) {
    const CALLERS: u64 = 16;
    let start = Barrier::new(CALLERS as usize);
    let call = |seed: u64| {
        start.wait();
        try_enqueued(store, seed, entry().with_key("once"))
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let callers: Vec<_> = (1..=CALLERS).map(|seed| scope.spawn(move || call(seed))).collect();
        callers.into_iter().map(|caller| caller.join().expect("a caller ends")).collect()
    });
    let winners: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok().copied()).collect();
    let [winner] = winners[..] else { panic!("{outcomes:?}") };
    for outcome in outcomes {
        match outcome {
            Ok(session) => assert_eq!(session, winner),
            Err(StoreError::KeyUsed { key, session }) => {
                assert_eq!((key.as_str(), session), ("once", winner))
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(block_on(queue.keyed("once")).expect("keys can be read"), Some(winner));
    assert_eq!(block_on(store.sessions()).expect("sessions can be listed"), [winner]);
    assert_eq!(listed(queue).len(), 1);
}

/// Workers that take at the same time get all sessions, each once.
pub(crate) fn a_session_is_taken_by_one_of_many(store: &dyn Store, queue: &dyn Queue) {
    const SESSIONS: u64 = 24;
    for seed in 1..=SESSIONS {
        enqueued(store, seed, entry().with_priority((seed % 3) as i16));
    }
    let work = || {
        let mut all = Vec::new();
        while all.len() < SESSIONS as usize {
            let taken = take(queue, 2);
            // Another one may be looking at the last sessions in this moment.
            if taken.is_empty() && listed(queue).iter().all(|queued| queued.state == super::QueueState::Held)
            {
                break;
            }
            all.extend(sessions_of(&taken));
        }
        all
    };
    let taken: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..6).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker ends")).collect()
    });
    let unique: HashSet<_> = taken.iter().copied().collect();
    assert_eq!(taken.len(), unique.len(), "a session was taken twice: {taken:?}");
    assert_eq!(unique, (1..=SESSIONS).map(sample::session).collect());
}
