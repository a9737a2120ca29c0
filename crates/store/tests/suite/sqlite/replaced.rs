//! A store whose files are removed or replaced while it is open acknowledges no further write, and saves its
//! content.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use backstitch_core::ports::{ClaimMode, GcMode, Retention, Store as _, StoreError};
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Writer, claim, notes};

type Remove = fn(&Path);

/// Ways to remove a store from under the process that has it open. Each receives the path of the store.
const WAYS: &[(&str, Remove)] = &[
    ("rm of the database", |path| fs::remove_file(path).unwrap()),
    ("rm of all files", |path| {
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(beside(path, suffix)).unwrap();
        }
    }),
    ("rm -rf of the directory", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap()),
    ("git clean -fdx", |path| {
        let repository = path.parent().unwrap().parent().unwrap();
        for arguments in [&["init", "-q"][..], &["clean", "-fdxq"]] {
            let status = Command::new("git").arg("-C").arg(repository).args(arguments).status();
            assert!(status.is_ok_and(|status| status.success()), "git is needed here");
        }
        assert!(!path.exists());
    }),
    ("mv of the database", |path| fs::rename(path, beside(path, ".old")).unwrap()),
    ("mv of the directory", |path| {
        let directory = path.parent().unwrap();
        fs::rename(directory, directory.with_extension("old")).unwrap();
    }),
    ("a new file under its name", |path| {
        fs::remove_file(path).unwrap();
        fs::write(path, "").unwrap();
    }),
    ("a copy renamed over it", |path| {
        fs::copy(path, beside(path, ".copy")).unwrap();
        fs::rename(beside(path, ".copy"), path).unwrap();
    }),
    ("another store under its name", |path| {
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let other = SqliteStore::open(path).unwrap();
        Writer::create(&other, sample::session(99)).append(sample::notes(["other"])).unwrap();
    }),
    ("rm of the log", |path| fs::remove_file(beside(path, "-wal")).unwrap()),
    ("an empty log under its name", |path| {
        fs::remove_file(beside(path, "-wal")).unwrap();
        fs::write(beside(path, "-wal"), "").unwrap();
    }),
    ("rm of the log's index", |path| fs::remove_file(beside(path, "-shm")).unwrap()),
    ("a directory under its name", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("a file under its directory's name", |path| {
        let directory = path.parent().unwrap();
        fs::remove_dir_all(directory).unwrap();
        fs::write(directory, "in the way").unwrap();
    }),
];

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes, removes the store, and writes again. Returns the error.
fn write_while(remove: Remove, checkpoint_pages: u32) -> (TempDir, StoreError) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("place/store.db");
    let store = SqliteStore::open_with(&path, SqliteOptions { checkpoint_pages, ..SqliteOptions::default() });
    let store = store.unwrap();
    let mut writer = Writer::create(&store, sample::session(1));
    writer.append(sample::notes(["acknowledged", "as well"])).unwrap();
    remove(&path);
    let error = writer.append(sample::notes(["too late"])).unwrap_err();
    // Every later operation fails in the same way, and nothing is copied twice.
    let later = [
        writer.append(sample::notes(["later"])).map(drop),
        block_on(store.send(writer.session(), sample::item("later"))).map(drop),
        claim(&store, sample::session(2), ClaimMode::IfFree).map(drop),
        block_on(store.release(writer.claim.clone())),
        store.gc(Retention::keep_all(), GcMode::Now).map(drop),
    ];
    for outcome in later {
        assert_eq!(outcome.unwrap_err().to_string(), error.to_string());
    }
    (directory, error)
}

#[test]
fn nothing_is_acknowledged_into_replaced_files() {
    for (way, remove) in WAYS {
        for checkpoint_pages in [1_000, 1] {
            let (directory, error) = write_while(*remove, checkpoint_pages);
            let StoreError::Replaced { path, copy: Some(copy), failure: None } = &error else {
                panic!("{way}: {error:?}")
            };
            assert_eq!(*path, directory.path().join("place/store.db"), "{way}");
            let text = error.to_string();
            assert!(text.contains(&*path.to_string_lossy()), "{way}: {text}");
            assert!(text.contains(&*copy.to_string_lossy()), "{way}: {text}");

            let saved = SqliteStore::open(copy).unwrap_or_else(|error| panic!("{way}: {error}"));
            let found = notes(&saved, sample::session(1));
            assert_eq!(found[..2], ["acknowledged", "as well"], "{way}");
            assert!(found.len() == 2 || found[2..] == ["too late"], "{way}: {found:?}");
            assert!(saved.verify().unwrap().is_sound(), "{way}");
            // The copy is a store like any other.
            let held = claim(&saved, sample::session(1), ClaimMode::TakeOver).unwrap();
            let next = block_on(saved.head(held.session)).unwrap();
            let mut writer = Writer { store: &saved, claim: held, next };
            writer.append(sample::notes(["on"])).unwrap();
            drop(saved);
            if !copy.starts_with(directory.path()) {
                // The directory could not be used.
                for suffix in ["", "-wal", "-shm"] {
                    let _ = fs::remove_file(beside(copy, suffix));
                }
                let _ = fs::remove_dir_all(beside(copy, "-locks"));
            }
        }
    }
}

#[test]
fn another_store_under_the_name_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("place/store.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = Writer::create(&store, sample::session(1));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let other = SqliteStore::open(&path).unwrap();
    let mut others = Writer::create(&other, sample::session(99));
    others.append(sample::notes(["other"])).unwrap();

    writer.append(sample::notes(["too late"])).unwrap_err();
    // A new connection of the first store does not read the other store's files.
    let unread: Vec<_> = (0..8).map(|_| block_on(store.sessions())).collect();
    for sessions in unread.into_iter().flatten() {
        assert_eq!(sessions, [sample::session(1)]);
    }
    drop(store);
    // Closing the first store neither removed the second one's log nor wrote to it.
    others.append(sample::notes(["still"])).unwrap();
    assert_eq!(notes(&other, sample::session(99)), ["other", "still"]);
    assert!(other.verify().unwrap().is_sound());
}

#[test]
fn a_store_behind_a_link_is_found_in_its_place() {
    let directory = TempDir::new().unwrap();
    let (real, link) = (directory.path().join("real.db"), directory.path().join("link.db"));
    drop(SqliteStore::open(&real).unwrap());
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let store = SqliteStore::open(&link).unwrap();
    let mut writer = Writer::create(&store, sample::session(1));
    writer.append(sample::notes(["one"])).unwrap();
    fs::remove_file(beside(&real, "-wal")).unwrap();
    let error = writer.append(sample::notes(["two"])).unwrap_err();
    assert!(matches!(error, StoreError::Replaced { .. }), "{error:?}");
}
