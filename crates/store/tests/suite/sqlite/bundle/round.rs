//! A bundle holds everything of a session, and nothing of others.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use backstitch_core::ports::{
    BundleError, ClaimMode, GcMode, OpenBundle as _, OpenError, Retention, SessionRole, Store as _,
    TransferOutcome,
};
use backstitch_store::{Bundle, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;

use super::super::agent::Agent;
use super::super::support::{Temporary, Writer, claim, read, write};
use super::{check_same, check_sound, empty, exported, imported, sessions};

#[test]
fn every_kind_of_record_survives_a_bundle() {
    let store = Temporary::new();
    let journals = [sample::every_kind(), sample::journal(3, 12), sample::journal(4, 30)];
    journals.iter().for_each(|journal| write(&*store, journal));
    for journal in &journals {
        let session = journal.session;
        block_on(store.send(session, sample::item("waits"))).unwrap();
        let path = exported(&store, session, &format!("{session}.bundle"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let target = empty();
        let report = imported(&target, &path).unwrap();
        assert_eq!(report.session, session);
        assert_eq!(report.outcome(), TransferOutcome::Created);
        assert_eq!(report.sessions.last().unwrap().records, journal.records().len() as u64);
        check_same(&store, &target, session);
        check_sound(&target);
        // The session can be driven at once.
        let held = claim(&*target, session, ClaimMode::IfFree).unwrap();
        let next = block_on(target.head(session)).unwrap();
        Writer { store: &*target, claim: held, next }.append(sample::notes(["on"])).unwrap();
    }
}

#[test]
fn a_bundle_is_a_small_store_without_claims_and_other_sessions() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["mine"])).unwrap();
    write(&*store, &sample::journal(3, 20));
    let path = exported(&store, writer.session(), "one.bundle");
    let names: Vec<String> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        !names.iter().any(|name| name.contains("partial") || name.starts_with("one.bundle-")),
        "{names:?}"
    );

    let small = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(sessions(&small), [writer.session()]);
    check_same(&store, &small, writer.session());
    check_sound(&small);
    let raw = Connection::open(&path).unwrap();
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        raw.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((count("claims"), count("snapshots"), count("objects")), (0, 0, 0));
    let mode: String = raw.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete", "one file is the whole bundle");
    // A damaged bundle can be salvaged as a store.
    let saved = path.with_file_name("saved.db");
    assert!(SqliteStore::salvage(&path, &saved).unwrap().is_complete());
    let bundle = Bundle::open(&path, &mut |_| {}).unwrap();
    assert_eq!((bundle.session(), bundle.counts()), (writer.session(), (1, 2, 0)));
    assert!(bundle.written_at().is_some());
}

#[test]
fn files_of_all_calls_are_in_a_bundle_and_pruned_ones_stay_pruned() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    let roots: Vec<_> =
        (0..5).map(|index: u8| agent.call(&[("file", &index.to_string()), ("a/.git", "x")])).collect();
    let other = Agent::new(&store, 60).call(&[("file", "of another session")]);
    store.gc(Retention::keep_all().keep_boundaries(2), GcMode::Now).unwrap();
    let path = exported(&store, agent.session(), "files.bundle");
    let target = empty();
    imported(&target, &path).unwrap();
    check_sound(&target);
    for root in &roots {
        for id in [root.tree, root.manifest] {
            let (here, there) = (block_on(store.object(id)), block_on(target.object(id)));
            assert_eq!(here.as_ref().ok(), there.as_ref().ok());
            assert_eq!(here.err().map(|error| error.code()), there.err().map(|error| error.code()));
        }
    }
    assert_eq!(block_on(target.object(other.tree)).unwrap(), None);
    // Collecting garbage keeps everything that was imported.
    let before = target.verify().unwrap().objects;
    target.gc(Retention::keep_all(), GcMode::Now).unwrap();
    assert_eq!(target.verify().unwrap().objects, before);
}

#[test]
fn changed_paths_are_listed_where_a_session_is_moved_to() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let mut agent = Agent::new(&store, 50);
    agent.call(&[("file", "1")]);
    agent.call(&[("file", "2")]);
    let target = empty();
    for session in [journal.session, agent.session()] {
        let path = exported(&store, session, &format!("{session}.bundle"));
        // What the bundle itself lists does not count.
        let raw = Connection::open(&path).unwrap();
        let sql = "INSERT INTO changes (record, number, path) VALUES ((1 << 32) + 7, 99, 'forged.txt')";
        raw.execute(sql, []).unwrap();
        drop(raw);
        imported(&target, &path).unwrap();
    }
    let changes = |store: &SqliteStore| block_on(store.changes(journal.session)).unwrap().unwrap();
    assert_eq!((changes(&target).len(), changes(&target)), (1, changes(&store)));
    // Its calls have changed files, and record no paths.
    assert_eq!(block_on(target.changes(agent.session())).unwrap(), None);
    assert_eq!(block_on(target.changing_sessions("forged.txt")).unwrap().certain, []);
    let found = block_on(target.changing_sessions("hem.txt")).unwrap();
    assert_eq!((found.certain, found.possible), (vec![journal.session], vec![agent.session()]));
}

#[test]
fn a_session_is_copied_from_store_to_store() {
    let (one, two) = (Temporary::new(), empty());
    let journal = sample::every_kind();
    write(&*one, &journal);
    write(&*two, &sample::journal(3, 5));
    let mut steps = Vec::new();
    let report = one.copy_session(journal.session, &two, &mut |progress| steps.push(progress)).unwrap();
    assert_eq!(report.sessions.len(), 1);
    assert_eq!(report.sessions[0].role, SessionRole::Main);
    assert!(steps.iter().all(|step| step.done <= step.total));
    check_same(&one, &two, journal.session);
    check_sound(&two);
    assert_eq!(sessions(&two).len(), 2);
    let again = one.copy_session(journal.session, &two, &mut |_| {}).unwrap();
    assert_eq!((again.outcome(), again.objects), (TransferOutcome::Present, 0));
    // A store may be copied to itself: everything is there.
    let same = one.copy_session(journal.session, &one, &mut |_| {}).unwrap();
    assert_eq!(same.outcome(), TransferOutcome::Present);
}

#[test]
fn an_export_replaces_nothing_and_names_what_is_missing() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let path = store.path().with_file_name("mine");
    fs::write(&path, "precious").unwrap();
    let refused = store.export_bundle(journal.session, &path, &mut |_| {});
    assert!(matches!(refused, Err(BundleError::Open(OpenError::Exists { .. }))), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    let new = store.path().with_file_name("new");
    let unknown = store.export_bundle(sample::session(9), &new, &mut |_| {});
    assert_eq!(unknown.unwrap_err().code().as_str(), "session_not_found");
    let needed = read(&*store, journal.session).unwrap();
    let needed = needed.iter().flat_map(|record| record.body.object_refs()).next().unwrap();
    let raw = Connection::open(store.path()).unwrap();
    raw.execute("DELETE FROM objects WHERE id = ?1", [&needed.as_bytes()[..]]).unwrap();
    let missing = store.export_bundle(journal.session, &new, &mut |_| {}).unwrap_err();
    assert!(missing.to_string().contains(&needed.to_string()), "{missing}");
    assert!(!new.exists());
}

#[test]
fn bundles_of_older_versions_are_imported() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["store-v1.db", "store-v3.db"] {
        let place = tempfile::tempdir().unwrap();
        let (old, path) = (place.path().join("old.db"), place.path().join("bundle"));
        fs::copy(fixtures.join(name), &old).unwrap();
        fs::copy(fixtures.join(name), &path).unwrap();
        let store = SqliteStore::open(&old).unwrap();
        let session = sample::session(60);
        let raw = Connection::open(&path).unwrap();
        raw.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
        raw.execute_batch(&format!(
            "CREATE TABLE bundle (
    version INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    at TEXT NOT NULL,
    program TEXT NOT NULL
) STRICT;
            INSERT INTO bundle VALUES (1, '{session}', '2026-01-01T00:00:00Z', '0.0.1')"
        ))
        .unwrap();
        drop(raw);
        let before = fs::read(&path).unwrap();
        let target = empty();
        let report = imported(&target, &path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((report.session, report.outcome()), (session, TransferOutcome::Created));
        check_same(&store, &target, session);
        check_sound(&target);
        assert_eq!(fs::read(&path).unwrap(), before, "the bundle itself is not migrated");
    }
}
