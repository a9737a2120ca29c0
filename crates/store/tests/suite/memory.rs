//! The in-memory store fulfils the guarantees of all ports.

use backstitch_core::ports::{BundleError, StoreError};
use backstitch_store::MemoryStore;
use backstitch_testkit::sample;

use crate::conformance::admin::{store_admin_conformance, unsupported_operations};
use crate::conformance::queue::queue_conformance;
use crate::conformance::{objects_are_read_at_once, store_conformance};

store_conformance!(MemoryStore::new);

mod admin {
    super::store_admin_conformance!(super::MemoryStore::new);
}

mod queue {
    super::queue_conformance!(super::MemoryStore::new);
}

#[test]
fn what_needs_a_file_or_sql_is_not_supported() {
    let refused = unsupported_operations(&MemoryStore::new(), &MemoryStore::new());
    assert_eq!(refused, ["retention", "select", "backup", "salvage", "export_bundle", "copy_session"]);
}

#[test]
fn copying_a_session_to_the_same_store_does_not_wait_for_itself() {
    let store = MemoryStore::new();
    let refused = store.copy_session(sample::session(1), &store, &mut |_| {});
    assert!(matches!(&refused, Err(BundleError::Store(StoreError::Unsupported { .. }))), "{refused:?}");
}

#[test]
fn objects_are_read_at_once_as_they_are_one_by_one() {
    objects_are_read_at_once(&MemoryStore::new());
}
