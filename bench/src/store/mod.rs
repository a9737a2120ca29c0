//! The group `store`: the SQLite store, beside bare SQLite that writes and reads the same rows.
//!
//! Beside the aims (`aims.rs`), ten concurrent sessions should share a sync among at least five appends, and the store should
//! grow linearly with the turns. Files are in the directory for temporary files (`TMPDIR`).

mod append;
mod bare;
mod growth;
mod listing;
mod memory;
mod opening;
mod resume;
mod turn;

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, Owner, SessionClaim, Store};
use backstitch_store::SqliteStore;
use backstitch_testkit::block_on;
use backstitch_testkit::sample::Journal;
use tempfile::TempDir;

pub(crate) use listing::many_sessions;
pub(crate) use opening::long_session;

use crate::alone::{self, Alone};
use crate::report::Report;

pub(crate) const ALONE: &[Alone] = &[
    ("store.memory_idle", memory::idle),
    ("store.memory_loaded", memory::measure_loaded),
    ("store.open", opening::run),
    ("store.open_memory_from_snapshot", opening::memory_from_snapshot),
    ("store.open_memory_from_records", opening::memory_from_records),
    (opening::PREPARE, opening::prepare),
];

/// Measures the group.
pub(crate) fn run(report: &mut Report) {
    // One of the processes only prepares a store for another.
    for (name, _) in ALONE.iter().filter(|(name, _)| *name != opening::PREPARE) {
        alone::run(name);
    }
    append::run(report);
    growth::run(report);
    listing::run(report);
    turn::run(report);
    resume::run(report);
}

pub(crate) fn temporary() -> TempDir {
    TempDir::new().expect("there is room for temporary files")
}

fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(directory.path().join("store.db")).expect("a new store can be made")
}

pub(crate) fn claim(store: &SqliteStore, session: backstitch_core::id::SessionId) -> SessionClaim {
    block_on(store.claim(session, Owner::new("bench"), ClaimMode::IfFree)).expect("it is free")
}

/// Appends a whole journal.
fn write(store: &SqliteStore, journal: &Journal) {
    let claim = claim(store, journal.session);
    let mut next = Position::START;
    for batch in &journal.batches {
        next = block_on(store.append(journal.session, next, claim.fence, batch.clone())).expect("it fits");
    }
    block_on(store.release(claim)).expect("it is held");
}
