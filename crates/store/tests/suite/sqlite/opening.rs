//! Opening: accepted files, refused files, and read-only access.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use backstitch_core::ports::{ClaimMode, OpenError, Store, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use tempfile::TempDir;

use super::child::{Running, Task, command, wait_for};
use super::support::{Temporary, Writer, claim, notes, read, write};

#[test]
fn a_store_is_there_again_when_it_is_opened_again() {
    let store = Temporary::new();
    let journals = [sample::every_kind(), sample::journal(3, 20)];
    journals.iter().for_each(|journal| write(&*store, journal));
    let (directory, path) = store.close();
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name == "store.db-wal"), "the log is in the file: {left:?}");
    for _ in 0..2 {
        let store = SqliteStore::open(&path).unwrap();
        for journal in &journals {
            assert_eq!(read(&store, journal.session).unwrap(), journal.records());
        }
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (id INTEGER)").unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(&text, "these are notes, and there are enough of them to look like a header\n".repeat(20))
        .unwrap();
    for path in [path, text] {
        let before = fs::read(&path).unwrap();
        let opened = SqliteStore::open(&path).map(drop);
        assert!(matches!(opened, Err(OpenError::NotAStore)), "{opened:?}");
        let opened = SqliteStore::open_read_only(&path).map(drop);
        assert!(matches!(opened, Err(OpenError::NotAStore)), "{opened:?}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    let missing = SqliteStore::open_read_only(directory.path().join("missing.db")).map(drop);
    assert!(matches!(missing, Err(OpenError::NotFound { .. })), "{missing:?}");
    let inside_a_file = SqliteStore::open(directory.path().join("notes.txt/store.db")).map(drop);
    assert!(matches!(inside_a_file, Err(OpenError::Io { .. })), "{inside_a_file:?}");
    let other = [(directory.path(), "is a directory"), (Path::new("/dev/null"), "is not a regular file")];
    for (path, words) in other {
        for opened in [SqliteStore::open(path).map(drop), SqliteStore::open_read_only(path).map(drop)] {
            let Err(error @ OpenError::Io { .. }) = opened else { panic!("{opened:?}") };
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let (_directory, path) = Temporary::new().close();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    for opened in [SqliteStore::open(&path).map(drop), SqliteStore::open_read_only(&path).map(drop)] {
        assert!(matches!(opened, Err(OpenError::Newer { found: 99, .. })), "{opened:?}");
    }
}

#[test]
fn a_changed_migration_is_refused() {
    let (_directory, path) = Temporary::new().close();
    Connection::open(&path).unwrap().execute("UPDATE migrations SET checksum = 'other'", []).unwrap();
    let opened = SqliteStore::open(&path).map(drop);
    assert!(matches!(opened, Err(OpenError::ChangedMigration { number: 1 })), "{opened:?}");
}

#[test]
fn many_may_create_a_store_at_once() {
    for _ in 0..10 {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("deep/er/store.db");
        let stores: Vec<SqliteStore> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| SqliteStore::open(&path).unwrap())).collect();
            opening.into_iter().map(|opening| opening.join().unwrap()).collect()
        });
        for (seed, store) in stores.iter().enumerate() {
            Writer::create(store, sample::session(seed as u64));
        }
        assert_eq!(block_on(stores[0].sessions()).unwrap().len(), 6);
    }
}

#[test]
fn a_store_that_is_opened_for_reading_cannot_be_written() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let reader = SqliteStore::open_read_only(store.path()).unwrap();
    assert_eq!(read(&reader, journal.session).unwrap(), journal.records());
    // It sees records that are written after it was opened.
    let mut writer = Writer::create(&*store, sample::session(77));
    writer.append(sample::notes(["live"])).unwrap();
    assert_eq!(notes(&reader, writer.session()), ["live"]);

    let (session, fence) = (writer.session(), writer.claim.fence);
    let refused = [
        claim(&reader, session, ClaimMode::TakeOver).map(drop),
        block_on(reader.append(session, writer.next, fence, sample::notes(["x"]))).map(drop),
        block_on(reader.send(session, sample::item("x"))).map(drop),
        block_on(reader.save_snapshot(session, fence, writer.next, vec![1])).map(drop),
        block_on(reader.release(writer.claim.clone())),
    ];
    for outcome in refused {
        assert!(matches!(outcome, Err(StoreError::ReadOnly { .. })), "{outcome:?}");
    }
    writer.append(sample::notes(["still there"])).unwrap();
}

/// Child: has no permission to write anything.
pub(super) fn unprivileged(task: &mut Task) {
    let path = task.store();
    let opened = SqliteStore::open_read_only(&path).map(|store| {
        let journal = sample::every_kind();
        let same = read(&store, journal.session).is_ok_and(|found| found == journal.records());
        same && store.verify().is_ok_and(|report| report.is_sound())
    });
    task.report(format!("read {opened:?}"));
    let outcome = SqliteStore::open(&path).map(|store| {
        let claimed = claim(&store, sample::session(1), ClaimMode::IfFree);
        matches!(claimed, Err(StoreError::ReadOnly { .. }))
    });
    task.report(format!("claimed {outcome:?}"));
    let created = SqliteStore::open(path.with_file_name("new.db")).map(drop);
    task.report(format!("created {created:?}"));
}

#[test]
fn a_store_in_a_place_that_cannot_be_written_can_be_read() {
    let store = Temporary::new();
    write(&*store, &sample::every_kind());
    let (directory, path) = store.close();
    let reports = TempDir::new().unwrap();
    let report = reports.path().join("report");
    let mode =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(reports.path(), 0o777);
    mode(&path, 0o444);
    let before = fs::read(&path).unwrap();
    mode(directory.path(), 0o555);
    let mut command = command("unprivileged", directory.path(), &report);
    if rustix::process::geteuid().is_root() {
        // Permissions do not apply to root, so the child runs as user `nobody`.
        command.uid(65_534).gid(65_534);
    }
    let child = match command.spawn() {
        Ok(child) => Running(child),
        // That user may not be allowed to execute this test binary.
        Err(_) => return mode(directory.path(), 0o755),
    };
    assert_eq!(wait_for(&report, "read"), "Ok(true)");
    let claimed = wait_for(&report, "claimed");
    assert!(claimed == "Ok(true)" || claimed.starts_with("Err(Store(ReadOnly"), "{claimed}");
    let created = wait_for(&report, "created");
    assert!(created.starts_with("Err(Io"), "{created}");
    drop(child);
    mode(directory.path(), 0o755);
    assert_eq!(fs::read(&path).unwrap(), before);
}
