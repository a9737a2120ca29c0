//! Damage is detected, reported, and never returned as data.

use std::fs;

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, Damage, GcMode, Retention, Store, StoreError, StoreLocation};
use backstitch_store::SqliteStore;
use backstitch_testkit::block_on;
use backstitch_testkit::sample::{self, Journal};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use super::support::{Temporary, claim, read, write};

/// A closed store with some journals.
fn sample_store() -> (TempDir, std::path::PathBuf, Vec<Journal>) {
    let store = Temporary::new();
    let journals = vec![sample::every_kind(), sample::journal(3, 12), sample::journal(4, 5)];
    journals.iter().for_each(|journal| write(&*store, journal));
    let (directory, path) = store.close();
    (directory, path, journals)
}

/// Key of a record in the second session, which is the damaged one.
fn key(position: u64) -> i64 {
    (2 << 32) | position as i64
}

#[test]
fn a_changed_record_is_named() {
    type Change = fn(&Connection) -> rusqlite::Result<usize>;
    let changes: [(&str, Change, u64, Damage); 10] = [
        (
            "another text",
            |raw| {
                raw.execute(
                    "UPDATE records SET record = replace(record, '\":', '\": ') WHERE id = ?1",
                    [key(7)],
                )
            },
            7,
            Damage::Checksum,
        ),
        (
            "another time",
            |raw| raw.execute("UPDATE records SET at = at + 1 WHERE id = ?1", [key(7)]),
            7,
            Damage::Checksum,
        ),
        (
            "another kind",
            |raw| raw.execute("UPDATE records SET kind = kind % 25 + 1 WHERE id = ?1", [key(7)]),
            7,
            Damage::Checksum,
        ),
        (
            "a kind without a meaning",
            |raw| raw.execute("UPDATE records SET kind = 1000 WHERE id = ?1", [key(7)]),
            7,
            Damage::NotText,
        ),
        (
            "a kind without a time",
            |raw| raw.execute("UPDATE records SET at = NULL WHERE id = ?1", [key(7)]),
            7,
            Damage::NotText,
        ),
        (
            "another checksum",
            |raw| raw.execute("UPDATE records SET checksum = zeroblob(16) WHERE id = ?1", [key(7)]),
            7,
            Damage::Checksum,
        ),
        (
            "a short checksum",
            |raw| raw.execute("UPDATE records SET checksum = x'00' WHERE id = ?1", [key(7)]),
            7,
            Damage::Checksum,
        ),
        (
            "a missing record",
            |raw| raw.execute("DELETE FROM records WHERE id = ?1", [key(7)]),
            7,
            Damage::Gap,
        ),
        ("no beginning", |raw| raw.execute("DELETE FROM records WHERE id = ?1", [key(0)]), 0, Damage::Gap),
        (
            "two records that changed places",
            |raw| {
                raw.execute("UPDATE records SET id = -1 WHERE id = ?1", [key(7)])?;
                raw.execute("UPDATE records SET id = ?1 WHERE id = ?2", [key(7), key(8)])?;
                raw.execute("UPDATE records SET id = ?1 WHERE id = -1", [key(8)])
            },
            7,
            Damage::Checksum,
        ),
    ];
    for (what, change, at, expected) in changes {
        let (_directory, path, journals) = sample_store();
        assert_eq!(change(&Connection::open(&path).unwrap()).unwrap(), 1, "{what}");
        let store = SqliteStore::open(&path).unwrap();
        let session = journals[1].session;
        let error = read(&store, session).unwrap_err();
        let StoreError::Damaged { session: named, position, damage } = error else {
            panic!("{what}: {error:?}")
        };
        assert_eq!((named, position, damage), (session, Position::new(at), expected), "{what}");
        // Records before it can be read, and other sessions are not affected.
        let before = block_on(store.read(session, Position::START, at as usize)).unwrap();
        assert_eq!(before, journals[1].records()[..at as usize], "{what}");
        assert_eq!(read(&store, journals[2].session).unwrap(), journals[2].records(), "{what}");
        // A read that starts after it detects a gap, but not a change further back.
        let report = store.verify().unwrap();
        assert_eq!(
            report.findings[0].place,
            StoreLocation::Record(session, Position::new(at)),
            "{what}: {:?}",
            report.findings
        );
    }
}

#[test]
fn a_journal_under_another_name_is_found_out() {
    let (_directory, path, journals) = sample_store();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "UPDATE sessions SET session = 'x' WHERE id = 2;
         UPDATE sessions SET session = (SELECT session FROM sessions WHERE id = 3) || '-' WHERE id = 3;",
    )
    .unwrap();
    raw.execute("UPDATE sessions SET session = ?1 WHERE id = 2", [journals[2].session.to_string()]).unwrap();
    raw.execute("UPDATE sessions SET session = ?1 WHERE id = 3", [journals[1].session.to_string()]).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    for journal in &journals[1..] {
        let error = read(&store, journal.session).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { damage: Damage::Checksum, .. }), "{error:?}");
    }
}

#[test]
fn a_record_that_says_nothing_is_named() {
    let (_directory, path, journals) = sample_store();
    // A record with a correct checksum and an unknown text.
    let raw = Connection::open(&path).unwrap();
    let (count, before): (i64, Vec<u8>) = raw
        .query_row(
            "SELECT id, checksum FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC",
            [key(0), key(0xffff_ffff)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let text = r#"{"v":1,"kind":"dream","at":"2026-01-01T08:00:00Z","data":{}}"#;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before);
    hasher.update(text.as_bytes());
    let checksum = hasher.finalize().as_bytes()[..16].to_vec();
    let sql = "INSERT INTO records (id, checksum, record) VALUES (?1, ?2, ?3)";
    raw.execute(sql, params![count + 1, checksum, text]).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let error = read(&store, journals[1].session).unwrap_err();
    let StoreError::BrokenRecord { session, source } = &error else { panic!("{error:?}") };
    assert_eq!(
        (*session, source.position.number()),
        (journals[1].session, journals[1].records().len() as u64)
    );
    let report = store.verify().unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(report.findings[0].to_string().contains("dream"), "{}", report.findings[0]);
}

#[test]
fn damaged_objects_and_snapshots_are_named() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let held = claim(&*store, journal.session, ClaimMode::IfFree).unwrap();
    block_on(store.save_snapshot(journal.session, held.fence, Position::new(3), vec![9; 5000])).unwrap();
    let object = journal.objects().find(|object| object.bytes().len() > 1000).unwrap();
    let raw = Connection::open(store.path()).unwrap();
    let id = object.id();
    let name = &id.as_bytes()[..];
    for change in [
        "content = x'28b52ffd'",
        "content = zeroblob(50)",
        "content = CAST('text' AS BLOB), encoding = 0",
        "length = 7",
        "length = 9000000000000000000",
        "length = -1",
        "kind = 9",
        "kind = 2",
        "encoding = 9",
    ] {
        raw.execute_batch("SAVEPOINT change").unwrap();
        let sql = format!("UPDATE objects SET {change} WHERE id = ?1");
        assert_eq!(raw.execute(&sql, [name]).unwrap(), 1);
        raw.execute_batch("RELEASE change").unwrap();
        let error = block_on(store.object(object.id())).unwrap_err();
        assert!(matches!(error, StoreError::DamagedObject { .. }), "{change}: {error:?}");
        let report = store.verify().unwrap();
        assert!(
            report.findings.iter().any(|finding| finding.place == StoreLocation::Object(object.id())),
            "{change}"
        );
        // Repair it.
        raw.execute("DELETE FROM objects WHERE id = ?1", [name]).unwrap();
        let report = store.verify().unwrap();
        assert!(report.findings.iter().any(|finding| finding.problem.contains("not stored")), "{change}");
        let mut batch = sample::notes(["brings it back"]);
        batch.add_object(object.clone());
        let next = block_on(store.head(journal.session)).unwrap();
        block_on(store.append(journal.session, next, held.fence, batch)).unwrap();
        assert!(store.verify().unwrap().is_sound(), "{change}");
    }
    for change in ["content = x'00'", "length = 5", "checksum = zeroblob(16)", "position = -5"] {
        raw.execute_batch(&format!("BEGIN; UPDATE snapshots SET {change}; COMMIT")).unwrap();
        let error = block_on(store.snapshot(journal.session)).unwrap_err();
        assert!(matches!(error, StoreError::DamagedSnapshot { .. }), "{change}: {error:?}");
        assert!(!store.verify().unwrap().is_sound());
        block_on(store.save_snapshot(journal.session, held.fence, Position::new(3), vec![9; 5000])).unwrap();
    }
    assert!(store.verify().unwrap().is_sound());
}

/// Bytes change at random offsets of the file: every read is correct or fails.
#[test]
fn random_damage_is_never_taken_for_data() {
    let (_directory, path, journals) = sample_store();
    let bytes = fs::read(&path).unwrap();
    let expected: Vec<_> = journals.iter().map(|journal| (journal.session, journal.records())).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut wrong, mut found) = (0, 0);
    for round in 0..60 {
        let directory = TempDir::new().unwrap();
        let copy = directory.path().join("store.db");
        let mut changed = bytes.clone();
        for _ in 0..1 + random(3) {
            let at = if round % 3 == 0 { random(4096) } else { random(changed.len()) };
            match random(3) {
                0 => changed[at] ^= 1 << random(8),
                1 => changed[at] = random(256) as u8,
                _ => {
                    let end = (at + 1 + random(64)).min(changed.len());
                    changed[at..end].fill(0);
                }
            }
        }
        fs::write(&copy, &changed).unwrap();
        let Ok(store) = SqliteStore::open(&copy) else {
            wrong += 1;
            continue;
        };
        let mut is_wrong = false;
        for (session, records) in &expected {
            match read(&store, *session) {
                // A session without its last records is a prefix of itself.
                Ok(read) => {
                    assert_eq!(read[..], records[..read.len()], "round {round}");
                    is_wrong |= read.len() < records.len();
                }
                Err(_) => is_wrong = true,
            }
            for id in records.iter().flat_map(|record| record.body.object_refs()) {
                match block_on(store.object(id)) {
                    Ok(Some(object)) => assert_eq!(object.id(), id),
                    _ => is_wrong = true,
                }
            }
            let _ = block_on(store.holder(*session));
            let _ = block_on(store.inbox(*session));
            let _ = block_on(store.snapshot(*session));
        }
        let _ = store.size();
        let _ = store.gc(Retention::keep_all(), GcMode::DryRun);
        let report = store.verify();
        if is_wrong {
            wrong += 1;
            found += usize::from(!report.is_ok_and(|report| report.is_sound()));
        }
        drop(store);
        let saved = directory.path().join("saved.db");
        if let Ok(report) = SqliteStore::salvage(&copy, &saved) {
            let new = SqliteStore::open(&saved).unwrap();
            let verified = new.verify().unwrap();
            assert!(verified.is_sound(), "round {round}: {:?}", verified.findings);
            for session in &report.sessions {
                let truth = expected.iter().find(|(known, _)| *known == session.session);
                let Some((_, records)) = truth else { panic!("salvage has made a session up") };
                if session.records > 0 {
                    assert_eq!(read(&new, session.session).unwrap(), records[..session.records as usize]);
                }
            }
        }
    }
    assert!(wrong > 10 && found > 5, "{wrong} rounds did damage, {found} of them were found by verify");
}

#[test]
fn rows_about_missing_records_are_found_and_deleted() {
    let store = Temporary::new();
    write(&*store, &sample::every_kind());
    let raw = Connection::open(store.path()).unwrap();
    raw.execute("INSERT INTO changes (record, number, path) VALUES (77 << 32, 0, 'stray.txt')", []).unwrap();
    let report = store.verify().unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(report.findings[0].to_string().contains("1 changed paths"), "{:?}", report.findings);
    store.remove_stray_summaries().unwrap();
    assert!(store.verify().unwrap().is_sound());
}
