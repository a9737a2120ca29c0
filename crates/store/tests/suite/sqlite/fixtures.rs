//! Stores of all released versions can be read, for ever.
//!
//! A fixture is a file that a released program wrote. It is never recreated; each new version of the schema
//! adds one (`cargo test -p backstitch-store make_a_fixture -- --ignored`).

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::journal::{Position, QueueEntry};
use backstitch_core::object::Object;
use backstitch_core::ports::{ClaimMode, GcMode, Queue as _, Retention, Store, StoreError};
use backstitch_core::view::JournalView;
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use tempfile::TempDir;

use super::agent::Agent;
use super::support::{Writer, claim, notes, read, write};

/// Number of the newest version.
const VERSION: u32 = 7;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Contents of the fixtures: name, number of sessions, and a digest over the texts of all records.
const FIXTURES: &[(&str, usize, &str)] = &[
    ("store-v1.db", 4, "93005b7a8e8474c1"),
    ("store-v2.db", 4, "41b112e24f34bbb6"),
    ("store-v3.db", 4, "bc2e08c952e34b2d"),
    ("store-v4.db", 4, "51533b03223d0729"),
    ("store-v5.db", 4, "a539f055770f0c29"),
    ("store-v6.db", 4, "4a05dc065a802a72"),
    ("store-v7.db", 4, "6980abf70e9a5416"),
];

#[test]
#[ignore = "makes the fixture of the newest version, once"]
fn make_a_fixture() {
    let path = directory().join(FIXTURES.last().unwrap().0);
    assert!(!path.exists(), "a fixture is never made again");
    fs::create_dir_all(directory()).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    write(&store, &sample::every_kind());
    write(&store, &sample::journal(3, 6));
    let mut agent = Agent::new(&store, 50);
    for index in 0..4 {
        agent.call(&[("file", &index.to_string()), ("same", "the same")]);
    }
    store.gc(Retention::keep_all().keep_boundaries(1), GcMode::Now).unwrap();
    let mut writer = Writer::create(&store, sample::session(60));
    writer.append(sample::notes(["one", "two"])).unwrap();
    let (session, fence) = (writer.session(), writer.claim.fence);
    block_on(store.send(session, sample::item("waits"))).unwrap();
    block_on(store.save_snapshot(session, fence, Position::new(2), b"a snapshot".to_vec())).unwrap();
    block_on(Store::release(&store, agent.claim)).unwrap();
    block_on(Store::release(&store, writer.claim)).unwrap();
    block_on(store.enqueue(session, QueueEntry::new("tailor").with_key("once"))).unwrap();
    drop(store);
    let locks = format!("{}-locks", FIXTURES.last().unwrap().0);
    fs::remove_dir_all(path.with_file_name(locks)).unwrap();
}

/// Digest over the rows of all records, and their number.
fn digest(path: &Path) -> (String, usize) {
    let raw = Connection::open(path).unwrap();
    let row = if version(&raw) < 4 { "record" } else { "concat_ws(' ', kind, at, record)" };
    let mut sql = raw.prepare(&format!("SELECT {row} FROM records ORDER BY id")).unwrap();
    let texts: Vec<String> = sql.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    (blake3::hash(texts.join("\n").as_bytes()).to_hex()[..16].to_owned(), texts.len())
}

fn version(raw: &Connection) -> u32 {
    raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn count(store: &SqliteStore) -> usize {
    let sessions = block_on(store.sessions()).unwrap();
    sessions.into_iter().map(|session| read(store, session).unwrap().len()).sum()
}

#[test]
fn stores_of_all_versions_are_read() {
    for (name, sessions, expected) in FIXTURES {
        let temporary = TempDir::new().unwrap();
        let path = temporary.path().join(name);
        fs::copy(directory().join(name), &path).unwrap();
        let before = fs::read(&path).unwrap();

        // The newest version can also be read in a read-only location; older ones are migrated first.
        let (stored, records) = digest(&path);
        assert_eq!(stored, *expected, "{name}");
        let written_by = version(&Connection::open(&path).unwrap());
        if let Ok(store) = SqliteStore::open_read_only(&path) {
            assert_eq!(count(&store), records, "{name}");
            drop(store);
            assert_eq!(fs::read(&path).unwrap(), before, "reading {name} has changed it");
        }
        let store = SqliteStore::open(&path).unwrap();
        let raised = version(&Connection::open(&path).unwrap());
        assert_eq!(raised, VERSION, "{name} has a version that older programs refuse");
        assert_eq!(count(&store), records, "{name}");
        let ids = block_on(store.sessions()).unwrap();
        assert_eq!(ids.len(), *sessions, "{name}");
        // The third session holds calls of no evaluation, which matter only for garbage collection.
        for session in [ids[0], ids[1], ids[3]] {
            JournalView::fold(&read(&store, session).unwrap()).unwrap();
        }
        let report = store.verify().unwrap();
        assert!(report.is_sound(), "{name}: {:?}", report.findings);

        let session = sample::session(60);
        let inbox = block_on(store.inbox(session)).unwrap();
        assert_eq!(inbox.len(), 1);
        assert_eq!(inbox[0].1, sample::item("waits"));
        let snapshot = block_on(store.snapshot(session)).unwrap();
        let snapshot = snapshot.as_ref().map(|snapshot| (snapshot.position, &snapshot.bytes[..]));
        // Version 4 removes those of older versions.
        let expected = (written_by >= 4).then_some((Position::new(2), &b"a snapshot"[..]));
        assert_eq!(snapshot, expected, "{name}");
        if written_by < 4 {
            assert_eq!(block_on(store.unindexed(usize::MAX)).unwrap(), ids, "{name} has no index yet");
        }
        // Version 6 lists what calls changed. A session of an older one may have changed any path.
        let found = block_on(store.changing_sessions("")).unwrap();
        match written_by {
            ..6 => assert_eq!((found.certain, found.possible), (Vec::new(), ids.clone()), "{name}"),
            _ => assert_eq!((found.certain, found.possible), (vec![ids[0]], Vec::new()), "{name}"),
        }
        // Version 7 has a queue.
        let keyed = block_on(store.keyed("once")).unwrap();
        assert_eq!(keyed, (written_by >= 7).then_some(session), "{name}");
        assert_eq!(block_on(store.counts()).unwrap().len(), usize::from(written_by >= 7), "{name}");
        block_on(store.enqueue(session, QueueEntry::new("cutter"))).unwrap();
        let pruned = Agent::tree_of(&[("file", "0"), ("same", "the same")]);
        let error = block_on(store.object(pruned)).unwrap_err();
        assert!(matches!(error, StoreError::Pruned { .. }), "{error:?}");
        let shared = Object::blob(*b"the same");
        assert_eq!(block_on(store.object(shared.id())).unwrap(), Some(shared));

        // It can also be written.
        let held = claim(&store, session, ClaimMode::IfFree).unwrap();
        assert_eq!(held.fence.0, 2);
        let mut writer = Writer { store: &store, claim: held, next: block_on(store.head(session)).unwrap() };
        let mut batch = sample::notes(["three"]);
        batch.take(inbox[0].0);
        writer.append(batch).unwrap();
        assert_eq!(notes(&store, session), ["one", "two", "three"]);
    }
}
