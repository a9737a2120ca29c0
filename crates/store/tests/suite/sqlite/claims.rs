//! Only a live process holds a session.

use std::path::Path;
use std::time::Duration;

use backstitch_core::ports::{ClaimMode, Owner, Store, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rustix::process::Signal;
use tempfile::TempDir;

use super::child::{Running, Task, command, wait_for};
use super::support::{Temporary, Writer, claim, notes};

/// Child: holds a session, and continues writing on request.
pub(super) fn hold(task: &mut Task) {
    let store = SqliteStore::open(task.store()).expect("the store can be opened");
    let mut writer = Writer::create(&store, sample::session(1));
    task.report(format!("holds {}", std::process::id()));
    let go = task.place.join("go");
    while !go.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let outcome = writer.append(sample::notes(["from the child"]));
    task.report(format!("wrote {outcome:?}"));
}

fn held_by_child(directory: &Path) -> (Running, u32) {
    let report = directory.join("report");
    let child = Running::start(command("hold", directory, &report));
    let pid = wait_for(&report, "holds").parse().expect("a child says its number");
    (child, pid)
}

#[test]
fn a_session_is_free_at_once_when_its_holder_was_killed() {
    let directory = TempDir::new().unwrap();
    let (child, pid) = held_by_child(directory.path());
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let session = sample::session(1);

    let error = claim(&store, session, ClaimMode::IfFree).unwrap_err();
    let StoreError::Held { owner, process: Some(process), .. } = &error else { panic!("{error:?}") };
    assert_eq!((owner, process.pid), (&Owner::new("tester"), pid));
    let said = error.to_string();
    assert!(said.contains(&format!("process {pid} on {}", process.host)), "{said}");
    assert_eq!(block_on(store.holder(session)).unwrap(), Some(Owner::new("tester")));

    child.kill();
    assert_eq!(block_on(store.holder(session)).unwrap(), None);
    let held = claim(&store, session, ClaimMode::IfFree).unwrap();
    assert_eq!(held.fence.0, 2);
    let locks: Vec<_> = std::fs::read_dir(directory.path().join("store.db-locks")).unwrap().collect();
    assert_eq!(locks.len(), 2, "that of this claim and that of opening: {locks:?}");
}

#[test]
fn a_stopped_process_still_holds_its_session_and_cannot_write_once_it_was_taken_over() {
    let directory = TempDir::new().unwrap();
    let (child, _) = held_by_child(directory.path());
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let session = sample::session(1);
    child.signal(Signal::STOP);
    let error = claim(&store, session, ClaimMode::IfFree).unwrap_err();
    assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
    let held = claim(&store, session, ClaimMode::TakeOver).unwrap();
    let mut writer = Writer { store: &store, claim: held, next: block_on(store.head(session)).unwrap() };

    std::fs::write(directory.path().join("go"), "").unwrap();
    child.signal(Signal::CONT);
    let outcome = wait_for(&directory.path().join("report"), "wrote");
    assert!(outcome.starts_with("Err(Fenced"), "{outcome}");
    writer.append(sample::notes(["from here"])).unwrap();
    assert_eq!(notes(&store, session), ["from here"]);

    // The replaced process ends; its replacement still holds the session.
    child.kill();
    let other = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let error = claim(&other, session, ClaimMode::IfFree).unwrap_err();
    assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
}

#[test]
fn two_stores_in_one_process_do_not_share_claims() {
    let one = Temporary::new();
    let other = SqliteStore::open(one.path()).unwrap();
    let session = sample::session(1);
    let writer = Writer::create(&*one, session);
    for store in [&*one, &other] {
        let error = claim(store, session, ClaimMode::IfFree).unwrap_err();
        assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
    }
    drop(writer);
    let (_directory, path) = one.close();
    // Closing the store releases its claims, like the end of its process.
    assert_eq!(block_on(other.holder(session)).unwrap(), None);
    claim(&other, session, ClaimMode::IfFree).unwrap();
    drop(SqliteStore::open(path).unwrap());
}

#[test]
fn of_two_stores_that_append_at_once_exactly_one_wins() {
    let one = Temporary::new();
    let other = SqliteStore::open(one.path()).unwrap();
    let writer = Writer::create(&*one, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    for round in 0..50 {
        let next = backstitch_core::journal::Position::new(1 + round);
        let append = |store: &SqliteStore| {
            block_on(store.append(session, next, fence, sample::notes([round.to_string()])))
        };
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| append(&one));
            let second = append(&other);
            (first.join().unwrap(), second)
        });
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let lost = first.err().or(second.err());
        assert!(matches!(lost, Some(StoreError::Conflict { .. })), "{lost:?}");
    }
    assert_eq!(notes(&other, session).len(), 50);
}
