//! A store whose index is brought up to date.

use backstitch::host::SessionIndex;
use backstitch::ports::OpenError;
use backstitch::stores::{self, StoreAddress};

use super::place::{OpenStore, unopened};
use super::progress::ProgressLines;

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
