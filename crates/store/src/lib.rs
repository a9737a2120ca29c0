//! Stores for journals and objects.
//!
//! [`SqliteStore`] is a backend of three ports, [`Store`](backstitch_core::ports::Store),
//! [`StoreAdmin`](backstitch_core::ports::StoreAdmin) and [`Queue`](backstitch_core::ports::Queue), in a file or in memory, and passes the same suites in both places
//! (`tests/suite/conformance/`). The ports document the guarantees that all backends share: atomic batches, one winner
//! among concurrent writers, no write by a holder that was replaced. A backend documents only its own properties, above all
//! how long its data lasts.

mod chain;
mod family;
mod garbage;
mod packed;
#[cfg(feature = "postgres")]
mod postgres;
mod queue_rows;
mod reach;
mod redaction;
mod references;
mod retention;
mod sqlite;
mod time;

#[cfg(feature = "postgres")]
pub use postgres::{InvalidAddress, PostgresAddress, PostgresOptions, PostgresStore, ServerCheck};
pub use sqlite::{Bundle, Counters, SqliteOptions, SqliteStore};

/// The stored name of the kind of notes.
const NOTE_KIND: &str = "note";

/// A store in memory, which [`SqliteStore::new`] creates. Its data ends with the value. SQL, backups, salvage, bundles, copies
/// of sessions and rules of retention need a file, and are not supported.
pub type MemoryStore = SqliteStore;
