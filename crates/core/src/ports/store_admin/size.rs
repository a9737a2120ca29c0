//! Disk usage of a store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::object::ObjectKind;

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
