//! A truncated log opens to a complete prefix of the acknowledged records.

use std::fs::{self, File};
use std::path::Path;

use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::{ClaimMode, Store as _, StoreError};
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, claim, read};

const HEADER: u64 = 32;
const FRAME: u64 = 24 + 8192;

/// A store that never checkpoints by itself.
fn without_checkpoints() -> Temporary {
    Temporary::with(SqliteOptions { checkpoint_pages: u32::MAX, ..SqliteOptions::default() })
}

/// Copies the files of a store as a crash would leave them, with the log truncated.
fn image(path: &Path, cut: u64) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::copy(path, directory.path().join("store.db")).unwrap();
    let log = directory.path().join("store.db-wal");
    fs::copy(path.with_file_name("store.db-wal"), &log).unwrap();
    File::options().write(true).open(&log).unwrap().set_len(cut).unwrap();
    directory
}

fn log_length(path: &Path) -> u64 {
    fs::metadata(path.with_file_name("store.db-wal")).unwrap().len()
}

#[test]
fn a_log_that_is_cut_anywhere_opens_to_a_valid_beginning() {
    let store = without_checkpoints();
    let journal = sample::journal(3, 20);
    let held = claim(&*store, journal.session, ClaimMode::IfFree).unwrap();
    // Length of the log after each number of acknowledged records.
    let mut acknowledged = vec![(log_length(store.path()), Position::START)];
    let mut next = Position::START;
    for batch in &journal.batches {
        next = block_on(store.append(journal.session, next, held.fence, batch.clone())).unwrap();
        acknowledged.push((log_length(store.path()), next));
    }
    let all = journal.records();
    let length = log_length(store.path());
    let frames = (length - HEADER) / FRAME;
    assert!(frames > 60, "{frames} frames");

    let boundaries = (0..=frames).map(|frame| HEADER + frame * FRAME);
    let inside = (0..frames).map(|frame| HEADER + frame * FRAME + 1 + (frame * 997) % (FRAME - 1));
    for cut in boundaries.chain(inside).chain([0, 1, 31]) {
        let directory = image(store.path(), cut);
        let path = directory.path().join("store.db");
        // The truncated part may include the tables: then there is no store yet, or an empty one.
        let cut_store = SqliteStore::open(&path).unwrap_or_else(|error| panic!("cut at {cut}: {error:?}"));
        let found: Vec<Record> = match read(&cut_store, journal.session) {
            Ok(found) => found,
            Err(StoreError::NotFound { .. }) => Vec::new(),
            Err(error) => panic!("cut at {cut}: {error:?}"),
        };
        let expected = acknowledged.iter().rev().find(|(length, _)| *length <= cut);
        let expected = expected.map_or(0, |(_, position)| position.number() as usize);
        assert_eq!(found.len(), expected, "cut at {cut}: all that was acknowledged until then, no more");
        assert_eq!(found, all[..expected], "cut at {cut}");
        if cut % 7 == 0 {
            let report = cut_store.verify().unwrap();
            assert!(report.is_sound(), "cut at {cut}: {:?}", report.findings);
        }
    }
}

#[test]
fn bytes_that_change_in_the_log_end_it_there() {
    let store = without_checkpoints();
    let journal = sample::journal(5, 12);
    super::support::write(&*store, &journal);
    let all = journal.records();
    let length = log_length(store.path());
    for at in (HEADER + 5..length).step_by(4_001) {
        let directory = image(store.path(), length);
        let log = directory.path().join("store.db-wal");
        let mut bytes = fs::read(&log).unwrap();
        bytes[at as usize] ^= 0x40;
        fs::write(&log, bytes).unwrap();
        let torn = SqliteStore::open(directory.path().join("store.db")).unwrap();
        match read(&torn, journal.session) {
            Ok(found) => assert_eq!(found, all[..found.len()], "changed at {at}"),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => panic!("changed at {at}: {error:?}"),
        }
        assert!(torn.verify().unwrap().is_sound(), "changed at {at}");
    }
}

#[test]
fn what_was_copied_into_the_file_needs_no_log() {
    let store = Temporary::with(SqliteOptions { checkpoint_pages: 1, ..SqliteOptions::default() });
    let journal = sample::journal(5, 12);
    super::support::write(&*store, &journal);
    assert!(store.counters().checkpoints > 10);
    for cut in [0, HEADER, log_length(store.path())] {
        let directory = image(store.path(), cut);
        let found = SqliteStore::open(directory.path().join("store.db")).unwrap();
        assert_eq!(read(&found, journal.session).unwrap(), journal.records(), "cut at {cut}");
    }
}
