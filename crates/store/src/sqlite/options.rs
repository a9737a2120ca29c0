//! How a store is opened.

use std::time::Duration;

/// How a [`SqliteStore`](super::SqliteStore) is opened and how it behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How large the store's file may become. What would make it larger is refused with
    /// [`StoreError::Full`](backstitch_core::ports::StoreError::Full), before the disk is full. The write-ahead log beside
    /// the file comes on top; it holds what was written since the last checkpoint. `None`: as large as the disk allows.
    pub max_bytes: Option<u64>,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// How many pages the write-ahead log may have before they are copied into the file.
    pub checkpoint_pages: u32,
    /// How many bytes one transaction writes or deletes at most, so that no other process waits for long. What cannot be divided,
    /// such as one large object, may be larger.
    pub transaction_bytes: u64,
}

impl Default for SqliteOptions {
    /// No limit of its own, 10 seconds of patience, a checkpoint each 1,000 pages, transactions of 64 MiB.
    fn default() -> Self {
        Self {
            max_bytes: None,
            busy_timeout: Duration::from_secs(10),
            checkpoint_pages: 1_000,
            transaction_bytes: 64 << 20,
        }
    }
}
