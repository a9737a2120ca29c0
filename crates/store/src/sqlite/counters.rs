//! Counters of a store's expensive operations.

use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of a store since it was opened in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Appended batches.
    pub appends: u64,
    /// Transactions that wrote something. SQLite syncs its log once for each, so this is also the number of
    /// syncs that callers waited for.
    pub commits: u64,
    /// Checkpoints: copies of the log into the file. Each costs further syncs, which delay only the append
    /// that triggered it.
    pub checkpoints: u64,
}

#[derive(Debug, Default)]
pub(super) struct AtomicCounters {
    pub(super) appends: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) checkpoints: AtomicU64,
}

impl AtomicCounters {
    pub(super) fn read(&self) -> Counters {
        Counters {
            appends: self.appends.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
        }
    }
}
