//! Counters of a store's expensive operations.

/// Operations of a store since it was opened in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Appended batches.
    pub appends: u64,
    /// Transactions that wrote something and were synced before they were acknowledged. SQLite syncs its log once for each, so
    /// this is also the number of syncs that callers waited for.
    pub commits: u64,
    /// Checkpoints: copies of the log into the file. Each costs further syncs, which delay only the append
    /// that triggered it.
    pub checkpoints: u64,
}
