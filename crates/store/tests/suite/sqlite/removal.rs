//! Removal from a SQLite file: nothing of a removed session is left, and the store is sound.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Batch;
use backstitch_core::object::Object;
use backstitch_core::ports::{
    Erasure, ErasureMode, ForkRemoval, GcMode, Owner, Removal, RemovalReport, Retention, Store as _,
    StoreError,
};
use backstitch_core::time::Clock as _;
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use serde_json::json;

use super::agent::Agent;
use super::redaction::redact;
use super::remains::{assert_gone, files_with};
use super::support::{Temporary, Writer, notes, read, write};

const TEXT: &str = "only the removed session says this";

pub(super) fn remove(store: &SqliteStore, session: SessionId) -> RemovalReport {
    block_on(store.remove(Removal {
        sessions: vec![session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    }))
    .unwrap()
}

/// A session that says the text in every table, and has said it in content that was deleted since then.
fn telling(store: &SqliteStore, seed: u64) -> SessionId {
    let mut writer = Writer::create(store, sample::session(seed));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let note = sample::note(TEXT).with_data(json!({ "large": TEXT.repeat(3_000) }));
    writer.append(Batch::at(sample::clock().now()).with(note)).unwrap();
    for number in 0..3 {
        let bytes = format!("{number} {TEXT}").into_bytes();
        block_on(store.save_snapshot(session, fence, writer.next, bytes)).unwrap();
        let item = block_on(store.send(session, sample::item(TEXT))).unwrap();
        let mut batch = sample::notes(["taken"]);
        batch.take(item);
        writer.append(batch).unwrap();
    }
    block_on(store.send(session, sample::item(TEXT))).unwrap();
    block_on(store.release(writer.claim)).unwrap();
    session
}

#[test]
fn no_file_holds_a_removed_session() {
    let store = Temporary::new();
    let journal = sample::journal(3, 10);
    write(&*store, &journal);
    let session = telling(&store, 1);
    let before = read(&*store, journal.session).unwrap();
    assert!(!files_with(store.path().parent().unwrap(), TEXT).is_empty());
    let report = remove(&store, session);
    assert_eq!((report.sessions[0].session, report.erasure), (session, Erasure::Complete));
    assert_eq!(report.objects, 1);
    assert_gone(&store, TEXT);
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    assert_eq!(verified.removed, report.sessions);
    assert_eq!(read(&*store, journal.session).unwrap(), before);
    let raw = Connection::open(store.path()).unwrap();
    for table in ["snapshots", "inbox", "summaries", "tags", "redactions", "changes", "unlisted_changes"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let count: i64 = raw.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }

    // A salvaged store knows of the removal too.
    let to = store.path().with_file_name("new").join("store.db");
    SqliteStore::salvage(store.path(), &to).unwrap();
    assert_eq!(SqliteStore::open(&to).unwrap().verify().unwrap().removed, report.sessions);
}

/// The id of an object is made from its content, so it could confirm a guess.
#[test]
fn ids_of_objects_without_content_are_removed_too() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 7);
    for index in 0..3 {
        agent.call(&[("file", &format!("{index} {TEXT}")), ("same", "the same")]);
    }
    let mut other = Agent::new(&store, 8);
    other.call(&[("same", "the same")]);
    let session = agent.session();
    block_on(store.release(agent.claim)).unwrap();
    block_on(store.release(other.claim)).unwrap();
    let first = Agent::tree_of(&[("file", &format!("0 {TEXT}")), ("same", "the same")]);
    store.gc(Retention::keep_all().keep_boundaries(1), GcMode::Now).unwrap();
    assert!(matches!(block_on(store.object(first)), Err(StoreError::Pruned { .. })));
    redact(&store, session);
    remove(&store, session);
    assert!(matches!(block_on(store.object(first)), Ok(None)));
    assert_gone(&store, TEXT);
    let raw = Connection::open(store.path()).unwrap();
    let sql = "SELECT count(*) FROM objects WHERE content IS NULL";
    let marks: i64 = raw.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(marks, 0);
    let shared = Object::blob(*b"the same");
    assert_eq!(block_on(store.object(shared.id())).unwrap(), Some(shared));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn many_small_transactions_do_the_same() {
    let options = SqliteOptions { transaction_bytes: 1, ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let session = telling(&store, 1);
    let report = remove(&store, session);
    assert_eq!(report.sessions[0].records, 5);
    assert_gone(&store, TEXT);
    assert!(store.verify().unwrap().is_sound());
}

/// The number of a session is in the keys of its records.
#[test]
fn a_number_is_not_given_twice_while_records_are_left() {
    let store = Temporary::new();
    let session = telling(&store, 1);
    let raw = Connection::open(store.path()).unwrap();
    let number: i64 = raw.query_row("SELECT id FROM sessions", [], |row| row.get(0)).unwrap();
    // A removal that was interrupted after its first transaction.
    let unlisted = "DELETE FROM sessions; DELETE FROM inbox; DELETE FROM snapshots;";
    raw.execute_batch(unlisted).unwrap();
    let sql =
        "INSERT INTO removals (session, at, records, number) VALUES (?1, '2026-01-01T00:00:00Z', 5, ?2)";
    raw.execute(sql, rusqlite::params![session.to_string(), number]).unwrap();
    assert!(store.verify().unwrap().is_sound());

    let mut other = Writer::create(&*store, sample::session(2));
    other.append(sample::notes(["another"])).unwrap();
    let other_session = other.session();
    block_on(store.release(other.claim)).unwrap();
    let given: i64 = raw.query_row("SELECT id FROM sessions", [], |row| row.get(0)).unwrap();
    assert!(given > number);
    // The same session again: what is left of the removed one goes first.
    let mut again = Writer::create(&*store, session);
    again.append(sample::notes(["again"])).unwrap();
    block_on(store.release(again.claim)).unwrap();
    assert_eq!(notes(&*store, session), ["again"]);
    assert_eq!(notes(&*store, other_session), ["another"]);
    let verified = store.verify().unwrap();
    assert!(verified.is_sound() && verified.removed.is_empty(), "{:?}", verified.findings);
    remove(&store, other_session);
    assert_gone(&store, "another");
    assert_gone(&store, TEXT);
}

#[test]
fn a_damaged_session_can_be_removed() {
    let store = Temporary::new();
    let session = telling(&store, 1);
    let kept = sample::journal(3, 4);
    write(&*store, &kept);
    let raw = Connection::open(store.path()).unwrap();
    raw.execute("UPDATE records SET record = record || ' ' WHERE id & 4294967295 = 1 AND id >> 32 = 1", [])
        .unwrap();
    assert!(read(&*store, session).is_err());
    let report = remove(&store, session);
    assert_eq!(report.erasure, Erasure::Complete);
    assert_gone(&store, TEXT);
    assert!(store.verify().unwrap().is_sound());
}
