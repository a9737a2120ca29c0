//! When space runs out, no acknowledged record is lost, and writing resumes once there is space again.

use backstitch_core::journal::Position;
use backstitch_core::object::Object;
use backstitch_core::ports::{ClaimMode, GcMode, Retention, Store, StoreError};
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::child::{Running, Task, command_ignoring_file_size_signal, wait_for};
use super::support::{Temporary, Writer, claim, notes};

const LIMIT: u64 = 500 * 1024;

/// Incompressible text.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}

/// Appends until the store is full, and returns the error and the acknowledged texts.
fn fill(writer: &mut Writer<'_>) -> (StoreError, Vec<String>) {
    let mut acknowledged = notes(writer.store, writer.session());
    for seed in 0..10_000 {
        let text = format!("{} {}", acknowledged.len(), noise(seed, 3000));
        match writer.append(sample::notes([text.clone()])) {
            Ok(_) => acknowledged.push(text),
            Err(error) => return (error, acknowledged),
        }
    }
    panic!("it never became full");
}

#[test]
fn a_store_keeps_to_its_size() {
    let options = SqliteOptions { max_bytes: Some(LIMIT), checkpoint_pages: 10, ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let mut writer = Writer::create(&*store, sample::session(1));
    let session = writer.session();
    let (error, acknowledged) = fill(&mut writer);
    let StoreError::Full { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains(&LIMIT.to_string()), "{reason}");
    assert!(acknowledged.len() > 50, "{} were acknowledged", acknowledged.len());
    assert_eq!(notes(&*store, session), acknowledged);
    assert_eq!(block_on(store.head(session)).unwrap(), writer.next);
    assert!(store.size().unwrap().file <= LIMIT);

    // A small batch may still fit; a refused one leaves nothing behind.
    let large = Object::blob(noise(7, 200_000).into_bytes());
    let mut batch = sample::notes(["with an object"]);
    batch.add_object(large.clone());
    let unsynced = store.append_unsynced(session, writer.next, writer.claim.fence, batch.clone());
    let error = block_on(unsynced).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let error = writer.append(batch).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(block_on(store.object(large.id())).unwrap(), None);
    assert_eq!(notes(&*store, session), acknowledged);
    assert!(store.verify().unwrap().is_sound());

    block_on(store.release(writer.claim.clone())).unwrap();
    let (_directory, path) = store.close();
    let store = SqliteStore::open(&path).unwrap();
    let held = claim(&store, session, ClaimMode::IfFree).unwrap();
    let mut writer =
        Writer { store: &store, claim: held, next: Position::new(1 + acknowledged.len() as u64) };
    writer.append(sample::notes(["there is room again"])).unwrap();
    assert_eq!(notes(&store, session).last().map(String::as_str), Some("there is room again"));
}

#[test]
fn one_batch_that_does_not_fit_does_not_keep_others_out() {
    let options = SqliteOptions { max_bytes: Some(LIMIT), ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let writers: Vec<Writer<'_>> =
        (0..4).map(|seed| Writer::create(&*store, sample::session(seed))).collect();
    let appends = writers.iter().enumerate().map(|(index, writer)| {
        let mut batch = sample::notes(["a note"]);
        if index == 1 {
            batch.add_object(Object::blob(noise(7, 600_000).into_bytes()));
        }
        store.append(writer.session(), writer.next, writer.claim.fence, batch)
    });
    let outcomes = block_on(futures_util::future::join_all(appends));
    for (index, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(matches!(outcome, Err(StoreError::Full { .. })), index == 1, "{outcome:?}");
    }
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn garbage_makes_room() {
    let options = SqliteOptions { max_bytes: Some(LIMIT), ..SqliteOptions::default() };
    let store = Temporary::with(options);
    let mut writer = Writer::create(&*store, sample::session(1));
    let mut batch = sample::notes(["contains an unreferenced object"]);
    batch.add_object(Object::blob(noise(7, 200_000).into_bytes()));
    writer.append(batch).unwrap();
    let (_, acknowledged) = fill(&mut writer);
    let report = store.gc(Retention::keep_all(), GcMode::Now).unwrap();
    assert!(report.freed_bytes() > 100_000, "{report:?}");
    let (_, more) = fill(&mut writer);
    assert!(more.len() > acknowledged.len() + 20, "{} and then {}", acknowledged.len(), more.len());
    assert_eq!(notes(&*store, writer.session()), more);
}

/// Child: reaches the file size limit, raises it and continues.
pub(super) fn limited(task: &mut Task) {
    let store = SqliteStore::open_with(
        task.store(),
        SqliteOptions { checkpoint_pages: u32::MAX, ..SqliteOptions::default() },
    );
    let store = store.expect("the store can be opened");
    let mut writer = Writer::create(&store, sample::session(1));
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(2 * LIMIT), ..before })
        .expect("a limit can be lowered");
    let (error, acknowledged) = fill(&mut writer);
    let found = notes(&store, writer.session());
    setrlimit(Resource::Fsize, before).expect("a limit can be raised to where it was");
    task.report(format!("refused {error}"));
    task.report(format!("kept {}", found == acknowledged && found.len() > 10));
    let more = writer.append(sample::notes(["there is room again"]));
    task.report(format!("more {}", more.is_ok()));
    task.report(format!("sound {}", store.verify().is_ok_and(|report| report.is_sound())));
    task.report(format!("count {}", acknowledged.len() + 1));
}

#[test]
fn a_full_disk_loses_nothing() {
    let directory = TempDir::new().unwrap();
    let report = directory.path().join("report");
    let child = command_ignoring_file_size_signal("limited", directory.path(), &report);
    let child = Running::start(child);
    let refused = wait_for(&report, "refused");
    assert!(refused.starts_with("the store is full"), "{refused}");
    assert_eq!(wait_for(&report, "kept"), "true");
    assert_eq!(wait_for(&report, "more"), "true");
    assert_eq!(wait_for(&report, "sound"), "true");
    let count: usize = wait_for(&report, "count").parse().unwrap();
    child.kill();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    assert_eq!(notes(&store, sample::session(1)).len(), count);
}
