//! Stores: where journals and objects are kept.
//!
//! Each module is a backend behind the one port, [`Store`](backstitch_core::ports::Store), and each passes the same
//! conformance suite, which lies in `backstitch-testkit`. What the port promises (whole batches, one winner among writers, no
//! write by a holder that was replaced) is said there once and holds for all of them; a backend's own documentation says
//! only what is particular to it, above all how long what it keeps will last.

mod memory;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{
    Counters, Finding, FreedSpace, GcMode, GcReport, LostTail, ObjectsSize, OpenError, Retention,
    SalvageReport, SalvagedSession, SessionSize, SqliteOptions, SqliteStore, StoreLocation, StoreSize,
    VerifyReport,
};
