//! Reports about the state of a store: verification, salvage, backup, and collection of garbage.

use std::collections::BTreeSet;
use std::path::PathBuf;

use backstitch_runtime::IndexCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::journal::Position;
use crate::object::ObjectId;
use crate::ports::{Erasure, GcReport, RemovedSession, SalvageReport};
use crate::report::Version;

/// What a verification has found, or a repair has left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StoreCheck {
    /// Version of this form.
    pub v: Version,
    /// Whether nothing is damaged, and index and snapshots agree with the journals, or do so after the repair.
    pub sound: bool,
    /// Number of sessions read.
    pub sessions: u64,
    /// Number of records read.
    pub records: u64,
    /// Number of objects read.
    pub objects: u64,
    /// Damage in words, in the order of detection. No repair changes it.
    pub findings: Vec<String>,
    /// Needed objects that were lost when an earlier, damaged store was salvaged.
    pub lost: BTreeSet<ObjectId>,
    /// Snapshots that a verification found, or that a repair deleted.
    pub wrong_snapshots: Vec<WrongSnapshot>,
    /// Replaced records by session, in the order of their creation.
    pub redacted: Vec<RedactedRecords>,
    /// Needed objects whose content was redacted.
    pub redacted_objects: BTreeSet<ObjectId>,
    /// Sessions that were removed.
    pub removed: Vec<RemovedSession>,
    /// Comparison of the index with the journals.
    pub index: IndexCheck,
}

/// A snapshot that differs from its journal, or is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongSnapshot {
    /// Session that it belongs to.
    pub session: SessionId,
    /// The problem in words.
    pub reason: String,
}

/// Records of a session whose texts were replaced by a redaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactedRecords {
    /// Session of the records.
    pub session: SessionId,
    /// Positions of the records.
    pub positions: Vec<Position>,
}

/// What a salvage has copied and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StoreSalvage {
    /// Version of this form.
    pub v: Version,
    /// Whether nothing was lost.
    pub complete: bool,
    /// Sessions, objects, and what was lost of them.
    #[serde(flatten)]
    pub content: SalvageReport,
}

/// A written backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StoreBackup {
    /// Version of this form.
    pub v: Version,
    /// Address of the store.
    pub store: String,
    /// Path of the backup.
    pub backup: PathBuf,
    /// Size of the backup.
    pub bytes: u64,
    /// Whether the store, and so its backup, is undamaged. One of an older version is not verified.
    pub sound: bool,
    /// Damage in words, in the order of detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// What a collection of garbage has freed, or would free.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StoreCollection {
    /// Version of this form.
    pub v: Version,
    /// Whether nothing was deleted.
    pub dry_run: bool,
    /// Deleted and kept objects.
    #[serde(flatten)]
    pub content: GcReport,
    /// Total number of bytes of the deleted objects.
    pub freed_bytes: u64,
    /// Files and directories that killed processes had left.
    pub left: Vec<PathBuf>,
    /// Sessions that have expired.
    pub expired: Vec<SessionId>,
    /// Whether the store's files may still hold expired sessions. `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Erasure>,
}
