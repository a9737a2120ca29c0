//! Redaction in a SQLite file: nothing of the value is left, and the store is sound.

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, RecordBody};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ClaimMode, Erasure, ErasureMode, GcMode, Owner, Redaction, RedactionReport, Retention, Store as _,
    StoreError,
};
use backstitch_core::redaction::SensitiveValue;
use backstitch_core::time::Clock as _;
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use serde_json::json;

use super::agent::Agent;
use super::bundle::{exported, imported};
use super::remains::{assert_gone, files_with, objects_with};
use super::support::{Temporary, Writer, claim, notes, read};

const VALUE: &str = "the \"leaked\" key\\1";

pub(super) fn redact(store: &SqliteStore, session: SessionId) -> RedactionReport {
    block_on(store.redact(redaction(session, VALUE))).unwrap()
}

fn redaction(session: SessionId, value: &str) -> Redaction {
    Redaction {
        session,
        value: SensitiveValue::new(value).unwrap(),
        owner: Owner::new("redactor"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    }
}

/// A session that holds the value in every table, and has held it in content that was deleted since then.
fn leaky(store: &SqliteStore, seed: u64) -> SessionId {
    let mut writer = Writer::create(store, sample::session(seed));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let note = sample::note(format!("it is {VALUE}")).with_data(json!({
        "nested": json!({ "key": VALUE }).to_string(), "large": VALUE.repeat(6_000),
    }));
    writer.append(Batch::at(sample::clock().now()).with(note)).unwrap();
    let mut batch = sample::notes(["a file"]);
    // No record names it.
    batch.add_object(Object::blob(format!("API_KEY={VALUE}\n").into_bytes()));
    writer.append(batch).unwrap();
    // Replaced snapshots and items that were taken leave their content in free space.
    for number in 0..3 {
        let bytes = format!("{number} {VALUE} {}", "x".repeat(number * 5_000)).into_bytes();
        block_on(store.save_snapshot(session, fence, writer.next, bytes)).unwrap();
        let item = block_on(store.send(session, sample::item(&format!("{number}: use {VALUE}")))).unwrap();
        let mut batch = sample::notes(["taken"]);
        batch.take(item);
        writer.append(batch).unwrap();
    }
    block_on(store.save_snapshot(session, fence, writer.next, b"small".to_vec())).unwrap();
    block_on(store.send(session, sample::item(&format!("pending: use {VALUE}")))).unwrap();
    block_on(store.release(writer.claim)).unwrap();
    session
}

#[test]
fn no_file_holds_a_redacted_value() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    assert!(!files_with(store.path().parent().unwrap(), VALUE).is_empty());
    assert_eq!(objects_with(&store, VALUE).len(), 2);
    let report = redact(&store, session);
    assert_eq!(report.erasure, Erasure::Complete);
    assert_eq!((report.sessions.len(), report.objects.len()), (1, 2));
    assert_eq!(report.sessions[0].inbox, 1);
    assert_gone(&store, VALUE);

    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    assert_eq!(verified.redacted, [(session, vec![Position::new(1)])]);
    let (_directory, path) = store.close();
    let store = SqliteStore::open(&path).unwrap();
    assert_gone(&store, VALUE);
    assert_eq!(notes(&store, session)[0], "it is [redacted]");
    assert!(store.verify().unwrap().is_sound());
}

/// Deleting alone leaves the value in the file, so the file is rebuilt.
#[test]
fn content_that_was_freed_before_is_overwritten() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let session = writer.session();
    let item = block_on(store.send(session, sample::item(VALUE))).unwrap();
    let mut batch = sample::notes(["taken"]);
    batch.take(item);
    writer.append(batch).unwrap();
    block_on(store.release(writer.claim)).unwrap();
    let directory = store.path().parent().unwrap();
    assert!(!files_with(directory, VALUE).is_empty(), "no table holds it any more, but the files do");
    let report = redact(&store, session);
    assert_eq!((report.sessions, report.erasure), (vec![], Erasure::Complete));
    assert_gone(&store, VALUE);
}

#[test]
fn a_reader_that_keeps_the_log_is_reported() {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(20), ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let session = leaky(&store, 1);
    let reader = Connection::open(store.path()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count: i64 = reader.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert!(count > 0);
    let report = redact(&store, session);
    assert!(matches!(&report.erasure, Erasure::Pending { reason } if reason.contains("log")), "{report:?}");
    assert!(!files_with(store.path().parent().unwrap(), VALUE).is_empty());
    // The reader still sees what it saw.
    let seen: i64 = reader.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, count);
    reader.execute_batch("ROLLBACK").unwrap();
    assert_eq!(redact(&store, session).erasure, Erasure::Complete);
    assert_gone(&store, VALUE);
}

#[test]
fn many_small_transactions_do_the_same() {
    let options = SqliteOptions { transaction_bytes: 1, ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let mut agent = Agent::new(&store, 7);
    for index in 0..4 {
        let content = format!("{index}: {VALUE}");
        agent.call(&[("key.txt", &content), ("other.txt", "nothing")]);
        agent.append(sample::notes([format!("{index} {VALUE}"), "plain".to_owned()])).unwrap();
    }
    let session = agent.session();
    block_on(store.release(agent.claim)).unwrap();
    let report = redact(&store, session);
    assert_eq!(report.sessions[0].positions.len(), 4);
    assert_eq!((report.objects.len(), report.files), (4, vec!["key.txt/content".to_owned()]));
    assert_gone(&store, VALUE);
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    assert_eq!(verified.redacted_objects.len(), 4);
    let kinds = read(&*store, session).unwrap();
    let redacted = kinds.iter().filter(|record| matches!(record.body, RecordBody::Redacted(_)));
    assert_eq!(redacted.count(), 8, "one for each transaction");
}

/// Two redactions with different values remove both.
#[test]
fn a_redacted_record_is_redacted_again() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let session = writer.session();
    let text = format!("{VALUE} and the-second-secret").repeat(3_000);
    let note = sample::note(format!("{VALUE} and the-second-secret")).with_data(json!({ "large": text }));
    writer.append(Batch::at(sample::clock().now()).with(note)).unwrap();
    block_on(store.release(writer.claim)).unwrap();
    redact(&store, session);
    let second = block_on(store.redact(redaction(session, "the-second-secret"))).unwrap();
    assert_eq!((second.sessions.len(), second.objects.len()), (1, 1));
    assert_gone(&store, VALUE);
    assert_gone(&store, "the-second-secret");
    assert!(store.verify().unwrap().is_sound());
    assert_eq!(notes(&*store, session), ["[redacted] and [redacted]"]);
    let mut found = read(&*store, session).unwrap();
    let RecordBody::Note(note) = &mut found[1].body else { panic!("{found:?}") };
    block_on(backstitch_core::ports::fetch_large(&*store, note)).unwrap();
    let large = note.data.inline().unwrap()["large"].as_str().unwrap().to_owned();
    assert_eq!(large, "[redacted] and [redacted]".repeat(3_000));
}

#[test]
fn a_redacted_store_is_collected_and_salvaged() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    let mut agent = Agent::new(&store, 7);
    agent.call(&[("key.txt", VALUE)]);
    let files = agent.session();
    block_on(store.release(agent.claim)).unwrap();
    redact(&store, session);
    redact(&store, files);
    let before = read(&*store, session).unwrap();
    let collected = store.gc(Retention::keep_all(), GcMode::Now).unwrap();
    assert_eq!(collected.freed_bytes(), 0, "copies are needed: {collected:?}");
    assert!(store.verify().unwrap().is_sound());

    let to = store.path().with_file_name("new").join("store.db");
    let report = SqliteStore::salvage(store.path(), &to).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let new = SqliteStore::open(&to).unwrap();
    let verified = new.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    let old = store.verify().unwrap();
    assert_eq!((verified.redacted, verified.redacted_objects), (old.redacted, old.redacted_objects));
    assert_eq!(read(&new, session).unwrap(), before);
    assert_gone(&new, VALUE);
}

/// A bundle holds no more than its store.
#[test]
fn a_redacted_session_is_moved_as_it_is() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    redact(&store, session);
    let bundle = exported(&store, session, "session.bundle");
    let target = Temporary::new();
    imported(&target, &bundle).unwrap();
    let (moved, verified) = (store.verify().unwrap(), target.verify().unwrap());
    assert!(verified.is_sound(), "{:?}", verified.findings);
    assert_eq!((verified.redacted, verified.redacted_objects), (moved.redacted, moved.redacted_objects));
    assert_eq!(read(&*target, session).unwrap(), read(&*store, session).unwrap());
    assert_gone(&store, VALUE);
    assert_gone(&target, VALUE);
}

#[test]
fn a_changed_text_of_a_redacted_record_is_damage() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    redact(&store, session);
    let raw = Connection::open(store.path()).unwrap();
    raw.execute("UPDATE records SET record = replace(record, '[redacted]', '[REDACTED]')", []).unwrap();
    let error = read(&*store, session).unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { position, .. } if position == Position::new(1)),
        "{error:?}"
    );
    let verified = store.verify().unwrap();
    assert_eq!(verified.findings.len(), 1, "{:?}", verified.findings);
    // A note about a record that does not exist is one too.
    raw.execute("INSERT INTO redactions (record, checksum, at) VALUES (99, x'00', '')", []).unwrap();
    assert_eq!(store.verify().unwrap().findings.len(), 2);
}

#[test]
fn a_read_only_store_is_only_rehearsed() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    let (_directory, path) = store.close();
    let reading = SqliteStore::open_read_only(&path).unwrap();
    let mut wanted = redaction(session, VALUE);
    let error = block_on(reading.redact(wanted.clone())).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    wanted.mode = ErasureMode::DryRun;
    let report = block_on(reading.redact(wanted)).unwrap();
    assert_eq!((report.sessions.len(), report.erasure), (1, Erasure::NotStarted));
}

#[test]
fn a_claim_is_held_only_during_the_redaction() {
    let store = Temporary::new();
    let session = leaky(&store, 1);
    redact(&store, session);
    let held = claim(&*store, session, ClaimMode::IfFree).unwrap();
    assert_eq!(block_on(store.holder(session)).unwrap(), Some(Owner::new("tester")));
    let error = block_on(store.redact(redaction(session, VALUE))).unwrap_err();
    assert!(matches!(error, StoreError::Held { session: named, .. } if named == session), "{error:?}");
    block_on(store.release(held)).unwrap();
}

#[test]
fn objects_are_read_at_once_as_they_are_one_by_one() {
    crate::conformance::objects_are_read_at_once(&*Temporary::new());
}
