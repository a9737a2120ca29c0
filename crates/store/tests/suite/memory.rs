//! The store in memory keeps what the port promises.

use backstitch_store::MemoryStore;

backstitch_testkit::store_conformance!(MemoryStore::new);
