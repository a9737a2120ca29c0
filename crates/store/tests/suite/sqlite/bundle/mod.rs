//! Sessions are moved whole, or not at all.

mod changes;
mod family;
mod hostile;
pub(super) mod kills;
mod repeat;
mod round;

use std::path::{Path, PathBuf};

use backstitch_core::id::SessionId;
use backstitch_core::ports::Store as _;
use backstitch_core::ports::{BundleError, ImportChanges, TransferReport};
use backstitch_store::{Bundle, SqliteStore};
use backstitch_testkit::block_on;

use super::support::{Temporary, read};

/// Writes a bundle beside the store, and returns its path.
pub(super) fn exported(store: &SqliteStore, session: SessionId, name: &str) -> PathBuf {
    let path = store.path().with_file_name(name);
    store.export_bundle(session, &path, &mut |_| {}).unwrap();
    path
}

/// Opens a bundle and imports it.
pub(super) fn imported(store: &SqliteStore, path: &Path) -> Result<TransferReport, BundleError> {
    let bundle = Bundle::open(path, &mut |_| {})?;
    store.import_bundle(&bundle, &ImportChanges::default(), &mut |_| {})
}

/// Everything that is stored of a session.
pub(super) fn check_same(one: &SqliteStore, other: &SqliteStore, session: SessionId) {
    assert_eq!(read(one, session).unwrap(), read(other, session).unwrap());
    for record in read(one, session).unwrap() {
        for id in record.body.object_refs() {
            assert_eq!(block_on(one.object(id)).unwrap(), block_on(other.object(id)).unwrap(), "{id}");
        }
    }
    let items = |store: &SqliteStore| -> Vec<_> {
        block_on(store.inbox(session)).unwrap().into_iter().map(|(_, item)| item).collect()
    };
    assert_eq!(items(one), items(other));
}

#[track_caller]
pub(super) fn check_sound(store: &SqliteStore) {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

pub(super) fn sessions(store: &SqliteStore) -> Vec<SessionId> {
    block_on(store.sessions()).unwrap()
}

/// A store with nothing in it.
pub(super) fn empty() -> Temporary {
    Temporary::new()
}
