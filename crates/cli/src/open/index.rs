//! A store whose index is brought up to date.

use std::time::{Duration, Instant};

use backstitch::host::SessionIndex;
use backstitch::ports::OpenError;
use backstitch::stores::{self, StoreAddress};

use super::place::{OpenStore, unopened};
use crate::terminal;

/// A store, and its index.
pub(crate) struct IndexedStore {
    pub(crate) place: OpenStore,
    pub(crate) index: SessionIndex,
}

impl IndexedStore {
    /// Opens a store. One of an older version is migrated, and sessions that are not indexed are summarized, where the store can
    /// be written; it may be interrupted at any time, and the next command continues.
    pub(crate) async fn open(address: &StoreAddress) -> anyhow::Result<Self> {
        let place = match stores::open_read_only(address) {
            Err(OpenError::Older { .. }) => OpenStore::open(address)?,
            opened => OpenStore::over(opened.map_err(|error| unopened(address, error))?)?,
        };
        let index = place.runtime.session_index().await?;
        if index.is_complete() {
            return Ok(Self { place, index });
        }
        // What cannot be written can still be listed.
        let Ok(writable) = OpenStore::open(address) else { return Ok(Self { place, index }) };
        let mut filled = writable.runtime.session_index().await?;
        let mut progress = ProgressLines::new("indexed", "sessions");
        match filled.fill(|done| progress.report(done.done, done.total)).await {
            Ok(()) => Ok(Self { place: writable, index: filled }),
            Err(_) => Ok(Self { place, index }),
        }
    }
}

/// How long work takes before it is reported, and between two reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints a line now and then, and nothing for work that is done soon.
pub(crate) struct ProgressLines {
    verb: &'static str,
    what: &'static str,
    last: Instant,
}

impl ProgressLines {
    /// Reports as in `indexed 200 of 10000 sessions`.
    pub(crate) fn new(verb: &'static str, what: &'static str) -> Self {
        Self { verb, what, last: Instant::now() }
    }

    pub(crate) fn report(&mut self, done: usize, total: usize) {
        if self.last.elapsed() >= INTERVAL && !terminal::is_quiet() {
            self.last = Instant::now();
            eprintln!("{} {done} of {total} {}", self.verb, self.what);
        }
    }
}
