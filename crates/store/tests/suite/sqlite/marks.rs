//! A mark holds as long as nothing that was stored can be missing.

use backstitch_core::ports::{BackupProgress, GcMode, Objects as _, Retention, Store as _, StoredMark};
use backstitch_store::SqliteStore;
use backstitch_testkit::block_on;

use super::agent::Agent;
use super::redaction::redact;
use super::support::Temporary;

#[test]
fn a_mark_holds_until_content_is_removed() {
    let store = Temporary::new();
    let empty = store.mark().unwrap().unwrap();
    assert!(store.keeps(&empty).unwrap());
    let mut agent = Agent::new(&store, 1);
    for version in 0..100 {
        agent.call(&[("file", &format!("version {version}"))]);
    }
    let before = store.mark().unwrap().unwrap();
    agent.call(&[("file", "more")]);
    // More content removes none. Collecting nothing removes none either.
    assert!(store.keeps(&empty).unwrap() && store.keeps(&before).unwrap());
    store.gc(Retention::keep_all(), GcMode::Now).unwrap();
    assert!(store.keeps(&before).unwrap());
    store.gc(Retention::keep_all().keep_boundaries(1), GcMode::Now).unwrap();
    assert!(!store.keeps(&before).unwrap());
    assert!(store.keeps(&store.mark().unwrap().unwrap()).unwrap());
}

#[test]
fn a_redaction_invalidates_marks() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("file", "the \"leaked\" key\\1")]);
    let before = store.mark().unwrap().unwrap();
    let session = agent.session();
    block_on(store.release(agent.claim)).unwrap();
    assert!(!redact(&store, session).objects.is_empty());
    assert!(!store.keeps(&before).unwrap());
}

#[test]
fn a_mark_of_another_store_or_of_a_later_state_does_not_hold() {
    let (store, other) = (Temporary::new(), Temporary::new());
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("file", "one")]);
    let early = store.mark().unwrap().unwrap();
    let copy = store.path().with_file_name("copy.db");
    store.backup(&copy, &mut |_: BackupProgress| {}).unwrap();
    agent.call(&[("file", "two")]);
    let late = store.mark().unwrap().unwrap();
    Agent::new(&other, 2).call(&[("file", "three")]);
    assert!(!other.keeps(&early).unwrap() && !other.keeps(&late).unwrap());

    // The store is replaced by the older copy, which then grows.
    let copy = SqliteStore::open(&copy).unwrap();
    assert!(copy.keeps(&early).unwrap());
    assert!(!copy.keeps(&late).unwrap());
    let mut agent = Agent::new(&copy, 3);
    for version in 0..4 {
        agent.call(&[("file", &format!("another {version}"))]);
    }
    assert!(copy.keeps(&early).unwrap() && !copy.keeps(&late).unwrap());
}

#[test]
fn bytes_that_are_no_mark_do_not_hold() {
    let store = Temporary::new();
    for bytes in [&[][..], &[0; 7], &[0; 16], &[0xff; 48], &[0; 4_096]] {
        assert!(!store.keeps(&StoredMark::new(bytes)).unwrap(), "{} bytes", bytes.len());
    }
}
