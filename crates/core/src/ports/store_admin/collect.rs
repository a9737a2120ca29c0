//! Rules for what a store keeps, the report of a collection of garbage, and disk usage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::object::ObjectKind;
use crate::ports::index::IndexedStatus;
use crate::time::Timestamp;

/// Selects between collecting garbage and only counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Report the garbage without deleting it.
    DryRun,
    /// Delete the garbage.
    Now,
}

/// Result of a collection, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    /// Deleted objects by session and kind.
    pub freed: Vec<FreedSpace>,
    /// Number of objects that stay.
    pub kept_objects: u64,
    /// Stored size of the objects that stay.
    pub kept_bytes: u64,
    /// Number of workspace roots that can no longer be restored.
    pub pruned_roots: u64,
}

impl GcReport {
    /// Total number of bytes of the deleted objects.
    pub fn freed_bytes(&self) -> u64 {
        self.freed.iter().map(|freed| freed.bytes).sum()
    }
}

/// Deleted objects of one session and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreedSpace {
    /// Session whose old boundaries needed the objects, or `None` if no root named them. Objects that several
    /// sessions needed count for the first of them.
    pub session: Option<SessionId>,
    /// Object kind that this entry counts.
    #[schemars(with = "String")]
    pub kind: ObjectKind,
    /// Number of deleted objects.
    pub objects: u64,
    /// Stored size in bytes.
    pub bytes: u64,
}

/// Retention rules for the files of tool boundaries. A boundary stays if any rule keeps it; without a rule
/// all stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Boundaries at and after this time stay.
    pub since: Option<Timestamp>,
    /// The boundaries of this number of calls of each session stay, the latest ones.
    pub boundaries: Option<u64>,
    /// The rules concern only sessions with this tag.
    pub tag: Option<&'static str>,
}

impl Retention {
    /// Keeps everything that a record names.
    pub fn keep_all() -> Self {
        Self::default()
    }

    /// Keeps the boundaries of the last `days` days before `now`.
    #[must_use]
    pub fn keep_days(self, now: Timestamp, days: u32) -> Self {
        match now.days_before(days) {
            Some(since) => self.keep_since(since),
            None => self,
        }
    }

    /// Keeps the boundaries at and after a time.
    #[must_use]
    pub fn keep_since(self, since: Timestamp) -> Self {
        Self { since: Some(since), ..self }
    }

    /// Keeps the boundaries of the last `calls` calls of each session.
    #[must_use]
    pub fn keep_boundaries(self, calls: u64) -> Self {
        Self { boundaries: Some(calls), ..self }
    }

    /// Applies the rules only to sessions with this tag, and keeps everything of the others.
    #[must_use]
    pub fn only_tagged(self, tag: &'static str) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

/// Statuses that expire by default: there is nothing left to do.
const FINISHED: [IndexedStatus; 2] = [IndexedStatus::Idle, IndexedStatus::Failed];

/// Rule for the expiry of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    /// Sessions without a record at or after this time expire. `None` if nothing expires.
    pub before: Option<Timestamp>,
    /// Only sessions of these statuses expire. One that a process holds never does.
    pub statuses: Vec<IndexedStatus>,
}

impl Expiry {
    /// Sessions without a record in the last `days` days before `now`, if they are idle or have failed.
    pub fn after_days(now: Timestamp, days: u32) -> Self {
        // Before the first time there is nothing to expire.
        Self { before: now.days_before(days), statuses: FINISHED.to_vec() }
    }

    /// Sessions without a record at or after a time, if they are idle or have failed.
    pub fn before(before: Timestamp) -> Self {
        Self { before: Some(before), statuses: FINISHED.to_vec() }
    }

    /// Selects sessions of these statuses instead.
    #[must_use]
    pub fn with_statuses(self, statuses: impl IntoIterator<Item = IndexedStatus>) -> Self {
        Self { statuses: statuses.into_iter().collect(), ..self }
    }
}

/// Disk usage of a store. All numbers are bytes, unless documented otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreSize {
    /// Size of the database file. Zero for a store in memory.
    pub file: u64,
    /// Size of the write-ahead log beside it.
    pub log: u64,
    /// Free space inside the file, which later writes reuse.
    pub free: u64,
    /// Usage by session, in the order of creation.
    pub sessions: Vec<SessionSize>,
    /// Usage by objects, grouped by kind.
    pub objects: Vec<ObjectsSize>,
}

/// Usage by a session, without the objects that it may share with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSize {
    /// Session that the numbers belong to.
    pub session: SessionId,
    /// Number of records.
    pub records: u64,
    /// Total size of the records' text.
    pub text: u64,
    /// Stored size of the snapshot.
    pub snapshot: u64,
}

/// Usage by objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectsSize {
    /// Object kind that this entry counts.
    #[schemars(with = "String")]
    pub kind: ObjectKind,
    /// Number of objects.
    pub objects: u64,
    /// Total size before compression.
    pub content: u64,
    /// Total size as stored.
    pub stored: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_before_1970_too() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let after = |now: &str, days| Expiry::after_days(at(now), days).before;
        assert_eq!(after("1960-03-02T00:00:00Z", 30), Some(at("1960-02-01T00:00:00Z")));
        assert_eq!(after("1970-01-02T00:00:00Z", 30), Some(at("1969-12-03T00:00:00Z")));
        assert_eq!(after("1970-01-01T00:00:00Z", u32::MAX), None, "there is no such time");
        let kept = |days| Retention::keep_all().keep_days(at("1960-03-02T00:00:00Z"), days);
        assert_eq!(kept(30).since, Some(at("1960-02-01T00:00:00Z")));
        assert_eq!(kept(u32::MAX), Retention::keep_all(), "all that there is, is younger");
    }
}
