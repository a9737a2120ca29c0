//! The queue in SQLite: locks tell which workers live.

use backstitch_core::journal::{Position, QueueEntry};
use backstitch_core::ports::{
    Owner, Queue, QueueRest, QueueState, Store, StoreError, TakeRequest, TakenSession,
};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use rustix::process::Signal;
use tempfile::TempDir;

use super::child::{Running, Task, command, wait_for};
use super::support::{Temporary, Writer};

crate::conformance::queue::queue_conformance!(Temporary::new);

fn enqueue(store: &SqliteStore, seed: u64) {
    let writer = Writer::create(store, sample::session(seed));
    let session = writer.session();
    block_on(Store::release(store, writer.claim)).unwrap();
    block_on(store.enqueue(session, QueueEntry::new("tailor").with_tag("t"))).unwrap();
}

fn take_some(store: &SqliteStore, limit: usize) -> Vec<TakenSession> {
    let request = TakeRequest { owner: Owner::new("worker"), agents: vec!["tailor".into()], limit };
    block_on(store.take(request)).unwrap()
}

/// Child: takes sessions, and holds them until it is killed.
pub(super) fn take(task: &mut Task) {
    let store = SqliteStore::open(task.store()).expect("the store can be opened");
    let taken = take_some(&store, 2);
    task.report(format!("took {}", taken.len()));
    let go = task.place.join("go");
    while !go.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let stale = block_on(Queue::release(&store, taken[0].clone(), QueueRest::Done));
    task.report(format!("released {stale:?}"));
}

#[test]
fn sessions_of_a_killed_worker_are_ready_again() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    (1..=3).for_each(|seed| enqueue(&store, seed));
    let report = directory.path().join("report");
    let child = Running::start(command("take", directory.path(), &report));
    assert_eq!(wait_for(&report, "took"), "2");
    child.signal(Signal::STOP);
    assert_eq!(block_on(store.recover()).unwrap(), 0, "a stopped process holds its sessions");
    assert_eq!(take_some(&store, 5).len(), 1);
    child.kill();
    assert_eq!(block_on(store.recover()).unwrap(), 2);
    let taken = take_some(&store, 5);
    assert_eq!(taken.iter().map(|taken| taken.attempts).collect::<Vec<_>>(), [1, 1]);
    assert!(block_on(store.limits()).unwrap().is_empty());
    let (claim, notes) = (&taken[0].claim, sample::notes(["on"]));
    block_on(store.append(claim.session, Position::new(1), claim.fence, notes)).unwrap();
}

#[test]
fn a_worker_that_was_stopped_and_replaced_releases_nothing() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    enqueue(&store, 1);
    let report = directory.path().join("report");
    let child = Running::start(command("take", directory.path(), &report));
    assert_eq!(wait_for(&report, "took"), "1");
    child.signal(Signal::STOP);
    let mode = backstitch_core::ports::ClaimMode::TakeOver;
    block_on(store.claim(sample::session(1), Owner::new("person"), mode)).unwrap();
    std::fs::write(directory.path().join("go"), "").unwrap();
    child.signal(Signal::CONT);
    let outcome = wait_for(&report, "released");
    assert!(outcome.starts_with("Err(Fenced"), "{outcome}");
    let counts = block_on(store.counts()).unwrap();
    assert_eq!((counts[0].state, counts[0].sessions), (QueueState::Held, 1));
}

/// Ten thousand sessions that are ready are taken in their order beside ten thousand timers of higher priority, and by their index.
#[test]
fn many_sessions_are_taken_by_an_index() {
    let store = Temporary::new();
    let raw = Connection::open(store.path()).unwrap();
    raw.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO sessions (id, session) SELECT i, printf('01890a5d-ac96-774b-bcce-%012d', i) FROM n;
        INSERT INTO queue (session, agent, priority, due, tags, state, is_begun, attempts)
            SELECT id, 'tailor', id % 5, id, '[]', 'ready', 0, 0 FROM sessions WHERE id <= 10000;
        INSERT INTO queue (session, agent, priority, due, tags, state, is_begun, attempts)
            SELECT id, 'tailor', 9, 9000000000000000, '[]', 'waiting', 1, 0 FROM sessions WHERE id > 10000;",
    )
    .unwrap();
    for page in [take_some(&store, 500), take_some(&store, 500)] {
        assert_eq!(page.len(), 500);
        assert!(page.iter().all(|taken| taken.entry.priority == 4));
        assert!(page.is_sorted_by_key(|taken| taken.entry.due));
    }
    let plan = "EXPLAIN QUERY PLAN SELECT session FROM queue WHERE state = 'ready'
        ORDER BY priority DESC, due, session LIMIT 1";
    let plan: String = raw.query_row(plan, [], |row| row.get(3)).unwrap();
    assert!(plan.contains("queue_ready"), "{plan}");
    let counts = block_on(store.counts()).unwrap();
    assert_eq!(counts.iter().map(|count| count.sessions).collect::<Vec<_>>(), [1000, 9000, 10000]);
}

#[test]
fn a_salvaged_store_keeps_its_queue() {
    let store = Temporary::new();
    (1..=2).for_each(|seed| enqueue(&store, seed));
    block_on(store.enqueue(sample::session(2), QueueEntry::new("tailor").with_key("k"))).unwrap();
    let _held = take_some(&store, 1);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("salvaged.db");
    SqliteStore::salvage(store.path(), &path).unwrap();
    let salvaged = SqliteStore::open(&path).unwrap();
    assert_eq!(take_some(&salvaged, 5).len(), 2);
    assert_eq!(block_on(salvaged.keyed("k")).unwrap(), Some(sample::session(2)));
}

#[test]
fn a_store_that_is_only_read_lists_its_queue_and_takes_nothing() {
    let store = Temporary::new();
    enqueue(&store, 1);
    let reader = SqliteStore::open_read_only(store.path()).unwrap();
    assert_eq!(block_on(reader.counts()).unwrap().len(), 1);
    let request = TakeRequest { owner: Owner::new("worker"), agents: vec!["tailor".into()], limit: 1 };
    let refused = block_on(reader.take(request));
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
}
