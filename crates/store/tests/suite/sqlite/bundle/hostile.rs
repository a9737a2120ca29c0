//! Bundles of unknown origin: whatever they hold, an import is complete or refused, and a refused one changes
//! nothing.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::object::{Object, ObjectKind};
use backstitch_core::ports::BundleError;
use backstitch_core::ports::Store as _;
use backstitch_filesystem::format::{TreeEntry, TreeMode, tree_object};
use backstitch_store::{Bundle, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use super::super::agent::Agent;
use super::super::support::{Temporary, read, write};
use super::{check_sound, exported, imported};

/// A store with a session that has every kind of record, files, a fork and an inbox, and its bundle.
struct Origin {
    store: Temporary,
    bundle: PathBuf,
    session: backstitch_core::id::SessionId,
}

impl Origin {
    fn new() -> Self {
        let store = Temporary::new();
        let mut agent = Agent::new(&store, 50);
        agent.call(&[("file", "0"), ("a/.git", "x")]);
        let mut fork = agent.fork(51, agent.next);
        fork.call(&[("file", &"text ".repeat(100))]);
        let session = fork.session();
        block_on(store.send(session, sample::item("waits"))).unwrap();
        let bundle = exported(&store, session, "origin.bundle");
        Self { store, bundle, session }
    }

    fn of_every_kind() -> Self {
        let store = Temporary::new();
        let journal = sample::every_kind();
        write(&*store, &journal);
        let bundle = exported(&store, journal.session, "origin.bundle");
        Self { store, bundle, session: journal.session }
    }

    /// A copy of the bundle that SQL has changed.
    fn changed(&self, sql: &str) -> (TempDir, PathBuf) {
        self.changed_by(|raw| raw.execute_batch(sql).unwrap())
    }

    fn changed_by(&self, change: impl FnOnce(&Connection)) -> (TempDir, PathBuf) {
        let place = TempDir::new().unwrap();
        let path = place.path().join("bundle");
        fs::copy(&self.bundle, &path).unwrap();
        let raw = Connection::open(&path).unwrap();
        change(&raw);
        drop(raw);
        (place, path)
    }

    #[track_caller]
    fn check_refused(&self, path: &Path, what: &str) -> BundleError {
        let target = Temporary::new();
        let before = fs::read(target.path()).unwrap();
        let error = imported(&target, path).expect_err(what);
        assert_eq!(block_on(target.sessions()).unwrap(), [], "{what}");
        assert_eq!(fs::read(target.path()).unwrap(), before, "{what}: something was written");
        error
    }
}

#[test]
fn changed_rows_are_refused() {
    let origin = Origin::new();
    let strict_off = "PRAGMA writable_schema = ON;";
    let changes = [
        ("a changed record", "UPDATE records SET record = replace(record, 'edit', 'exit')"),
        ("a missing record", "DELETE FROM records WHERE (id & 4294967295) = 1"),
        ("a missing end", "DELETE FROM records WHERE (id & 4294967295) = 2 AND id >> 32 = 1"),
        ("no records", "DELETE FROM records"),
        ("a changed checksum", "UPDATE records SET checksum = zeroblob(16)"),
        ("a short checksum", "UPDATE records SET checksum = x'00'"),
        ("no sessions", "DELETE FROM sessions"),
        ("no ancestor", "DELETE FROM sessions WHERE id = 1"),
        ("ids that are exchanged", "UPDATE sessions SET session = CASE id WHEN 1 THEN 'x' ELSE session END;"),
        ("numbers that are exchanged", "UPDATE sessions SET id = id + 10; UPDATE sessions SET id = 13 - id"),
        ("another session", "UPDATE bundle SET session = '01890a5d-ac96-774b-bcce-000000000001'"),
        ("no session", "DELETE FROM bundle"),
        ("an invalid session", "UPDATE bundle SET session = '../../etc/passwd'"),
        ("another version", "UPDATE bundle SET version = 2"),
        ("no objects", "DELETE FROM objects"),
        ("no trees", "DELETE FROM objects WHERE kind = 2"),
        ("no blobs", "DELETE FROM objects WHERE kind = 1"),
        ("lost content", "UPDATE objects SET content = x'0102', encoding = 0 WHERE kind = 1"),
        ("another kind", "UPDATE objects SET kind = 3 - kind"),
        ("an unknown kind", "UPDATE objects SET kind = 9"),
        ("an unknown encoding", "UPDATE objects SET encoding = 9"),
        ("a negative length", "UPDATE objects SET length = -1"),
        ("an inbox item that is not JSON", "UPDATE inbox SET data = '{'"),
        ("an inbox item of no time", "UPDATE inbox SET at = 'yesterday'"),
        ("an extra table", "CREATE TABLE more (id)"),
        ("a trigger", "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM records; END"),
        ("an index", "CREATE INDEX i ON records (record)"),
        (
            "a view instead of a table",
            "ALTER TABLE records RENAME TO old; CREATE VIEW records AS SELECT * FROM old",
        ),
        ("no table", "DROP TABLE inbox"),
        ("another application", "PRAGMA application_id = 1"),
        ("a later version", "PRAGMA user_version = 99"),
        ("a changed migration", "UPDATE migrations SET checksum = 'x' WHERE number = 1"),
        (
            "another schema text",
            &format!(
                "{strict_off} UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'sessions'"
            ),
        ),
    ];
    for (what, sql) in changes {
        let (_place, path) = origin.changed(sql);
        let error = origin.check_refused(&path, what);
        let codes = ["bundle_invalid", "not_a_store", "store_newer"];
        assert!(codes.contains(&error.code().as_str()), "{what}: {error} ({})", error.code());
    }
}

#[test]
fn a_store_and_other_files_are_no_bundles() {
    let origin = Origin::new();
    let place = TempDir::new().unwrap();
    let store = place.path().join("backup.db");
    origin.store.backup(&store, &mut |_| {}).unwrap();
    assert!(matches!(origin.check_refused(&store, "a store"), BundleError::NotABundle { .. }));
    for (name, bytes) in [("empty", &b""[..]), ("text", b"hello"), ("zeros", &[0; 8192])] {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        origin.check_refused(&path, name);
    }
    let missing = Bundle::open(place.path().join("missing"), &mut |_| {}).unwrap_err();
    assert_eq!(missing.code().as_str(), "store_not_found");
    let directory = Bundle::open(place.path(), &mut |_| {}).unwrap_err();
    assert_eq!(directory.code().as_str(), "io");
    // A bundle that is open as a store may change.
    let path = place.path().join("open.bundle");
    fs::copy(&origin.bundle, &path).unwrap();
    let open = SqliteStore::open(&path).unwrap();
    super::super::support::Writer::create(&open, sample::session(77));
    assert!(matches!(origin.check_refused(&path, "open"), BundleError::Invalid { .. }));
    drop(open);
    imported(&Temporary::new(), &path).unwrap();
}

#[test]
fn bombs_are_refused_by_their_size() {
    let origin = Origin::new();
    // Content that decompresses to far more than it takes.
    let (_place, path) = origin.changed_by(|raw| {
        let huge = zstd_of_zeros(3 << 20);
        let sql = "UPDATE objects SET encoding = 1, content = ?1, length = ?2";
        raw.execute(sql, params![huge, 1_i64 << 50]).unwrap();
    });
    assert!(matches!(origin.check_refused(&path, "a false length"), BundleError::Excessive { .. }));

    // Trees that name each other twice: 2^60 paths in sixty small objects.
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    let mut objects = vec![Object::blob(*b"x")];
    let mut below = TreeEntry { name: b"f".to_vec(), mode: TreeMode::File, object: objects[0].id() };
    for _ in 0..60 {
        let names = [b"a".to_vec(), b"b".to_vec()];
        let tree = tree_object(&names.map(|name| TreeEntry { name, ..below.clone() })).unwrap();
        assert_eq!(tree.kind(), ObjectKind::Tree);
        below = TreeEntry { name: Vec::new(), mode: TreeMode::Directory, object: tree.id() };
        objects.push(tree);
    }
    agent.finish_with(objects);
    let path = exported(&store, agent.session(), "bomb.bundle");
    let error = origin.check_refused(&path, "a tree bomb");
    assert!(matches!(error, BundleError::Excessive { .. }), "{error}");
    assert!(error.to_string().contains("paths"), "{error}");
}

fn zstd_of_zeros(length: usize) -> Vec<u8> {
    // SQLite compresses nothing, so a frame is taken from a store.
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    agent.call(&[("zeros", &"\0".repeat(length))]);
    let raw = Connection::open(store.path()).unwrap();
    let sql = "SELECT content FROM objects WHERE length = ?1";
    raw.query_row(sql, [length as i64], |row| row.get(0)).unwrap()
}

/// Number of mutations of each kind. `BACKSTITCH_FUZZ_RUNS` sets another one.
fn runs() -> u64 {
    std::env::var("BACKSTITCH_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// Checks a mutated bundle: it is refused and nothing changes, or all that it holds is as in the original.
fn check_mutated(origin: &Origin, target: &mut Temporary, bytes: &[u8], what: &str) -> bool {
    let path = origin.bundle.with_file_name("mutated.bundle");
    fs::write(&path, bytes).unwrap();
    let before = fs::read(target.path()).unwrap();
    match imported(target, &path) {
        Ok(report) => {
            assert_eq!(report.session, origin.session, "{what}");
            for one in &report.sessions {
                let records = read(&*origin.store, one.session).unwrap();
                let moved = read(&**target, one.session).unwrap();
                assert_eq!(moved, records[..moved.len()], "{what}");
            }
            check_sound(target);
            *target = Temporary::new();
            true
        }
        Err(error) => {
            let _ = (error.code(), error.to_string());
            assert_eq!(block_on(target.sessions()).unwrap(), [], "{what}: {error}");
            assert_eq!(fs::read(target.path()).unwrap(), before, "{what}: {error}");
            false
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "long runs report how many mutations had no effect")]
fn random_changes_of_a_bundle_are_refused_or_have_no_effect() {
    for origin in [Origin::new(), Origin::of_every_kind()] {
        let original = fs::read(&origin.bundle).unwrap();
        let (mut accepted, mut random, mut target) = (0, Random(17), Temporary::new());
        for run in 0..runs() {
            let mut bytes = original.clone();
            let what = match run % 5 {
                0 => {
                    let (at, bit) = (random.below(bytes.len()), random.below(8));
                    bytes[at] ^= 1 << bit;
                    format!("bit {bit} of byte {at}")
                }
                1 => {
                    let end = random.below(bytes.len());
                    bytes.truncate(end);
                    format!("cut at {end}")
                }
                2 => {
                    // Where the file is dense: its header and the beginnings of pages.
                    let at = random.below(bytes.len() / 4096) * 4096 + random.below(128);
                    let byte = random.below(256) as u8;
                    bytes[at] = byte;
                    format!("byte {at} is {byte}")
                }
                3 => {
                    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                    let length = random.below(4096).min(bytes.len() - from.max(to));
                    bytes.copy_within(from..from + length, to);
                    format!("{length} bytes from {from} to {to}")
                }
                _ => {
                    let (one, two) = (random.below(bytes.len() / 4096), random.below(bytes.len() / 4096));
                    for index in 0..4096 {
                        bytes.swap(one * 4096 + index, two * 4096 + index);
                    }
                    format!("pages {one} and {two} exchanged")
                }
            };
            accepted += u64::from(check_mutated(&origin, &mut target, &bytes, &format!("run {run}: {what}")));
        }
        eprintln!("{accepted} of {} mutations had no effect", runs());
    }
}
