//! The store in SQLite keeps what the port promises.

use std::ops::Deref;

use backstitch_store::SqliteStore;
use tempfile::TempDir;

/// A store in a directory that goes with it.
pub(crate) struct Temporary {
    store: SqliteStore,
    pub(crate) directory: TempDir,
}

impl Temporary {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("there is room for temporary files");
        let store = SqliteStore::open(directory.path().join("store.db")).expect("a new store can be made");
        Self { store, directory }
    }
}

impl Deref for Temporary {
    type Target = SqliteStore;

    fn deref(&self) -> &SqliteStore {
        &self.store
    }
}

impl backstitch_testkit::store::conformance::Made for Temporary {
    fn store(&self) -> &dyn backstitch_core::ports::Store {
        &self.store
    }
}

mod conformance {
    backstitch_testkit::store_conformance!(super::Temporary::new);
}
