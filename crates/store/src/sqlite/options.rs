//! Options of a SQLite store.

use std::time::Duration;

/// Limits and timeouts of a [`SqliteStore`](super::SqliteStore).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Maximum size of the store's file. A write that would exceed it fails with
    /// [`StoreError::Full`](backstitch_core::ports::StoreError::Full), before the disk is full. The
    /// write-ahead log beside the file is not included; it holds the writes since the last checkpoint. `None`
    /// means no limit but the disk.
    pub max_bytes: Option<u64>,
    /// Maximum time to wait while another process writes.
    pub busy_timeout: Duration,
    /// Length of the write-ahead log, in pages, that triggers a checkpoint.
    pub checkpoint_pages: u32,
    /// Maximum number of bytes that one transaction writes or deletes, so that other processes do not wait
    /// for long. A single larger object still goes into one transaction.
    pub transaction_bytes: u64,
}

impl Default for SqliteOptions {
    /// No size limit, a timeout of 10 seconds, a checkpoint every 1,000 pages, transactions of 64 MiB.
    fn default() -> Self {
        Self {
            max_bytes: None,
            busy_timeout: Duration::from_secs(10),
            checkpoint_pages: 1_000,
            transaction_bytes: 64 << 20,
        }
    }
}
