//! An incompletely created store is empty, and belongs to its owner alone.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use backstitch_core::ports::{GcMode, Retention, Store as _, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use tempfile::TempDir;

use super::child::{Running, Task, command, wait_for};
use super::support::{Writer, notes, read};

/// Every reader finds an empty store; opening it for writing completes it.
fn check_empty(path: &Path, what: &str) {
    let before = fs::read(path).unwrap();
    let has_to_be_undone = path.with_file_name("store.db-journal").exists();
    let store = SqliteStore::open_read_only(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(block_on(store.sessions()).unwrap(), [], "{what}");
    let unknown = read(&store, sample::session(1));
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })), "{what}: {unknown:?}");
    assert_eq!(block_on(store.holder(sample::session(1))).unwrap(), None, "{what}");
    assert_eq!(block_on(store.inbox(sample::session(1))).unwrap(), [], "{what}");
    assert!(store.verify().unwrap().is_sound(), "{what}");
    assert_eq!(store.size().unwrap().sessions.len(), 0, "{what}");
    store.gc(Retention::keep_all(), GcMode::DryRun).unwrap();
    assert!(matches!(store.gc(Retention::keep_all(), GcMode::Now), Err(StoreError::ReadOnly { .. })));
    let saved = TempDir::new().unwrap();
    let report = SqliteStore::salvage(path, saved.path().join("saved.db")).unwrap();
    assert!(report.is_complete() && report.sessions.is_empty(), "{what}: {report:?}");
    if !has_to_be_undone {
        assert_eq!(fs::read(path).unwrap(), before, "{what}: reading has changed it");
    }

    // The read-only store sees later writes.
    let writing = SqliteStore::open(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    Writer::create(&writing, sample::session(1)).append(sample::notes(["first"])).unwrap();
    assert_eq!(notes(&store, sample::session(1)), ["first"], "{what}");
    assert!(store.verify().unwrap().is_sound(), "{what}");
}

#[test]
fn a_half_created_store_is_empty() {
    type Prepare = fn(&Path);
    let states: [(&str, Prepare); 4] = [
        ("an empty file", |path| fs::write(path, "").unwrap()),
        ("a database without tables", |path| {
            Connection::open(path).unwrap().execute_batch("VACUUM").unwrap();
        }),
        ("a database without tables that has a log", |path| {
            let raw = Connection::open(path).unwrap();
            raw.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
            raw.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        }),
        ("a journal that has to be undone", |path| {
            let raw = Connection::open(path).unwrap();
            raw.pragma_update(None, "cache_size", 2).unwrap();
            raw.pragma_update(None, "cache_spill", 1).unwrap();
            raw.execute_batch(
                "BEGIN; CREATE TABLE large (content BLOB); INSERT INTO large VALUES (zeroblob(400000))",
            )
            .unwrap();
            // The state that a process killed at this point leaves.
            let journal = path.with_file_name("store.db-journal");
            assert!(fs::metadata(path).unwrap().len() > 0, "some of it has reached the file");
            let (database, log) = (fs::read(path).unwrap(), fs::read(&journal).unwrap());
            drop(raw);
            fs::write(path, database).unwrap();
            fs::write(journal, log).unwrap();
        }),
    ];
    for (what, prepare) in states {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("store.db");
        prepare(&path);
        check_empty(&path, what);
    }
}

/// Child: creates a store, and may be killed while doing so.
pub(super) fn create(task: &mut Task) {
    let store = SqliteStore::open(task.place.join("new/deep/store.db")).unwrap();
    let mut writer = Writer::create(&store, sample::session(1));
    writer.append(sample::notes(["mine"])).unwrap();
    task.report("created");
    // It ends with the test that started it, if that does not kill it.
    let parent = parent_id();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn only_its_owner_may_read_a_store() {
    for umask in ["000", "022", "077", "277", "777"] {
        let directory = TempDir::new().unwrap();
        let report = directory.path().join("report");
        fs::write(&report, "").unwrap();
        let plain = command("create", directory.path(), &report);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
        command.arg(plain.get_program()).args(plain.get_args());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let child = Running::start(command);
        wait_for(&report, "created");
        let mut found = Vec::new();
        check_private(&directory.path().join("new"), &mut found);
        for expected in ["deep", "store.db", "store.db-wal", "store.db-shm", "store.db-locks"] {
            assert!(found.iter().any(|name| name == expected), "umask {umask}: {found:?}");
        }
        assert!(found.iter().any(|name| name.contains("-") && name.ends_with(".1")), "{found:?}");
        child.kill();
    }
}

fn check_private(path: &Path, found: &mut Vec<String>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(metadata.mode() & 0o777, expected, "{}", path.display());
    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check_private(&entry.unwrap().path(), found);
        }
    }
}

#[test]
fn existing_permissions_are_kept() {
    let directory = TempDir::new().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o750)).unwrap();
    let path = directory.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    Writer::create(&store, sample::session(1));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(directory.path()), mode(&path)), (0o750, 0o640));
    assert_eq!(mode(&directory.path().join("store.db-wal")), 0o640);
}
