//! The queue in PostgreSQL: leases, and the ends of processes, tell which workers live.

use std::process::{Command, Stdio};
use std::time::Duration;

use backstitch_core::journal::{Batch, Position, QueueEntry};
use backstitch_core::ports::{
    ClaimMode, Owner, Queue, QueueRest, QueueState, SessionClaim, Store, StoreError, TakeRequest,
    TakenSession,
};
use backstitch_store::PostgresStore;
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::lost_answers::behind_proxy;
use super::support::{Temporary, options, parsed};
use crate::sqlite::support::Writer;

crate::conformance::queue::queue_conformance!(optional Temporary::new);

const ADDRESS: &str = "BACKSTITCH_STORE_TEST_QUEUE";
const REPORT: &str = "BACKSTITCH_STORE_TEST_REPORT";

fn enqueue(store: &PostgresStore, seed: u64) {
    let writer = Writer::create(store, sample::session(seed));
    let session = writer.session();
    block_on(Store::release(store, writer.claim)).unwrap();
    block_on(store.enqueue(session, QueueEntry::new("tailor"))).unwrap();
}

fn take(store: &PostgresStore, limit: usize) -> Vec<TakenSession> {
    let request = TakeRequest { owner: Owner::new("worker"), agents: vec!["tailor".into()], limit };
    block_on(store.take(request)).unwrap()
}

fn append(store: &PostgresStore, claim: &SessionClaim) -> Result<Position, StoreError> {
    block_on(store.append(claim.session, Position::new(1), claim.fence, sample::notes(["on"])))
}

/// Nothing here waits for a look at the queue.
#[test]
fn hints_come_from_other_programs_after_each_change() {
    let Some(store) = Temporary::new() else { return };
    let other = store.reopen();
    assert!(!store.has_hints());
    // The first one says that the store listens now.
    block_on(store.wait_for_hint());
    enqueue(&other, 1);
    while !store.has_hints() {
        block_on(store.wait_for_hint());
    }
    let mut taken = take(&store, 2);
    assert_eq!(taken.len(), 1);
    let session = taken[0].claim.session;
    block_on(Queue::release(&*store, taken.remove(0), QueueRest::Wait { until: None })).unwrap();
    block_on(other.send(session, sample::item("hello"))).unwrap();
    block_on(store.wait_for_hint());
    assert_eq!(take(&store, 2).len(), 1);

    // A session that is enqueued with its first batch can be taken once its creator has released it, and a store that is closed right then has sent its hint.
    let claim = block_on(other.claim(sample::session(2), Owner::new("creator"), ClaimMode::IfFree)).unwrap();
    let created = sample::created(claim.session);
    let mut batch = Batch::at(created.created_at).with(created);
    batch.enqueue(QueueEntry::new("tailor"));
    block_on(other.append(claim.session, Position::START, claim.fence, batch)).unwrap();
    block_on(Store::release(&other, claim)).unwrap();
    drop(other);
    block_on(store.wait_for_hint());
    assert_eq!(take(&store, 2).len(), 1);
}

/// The files of a session are where it was driven last.
#[test]
fn another_machine_takes_a_session_only_after_a_while() {
    let Some(store) = Temporary::new() else { return };
    enqueue(&store, 1);
    let taken = take(&store, 1).remove(0);
    let other = store.reopen();
    block_on(other.claim(sample::session(2), Owner::new("person"), ClaimMode::IfFree)).unwrap();
    store.sql("UPDATE {schema}.workers SET host = 'elsewhere' WHERE id <> (SELECT worker FROM {schema}.sessions s JOIN {schema}.queue q ON q.session = s.id)");
    block_on(Queue::release(&*store, taken, QueueRest::Ready)).unwrap();
    // Not a matter of time: it is due in the future for the others.
    store.sql("UPDATE {schema}.queue SET due = now() + interval '1 hour'");
    assert!(take(&other, 1).is_empty());
    store.sql("UPDATE {schema}.queue SET due = now() - interval '3 seconds'");
    assert_eq!(take(&other, 1).len(), 1);
    assert_eq!(store.sql("SELECT host FROM {schema}.queue"), "elsewhere");
}

/// Takes two sessions, and holds them until it is killed.
#[test]
fn a_child_takes_until_it_is_killed() {
    let (Ok(address), Some(report)) = (std::env::var(ADDRESS), std::env::var_os(REPORT)) else { return };
    let store = PostgresStore::open_with(&parsed(&address), options()).unwrap();
    std::fs::write(report, take(&store, 2).len().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn sessions_of_a_killed_worker_are_ready_again() {
    let Some(store) = Temporary::new() else { return };
    (1..=3).for_each(|seed| enqueue(&store, seed));
    let place = TempDir::new().unwrap();
    let report = place.path().join("report");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::queue::a_child_takes_until_it_is_killed", "--nocapture"])
        .env(ADDRESS, &store.address)
        .env(REPORT, &report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut waited = 0;
    while std::fs::read_to_string(&report).unwrap_or_default() != "2" {
        std::thread::sleep(Duration::from_millis(5));
        waited += 1;
        assert!(waited < 12_000, "the child does not take: {:?}", child.try_wait());
    }
    assert_eq!(block_on(store.recover()).unwrap(), 0);
    assert_eq!(take(&store, 5).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // Its lease lasts, but its process is gone.
    assert_eq!(block_on(store.recover()).unwrap(), 2);
    let taken = take(&store, 5);
    assert_eq!(taken.iter().map(|taken| taken.attempts).collect::<Vec<_>>(), [1, 1]);
    append(&store, &taken[0].claim).unwrap();
}

#[test]
fn a_worker_whose_lease_is_over_is_stale_everywhere() {
    let Some(store) = Temporary::new() else { return };
    (1..=2).for_each(|seed| enqueue(&store, seed));
    let taken = take(&store, 1).remove(0);
    // Another machine finds it late. No lease is over in a server that started less than one ago, so the machine counts with a short one.
    let short = options().with_lease(Duration::from_secs(1));
    let other = PostgresStore::open_with(&parsed(&store.address), short).unwrap();
    let end_lease =
        "UPDATE {schema}.workers SET lease_until = now() - interval '1 hour', place = 'elsewhere'";
    let mut recovered = (0..600).map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        // Each time, because the worker renews it.
        store.sql(end_lease);
        block_on(other.recover()).unwrap()
    });
    assert_eq!(recovered.find(|count| *count > 0), Some(1));
    assert!(matches!(append(&store, &taken.claim), Err(StoreError::Fenced { .. })));
    let released = block_on(Queue::release(&*store, taken.clone(), QueueRest::Done));
    assert!(matches!(released, Err(StoreError::Fenced { .. })), "{released:?}");
    assert_eq!(store.sql("SELECT count(*) FROM {schema}.workers"), "0");
    // It registers again, and takes what is there.
    assert_eq!(take(&store, 5).len(), 2);
}

#[test]
fn sessions_of_an_answer_that_was_lost_are_ready_again() {
    let Some(store) = Temporary::new() else { return };
    (1..=2).for_each(|seed| enqueue(&store, seed));
    let kept = take(&store, 1).remove(0);
    store.sql(
        "SELECT count(*) FROM {schema}.take_1((SELECT id FROM {schema}.workers), 'worker', 0, '{tailor}', 1)",
    );
    assert_eq!(block_on(store.recover()).unwrap(), 0, "the answer may still come");
    store.sql("UPDATE {schema}.queue SET taken_at = now() - interval '1 hour' WHERE taken_at IS NOT NULL");
    assert_eq!(block_on(store.recover()).unwrap(), 1);
    assert_ne!(take(&store, 5)[0].claim.session, kept.claim.session);
    append(&store, &kept.claim).unwrap();
}

/// The claim of the other task is refused while the answer of the take may still be on its way.
#[test]
fn a_session_that_is_being_taken_is_not_claimed_too() {
    let Some(store) = Temporary::new() else { return };
    enqueue(&store, 1);
    let session = sample::session(1);
    for _ in 0..50 {
        let (taken, claimed) = std::thread::scope(|scope| {
            let taking = scope.spawn(|| take(&store, 1));
            let claimed = block_on(store.claim(session, Owner::new("person"), ClaimMode::IfFree));
            (taking.join().unwrap(), claimed)
        });
        match (taken.into_iter().next(), claimed) {
            (Some(taken), Err(StoreError::Held { .. })) => {
                block_on(Queue::release(&*store, taken, QueueRest::Ready)).unwrap();
            }
            (None, Ok(claim)) => block_on(Store::release(&*store, claim)).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

/// Ten thousand sessions that are ready are taken in their order beside ten thousand timers of higher priority.
#[test]
fn many_sessions_are_taken_in_their_order() {
    let Some(store) = Temporary::new() else { return };
    store.sql(
        "INSERT INTO {schema}.sessions (session, created, chain)
            SELECT gen_random_uuid(), nextval('{schema}.creations'), decode(repeat('00', 16), 'hex') FROM generate_series(1, 20000)",
    );
    store.sql(
        "INSERT INTO {schema}.queue (session, agent, priority, due, tags, state) SELECT id, 'tailor',
            CASE WHEN id <= 10000 THEN id % 5 ELSE 9 END, CASE WHEN id <= 10000 THEN timestamptz 'epoch' + id * interval '1 second' ELSE now() + interval '1 day' END,
            '{}', CASE WHEN id <= 10000 THEN 'ready' ELSE 'waiting' END FROM {schema}.sessions",
    );
    for page in [take(&store, 500), take(&store, 500)] {
        assert_eq!(page.len(), 500);
        assert!(page.iter().all(|taken| taken.entry.priority == 4));
        assert!(page.is_sorted_by_key(|taken| taken.entry.due));
    }
    let counts = block_on(store.counts()).unwrap();
    assert_eq!(counts.iter().map(|count| count.sessions).collect::<Vec<_>>(), [1000, 9000, 10000]);
}

#[test]
fn answers_that_are_lost_are_found_out() {
    let Some((store, cuts, _place)) = behind_proxy() else { return };
    let session = sample::session(1);
    let claim = block_on(store.claim(session, Owner::new("creator"), ClaimMode::IfFree)).unwrap();
    let created = sample::created(session);
    let mut batch = Batch::at(created.created_at).with(created);
    batch.enqueue(QueueEntry::new("tailor").with_key("once"));
    cuts.lose(1);
    block_on(store.append(session, Position::START, claim.fence, batch)).expect("a lost answer is found out");
    assert_eq!(cuts.lost(), 1);
    block_on(Store::release(&*store, claim)).unwrap();
    assert_eq!(block_on(store.keyed("once")).unwrap(), Some(session));

    // The sessions of a take without an answer are nobody's for a while.
    cuts.lose(1);
    let request = TakeRequest { owner: Owner::new("worker"), agents: vec!["tailor".into()], limit: 1 };
    let lost = block_on(store.take(request));
    assert!(matches!(lost, Err(StoreError::Unavailable { .. })), "{lost:?}");
    store.sql("UPDATE {schema}.queue SET taken_at = now() - interval '1 hour'");
    assert_eq!(block_on(store.recover()).unwrap(), 1);
    let taken = take(&store, 1).remove(0);
    assert_eq!(taken.attempts, 0);

    cuts.lose(1);
    block_on(Queue::release(&*store, taken, QueueRest::Wait { until: None })).unwrap();
    assert_eq!(cuts.lost(), 3);
    assert_eq!(block_on(store.counts()).unwrap()[0].state, QueueState::Waiting);
    assert_eq!(block_on(store.holder(session)).unwrap(), None);
}

super::support::also_on_18! {
    sessions_of_a_killed_worker_are_ready_again
    a_worker_whose_lease_is_over_is_stale_everywhere
    sessions_of_an_answer_that_was_lost_are_ready_again
    many_sessions_are_taken_in_their_order
    answers_that_are_lost_are_found_out
}
