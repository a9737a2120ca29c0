//! What a store did, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often a store did what costs something, since it was opened in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Batches that were appended.
    pub appends: u64,
    /// Transactions that wrote something. SQLite syncs its log once for each, so this is also the number of syncs that
    /// somebody waited for.
    pub commits: u64,
    /// Times that the log was copied into the file. Each costs syncs of its own, which nobody's append waits for but the
    /// one that found the log long enough.
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
