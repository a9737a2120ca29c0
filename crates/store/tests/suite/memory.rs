//! The in-memory store fulfils the guarantees of both ports.

use backstitch_store::MemoryStore;
use backstitch_testkit::store::conformance::admin::unsupported_operations;

backstitch_testkit::store_conformance!(MemoryStore::new);

mod admin {
    backstitch_testkit::store_admin_conformance!(super::MemoryStore::new);
}

#[test]
fn what_needs_a_file_or_sql_is_not_supported() {
    let refused = unsupported_operations(&MemoryStore::new(), &MemoryStore::new());
    assert_eq!(refused, ["retention", "select", "backup", "salvage", "export_bundle", "copy_session"]);
}
