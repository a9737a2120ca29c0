//! The place of a session in the queue of its store, as its creator chooses it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// How a session waits for a worker.
///
/// ```
/// use backstitch_core::journal::QueueEntry;
///
/// let entry = QueueEntry::new("reviewer").with_key("pull/17").with_tag("team=a").with_priority(5);
/// assert_eq!(entry.key.as_deref(), Some("pull/17"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Name of the agent. Only workers that know it take the session.
    pub agent: String,
    /// Sessions of a higher priority are taken first.
    #[serde(default)]
    pub priority: i16,
    /// Earliest start; at once if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Words for which a store can limit how many sessions run at a time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// A word of the caller. At most one session of a store is enqueued with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl QueueEntry {
    /// An entry for this agent that is due at once, with the priority 0, and without tags or a key.
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), priority: 0, due: None, tags: BTreeSet::new(), key: None }
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the earliest start.
    #[must_use]
    pub fn with_due(mut self, due: Timestamp) -> Self {
        self.due = Some(due);
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.insert(tag.into());
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}
