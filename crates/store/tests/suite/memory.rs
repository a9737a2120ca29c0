//! The in-memory store fulfils the port's guarantees.

use backstitch_store::MemoryStore;

backstitch_testkit::store_conformance!(MemoryStore::new);
