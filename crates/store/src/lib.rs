//! Stores for journals and objects.
//!
//! Each module is a backend of two ports, [`Store`](backstitch_core::ports::Store) and
//! [`StoreAdmin`](backstitch_core::ports::StoreAdmin), and each passes the same suites
//! (`tests/suite/conformance/`). The ports document the guarantees that all backends share: atomic batches, one winner
//! among concurrent writers, no write by a holder that was replaced. A backend documents only its own properties, above
//! all how long its data lasts.

mod family;
mod memory;
mod redaction;
mod references;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{Bundle, Counters, SqliteOptions, SqliteStore};
