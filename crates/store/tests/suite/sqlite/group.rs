//! Concurrent appends share one sync, and a dropped one does not affect the others.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use backstitch_core::ports::{Store as _, StoreError};
use backstitch_testkit::{block_on, sample};
use futures_util::future::join_all;

use super::support::{Temporary, Writer, notes};

const SESSIONS: u64 = 10;

#[test]
fn a_lone_append_is_one_commit() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let before = store.counters();
    for index in 0..20 {
        writer.append(sample::notes([index.to_string(), "more".into()])).unwrap();
    }
    let after = store.counters();
    assert_eq!((after.appends - before.appends, after.commits - before.commits), (20, 20));
    let refused = block_on(store.append(
        writer.session(),
        backstitch_core::journal::Position::new(1),
        writer.claim.fence,
        sample::notes(["late"]),
    ));
    assert!(refused.is_err());
    assert_eq!(store.counters(), after, "what is refused is not committed");
}

#[test]
fn appends_without_a_sync_are_read_by_others_and_counted_as_no_sync() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let before = store.counters();
    let unsynced = |writer: &Writer<'_>, text: &str| {
        let batch = sample::notes([text]);
        block_on(store.append_unsynced(writer.session(), writer.next, writer.claim.fence, batch)).unwrap()
    };
    writer.next = unsynced(&writer, "one");
    writer.next = unsynced(&writer, "two");
    let after = store.counters();
    assert_eq!((after.appends - before.appends, after.commits - before.commits), (2, 0));
    let other = backstitch_store::SqliteStore::open(store.path()).unwrap();
    assert_eq!(notes(&other, writer.session()), ["one", "two"]);
    // Others wait for their sync, and the journal is one.
    writer.append(sample::notes(["three"])).unwrap();
    writer.next = unsynced(&writer, "four");
    assert_eq!(store.counters().commits - after.commits, 1);
    assert_eq!(notes(&*store, writer.session()), ["one", "two", "three", "four"]);
}

#[test]
fn sessions_on_one_thread_share_commits() {
    let store = Temporary::new();
    let mut writers: Vec<Writer<'_>> =
        (0..SESSIONS).map(|seed| Writer::create(&*store, sample::session(seed))).collect();
    let before = store.counters();
    for round in 0..20 {
        let appends = writers.iter().map(|writer| {
            let batch = sample::notes([format!("{} {round}", writer.session())]);
            store.append(writer.session(), writer.next, writer.claim.fence, batch)
        });
        let outcomes = block_on(join_all(appends));
        for (writer, outcome) in writers.iter_mut().zip(outcomes) {
            writer.next = outcome.unwrap();
        }
    }
    let after = store.counters();
    assert_eq!(after.appends - before.appends, 200);
    let commits = after.commits - before.commits;
    assert!(commits <= 40, "{commits} commits for 200 appends of ten sessions");
    for writer in &writers {
        let expected: Vec<String> = (0..20).map(|round| format!("{} {round}", writer.session())).collect();
        assert_eq!(notes(&*store, writer.session()), expected);
    }
}

#[test]
fn sessions_on_many_threads_share_commits() {
    let store = Temporary::new();
    thread::scope(|scope| {
        for seed in 0..SESSIONS {
            let store = &*store;
            scope.spawn(move || {
                let mut writer = Writer::create(store, sample::session(seed));
                for index in 0..50 {
                    writer.append(sample::notes([index.to_string()])).unwrap();
                }
            });
        }
    });
    let counters = store.counters();
    assert_eq!(counters.appends, SESSIONS * 51);
    assert!(counters.commits <= SESSIONS * 52, "{counters:?}");
    for seed in 0..SESSIONS {
        let expected: Vec<String> = (0..50).map(|index: u32| index.to_string()).collect();
        assert_eq!(notes(&*store, sample::session(seed)), expected);
    }
}

#[test]
fn a_refused_batch_does_not_disturb_those_that_it_is_committed_with() {
    let store = Temporary::new();
    let writers: Vec<Writer<'_>> =
        (0..SESSIONS).map(|seed| Writer::create(&*store, sample::session(seed))).collect();
    let appends = writers.iter().enumerate().map(|(index, writer)| {
        // Every third append expects a wrong position.
        let next = if index % 3 == 0 { writer.next.next() } else { writer.next };
        store.append(writer.session(), next, writer.claim.fence, sample::notes(["one"]))
    });
    let outcomes = block_on(join_all(appends));
    for (index, (writer, outcome)) in writers.iter().zip(outcomes).enumerate() {
        let refused = index % 3 == 0;
        assert_eq!(matches!(outcome, Err(StoreError::Conflict { .. })), refused, "{outcome:?}");
        assert_eq!(notes(&*store, writer.session()).len(), usize::from(!refused));
    }
}

/// A leader may be dropped before it has written anything, and a waiting caller too: then the next one leads.
#[test]
fn a_dropped_append_leaves_nothing_and_delays_no_other() {
    let store = Temporary::new();
    let writers: Vec<Writer<'_>> =
        (0..4).map(|seed| Writer::create(&*store, sample::session(seed))).collect();
    let append = |writer: &Writer<'_>| {
        store.append(writer.session(), writer.next, writer.claim.fence, sample::notes(["written"]))
    };
    let mut context = Context::from_waker(Waker::noop());
    for dropped in [&[0][..], &[1], &[0, 1], &[1, 0], &[2, 0], &[0, 2, 1]] {
        let store_before: Vec<usize> =
            writers.iter().map(|writer| notes(&*store, writer.session()).len()).collect();
        let mut appends: Vec<_> = writers
            .iter()
            .map(|writer| {
                let next = block_on(store.head(writer.session())).unwrap();
                let batch = sample::notes(["written"]);
                Some(store.append(writer.session(), next, writer.claim.fence, batch))
            })
            .collect();
        for pending in appends.iter_mut().flatten() {
            let polled = pin!(pending).poll(&mut context);
            assert!(matches!(polled, Poll::Pending), "the first lets others go first, and they wait for it");
        }
        for index in dropped {
            appends[*index] = None;
        }
        for outcome in block_on(join_all(appends.iter_mut().flatten())) {
            outcome.unwrap();
        }
        for (index, (writer, before)) in writers.iter().zip(store_before).enumerate() {
            let wrote = usize::from(!dropped.contains(&index));
            assert_eq!(notes(&*store, writer.session()).len(), before + wrote, "{dropped:?}, {index}");
        }
        drop(appends);
    }
    // A future that was never polled was never queued.
    drop(append(&writers[0]));
}
