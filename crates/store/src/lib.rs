//! Stores for journals and objects.
//!
//! Each module is a backend of one port, [`Store`](backstitch_core::ports::Store), and each passes the same
//! conformance suite in `backstitch-testkit`. The port documents the guarantees that all backends share:
//! atomic batches, one winner among concurrent writers, no write by a holder that was replaced. A backend
//! documents only its own properties, above all how long its data lasts.

mod family;
mod memory;
mod redaction;
mod references;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{
    BackupProgress, Bundle, BundleError, BundleReport, Counters, Expiry, Finding, FreedSpace, GcMode,
    GcReport, LostTail, ObjectsSize, OpenError, Retention, RowSink, SalvageReport, SalvagedSession,
    SelectError, SelectLimits, SelectedRows, SessionRole, SessionSize, SqlValue, SqliteOptions, SqliteStore,
    StoreLocation, StoreSize, TransferOutcome, TransferProgress, TransferReport, TransferStep,
    TransferredSession, UnfinishedNote, VerifyReport,
};
