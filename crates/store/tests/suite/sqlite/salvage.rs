//! Salvage copies the sound parts of a damaged store and reports the rest.

use std::fs;

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, GcMode, OpenError, Retention, Store as _, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;

use super::agent::Agent;
use super::support::{Temporary, Writer, claim, notes, read, write};

#[test]
fn a_sound_store_is_saved_as_a_whole() {
    let store = Temporary::new();
    let journals = [sample::every_kind(), sample::journal(3, 12)];
    journals.iter().for_each(|journal| write(&*store, journal));
    let mut agent = Agent::new(&store, 50);
    let roots: Vec<_> = (0..4).map(|index: u8| agent.call(&[("file", &index.to_string())])).collect();
    let _ = store.gc(Retention::keep_all(), GcMode::DryRun);
    let mut writer = Writer::create(&*store, sample::session(60));
    writer.append(sample::notes(["one"])).unwrap();
    let (session, fence) = (writer.session(), writer.claim.fence);
    let item = block_on(store.send(session, sample::item("waits"))).unwrap();
    block_on(store.save_snapshot(session, fence, Position::new(2), b"a snapshot".to_vec())).unwrap();

    let to = store.path().with_file_name("new.db");
    // The old store may be open and held.
    let report = SqliteStore::salvage(store.path(), &to).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let new = SqliteStore::open(&to).unwrap();
    assert_eq!(block_on(new.sessions()).unwrap(), block_on(store.sessions()).unwrap());
    for id in block_on(store.sessions()).unwrap() {
        assert_eq!(read(&new, id).unwrap(), read(&*store, id).unwrap());
    }
    let changes = |store: &SqliteStore| block_on(store.changes(journals[0].session)).unwrap().unwrap();
    assert_eq!((changes(&new).len(), changes(&new)), (1, changes(&store)));
    for object in journals.iter().flat_map(|journal| journal.objects()) {
        // Unreferenced objects are not copied.
        let found = block_on(new.object(object.id())).unwrap();
        assert!(found.is_none_or(|found| found == *object));
    }
    for root in roots {
        assert!(block_on(new.object(root.tree)).unwrap().is_some());
    }
    assert_eq!(block_on(new.inbox(session)).unwrap(), [(item, sample::item("waits"))]);
    assert_eq!(block_on(new.snapshot(session)).unwrap().unwrap().bytes, b"a snapshot");
    // No session is held, and an earlier holder cannot write.
    let stale = block_on(new.append(session, writer.next, fence, sample::notes(["stale"])));
    assert!(matches!(stale, Err(StoreError::Fenced { .. })), "{stale:?}");
    let held = claim(&new, session, ClaimMode::IfFree).unwrap();
    assert!(held.fence > fence);
    let report = new.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn each_session_keeps_its_longest_sound_beginning() {
    let store = Temporary::new();
    let journals =
        [sample::every_kind(), sample::journal(3, 12), sample::journal(4, 6), sample::journal(5, 6)];
    journals.iter().for_each(|journal| write(&*store, journal));
    let (directory, path) = store.close();
    let raw = Connection::open(&path).unwrap();
    let key = |session: i64, position: i64| (session << 32) | position;
    raw.execute("UPDATE records SET record = record || ' ' WHERE id = ?1", [key(2, 9)]).unwrap();
    raw.execute("DELETE FROM records WHERE id = ?1", [key(3, 4)]).unwrap();
    raw.execute("DELETE FROM sessions WHERE id = 4", []).unwrap();
    drop(raw);
    let before = fs::read(&path).unwrap();

    let to = directory.path().join("new.db");
    let report = SqliteStore::salvage(&path, &to).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before, "the old store is not changed");
    let lengths: Vec<usize> = journals.iter().map(|journal| journal.records().len()).collect();
    let saved: Vec<(u64, Option<(u64, u64)>)> = report
        .sessions
        .iter()
        .map(|session| {
            let lost = session.lost.as_ref().map(|lost| (lost.position.number(), lost.records));
            (session.records, lost)
        })
        .collect();
    let expected = [
        (lengths[0] as u64, None),
        (9, Some((9, lengths[1] as u64 - 9))),
        (4, Some((4, lengths[2] as u64 - 5))),
        // The session's id is known from its records.
        (lengths[3] as u64, None),
    ];
    assert_eq!(saved, expected);
    let new = SqliteStore::open(&to).unwrap();
    for (journal, (kept, _)) in journals.iter().zip(expected) {
        assert_eq!(read(&new, journal.session).unwrap(), journal.records()[..kept as usize]);
    }
    assert!(new.verify().unwrap().is_sound());
    // The session can be resumed from there.
    let session = journals[1].session;
    let held = claim(&new, session, ClaimMode::IfFree).unwrap();
    let mut writer = Writer { store: &new, claim: held, next: Position::new(9) };
    writer.append(sample::notes(["on"])).unwrap();
    assert_eq!(notes(&new, session).last().map(String::as_str), Some("on"));
}

#[test]
fn objects_that_cannot_be_read_are_marked_as_lost() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let needed: Vec<_> = journal.records().iter().flat_map(|record| record.body.object_refs()).collect();
    let (directory, path) = store.close();
    let raw = Connection::open(&path).unwrap();
    raw.execute("UPDATE objects SET content = x'0102' WHERE id = ?1", [&needed[0].as_bytes()[..]]).unwrap();
    drop(raw);
    let to = directory.path().join("new.db");
    let report = SqliteStore::salvage(&path, &to).unwrap();
    assert_eq!(report.lost_objects, [needed[0]]);
    assert!(!report.is_complete());
    let new = SqliteStore::open(&to).unwrap();
    assert_eq!(read(&new, journal.session).unwrap(), journal.records());
    let error = block_on(new.object(needed[0])).unwrap_err();
    assert!(matches!(error, StoreError::LostObject { .. }), "{error:?}");
}

/// Losses are known: the new store is sound, reports its losses, and another salvage finds nothing else.
#[test]
fn what_a_salvage_lost_is_no_damage() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    let files = [("file", "some content"), ("nested/.git", "content of git"), ("other", "other content")];
    agent.call(&files);
    let objects = Agent::objects(&files);
    let (directory, path) = store.close();
    for (index, object) in objects.iter().enumerate() {
        let damaged = directory.path().join(format!("damaged-{index}.db"));
        fs::copy(&path, &damaged).unwrap();
        let raw = Connection::open(&damaged).unwrap();
        let sql = "UPDATE objects SET content = x'0102' WHERE id = ?1";
        assert_eq!(raw.execute(sql, [&object.id().as_bytes()[..]]).unwrap(), 1);
        drop(raw);
        let mut from = damaged;
        for round in 0..3 {
            let to = directory.path().join(format!("salvaged-{index}-{round}.db"));
            SqliteStore::salvage(&from, &to).unwrap();
            let new = SqliteStore::open(&to).unwrap();
            let report = new.verify().unwrap();
            assert!(report.is_sound(), "object {index}, round {round}: {:?}", report.findings);
            assert_eq!(report.lost.iter().collect::<Vec<_>>(), [&object.id()], "object {index}");
            from = to;
        }
        // Storing the object again restores it.
        let new = SqliteStore::open(&from).unwrap();
        let mut writer = Writer::create(&new, sample::session(70));
        let mut batch = sample::notes(["brings it back"]);
        // A capture also contains the objects below it, since those are not stored either.
        for object in &objects {
            batch.add_object(object.clone());
        }
        writer.append(batch).unwrap();
        assert_eq!(block_on(new.object(object.id())).unwrap().as_ref(), Some(object));
        let report = new.verify().unwrap();
        assert!(report.is_sound() && report.lost.is_empty(), "object {index}: {report:?}");
    }
}

#[test]
fn nothing_is_written_over() {
    let store = Temporary::new();
    let to = store.path().with_file_name("new.db");
    fs::write(&to, "mine").unwrap();
    let refused = SqliteStore::salvage(store.path(), &to);
    assert!(matches!(refused, Err(OpenError::Exists { .. })), "{refused:?}");
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let missing =
        SqliteStore::salvage(store.path().with_file_name("missing.db"), store.path().with_file_name("x.db"));
    assert!(matches!(missing, Err(OpenError::NotFound { .. })), "{missing:?}");
    assert!(!store.path().with_file_name("x.db").exists());
}

#[test]
fn a_store_without_its_end_is_saved_as_far_as_it_is_there() {
    const PAGE: u64 = 8192;
    let store = Temporary::new();
    let journals: Vec<_> = (3..6).map(|seed| sample::journal(seed, 40)).collect();
    journals.iter().for_each(|journal| write(&*store, journal));
    let (directory, path) = store.close();
    let whole = fs::metadata(&path).unwrap().len();
    let pages = whole / PAGE;
    assert!(pages > 40, "{pages} pages");
    let mut saved = Vec::new();
    for cut in [1, 2, 8, pages / 2] {
        // A copy that was aborted, without and with a part of a page.
        for more in [0, 100] {
            let (short, to) = (directory.path().join("short.db"), directory.path().join("new.db"));
            let bytes = &fs::read(&path).unwrap()[..((pages - cut) * PAGE - more) as usize];
            fs::write(&short, bytes).unwrap();
            let report = SqliteStore::salvage(&short, &to).unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert!(!report.is_complete(), "{cut}");
            assert_eq!(fs::read(&short).unwrap(), bytes, "the old store is not changed");
            let new = SqliteStore::open(&to).unwrap();
            assert!(new.verify().unwrap().is_sound(), "{cut}");
            let mut records = 0;
            for journal in &journals {
                let found = read(&new, journal.session).unwrap_or_default();
                assert_eq!(found, journal.records()[..found.len()], "{cut}");
                records += found.len();
            }
            saved.push(records);
            drop(new);
            let mut names: Vec<_> =
                fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.retain(|name| name.to_string_lossy().contains("partial"));
            assert!(names.is_empty(), "the padded copy is deleted: {names:?}");
            for name in ["new.db", "new.db-wal", "new.db-shm", "short.db"] {
                let _ = fs::remove_file(directory.path().join(name));
            }
        }
    }
    let all: usize = journals.iter().map(|journal| journal.records().len()).sum();
    assert!(saved[0] * 10 > all * 9, "nearly everything without the last page: {saved:?} of {all}");
    assert!(saved.iter().all(|saved| *saved > 0), "{saved:?} of {all}");
}

#[test]
fn what_is_not_a_store_is_not_padded() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    for bytes in [&b""[..], b"SQLite format 3\0", &[7; 9000]] {
        fs::write(&from, bytes).unwrap();
        let saved = SqliteStore::salvage(&from, &to);
        assert!(saved.is_err() || saved.is_ok_and(|report| report.sessions.is_empty()));
        let _ = fs::remove_file(&to);
    }
}
