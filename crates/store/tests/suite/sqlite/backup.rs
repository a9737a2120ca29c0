//! A backup is one consistent state of a store that is being used.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, OpenError, Store as _, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};

use super::support::{Temporary, Writer, claim, notes, read, write};

#[test]
fn a_backup_of_a_store_that_others_write_is_a_sound_store() {
    let store = Temporary::new();
    write(&*store, &sample::every_kind());
    let path = store.path().to_owned();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in [71, 72] {
            let (path, is_over) = (&path, &is_over);
            scope.spawn(move || {
                // Its own connections and lock files, as in another process.
                let store = SqliteStore::open(path).unwrap();
                let mut writer = Writer::create(&store, sample::session(seed));
                for number in 0.. {
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                    writer.append(sample::notes([format!("{number}a"), format!("{number}b")])).unwrap();
                }
            });
        }
        for number in 0..6 {
            let before = block_on(store.sessions()).unwrap();
            let heads: Vec<Position> = before.iter().map(|id| block_on(store.head(*id)).unwrap()).collect();
            let to = path.with_file_name(format!("backup-{number}.db"));
            let bytes = store.backup(&to, &mut |_| {}).unwrap();
            assert_eq!(bytes, fs::metadata(&to).unwrap().len());
            assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o600);
            let backup = SqliteStore::open(&to).unwrap();
            let report = backup.verify().unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            for (session, head) in before.iter().zip(heads) {
                assert!(block_on(backup.head(*session)).unwrap() >= head, "everything acknowledged is in it");
            }
            for seed in [71, 72] {
                let Ok(records) = read(&backup, sample::session(seed)) else { continue };
                assert_eq!(records.len() % 2, 1, "batches are whole");
            }
            assert_eq!(read(&backup, sample::every_kind().session).unwrap(), sample::every_kind().records());
        }
        is_over.store(true, Ordering::Release);
    });
    let names: Vec<String> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.contains("partial")), "{names:?}");
}

#[test]
fn no_session_is_held_in_a_backup_and_fences_stay() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["one"])).unwrap();
    let to = store.path().with_file_name("backup.db");
    // Also from a store that was opened for reading.
    SqliteStore::open_read_only(store.path()).unwrap().backup(&to, &mut |_| {}).unwrap();
    let backup = SqliteStore::open(&to).unwrap();
    assert_eq!(block_on(backup.holder(writer.session())).unwrap(), None);
    let held = claim(&backup, writer.session(), ClaimMode::IfFree).unwrap();
    assert!(held.fence > writer.claim.fence);
    writer.append(sample::notes(["two"])).unwrap();
    assert_eq!(notes(&backup, writer.session()), ["one"]);
    let stale = block_on(backup.append(
        writer.session(),
        Position::new(2),
        writer.claim.fence,
        sample::notes(["stale"]),
    ));
    assert!(matches!(stale, Err(StoreError::Fenced { .. })), "{stale:?}");
}

#[test]
fn a_backup_replaces_nothing() {
    let store = Temporary::new();
    write(&*store, &sample::journal(1, 3));
    let to = store.path().with_file_name("mine");
    fs::write(&to, "precious").unwrap();
    let refused = store.backup(&to, &mut |_| {});
    assert!(matches!(&refused, Err(OpenError::Exists { path }) if *path == to), "{refused:?}");
    assert!(matches!(store.backup(store.path(), &mut |_| {}), Err(OpenError::Exists { .. })));
    assert_eq!(fs::read_to_string(&to).unwrap(), "precious");
    let nowhere = store.path().with_file_name("no/such/directory/backup.db");
    assert!(matches!(store.backup(nowhere, &mut |_| {}), Err(OpenError::Io { .. })));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn files_that_replaced_those_of_the_store_are_not_backed_up() {
    let (store, other) = (Temporary::new(), Temporary::new());
    write(&*store, &sample::journal(1, 3));
    write(&*other, &sample::journal(2, 3));
    let copy = store.path().with_file_name("other.db");
    other.backup(&copy, &mut |_| {}).unwrap();
    fs::rename(&copy, store.path()).unwrap();
    let to = store.path().with_file_name("backup.db");
    let refused = store.backup(&to, &mut |_| {});
    assert!(matches!(&refused, Err(OpenError::Store(StoreError::Replaced { .. }))), "{refused:?}");
    assert!(!to.exists());
}
