//! Reports of operations on a whole store: verification, salvage, backup, collection of garbage, erasures, and sessions that moved to
//! other stores, to bundles and from them, to git and to documents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use backstitch_runtime::IndexCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, SessionId};
use crate::journal::Position;
use crate::object::ObjectId;
use crate::ports::{
    Erasure, GcReport, RedactionReport, RemovalReport, RemovedSession, SalvageReport, TransferOutcome,
    TransferReport, UncoveredReason,
};
use crate::report::Version;
use crate::stores::side_files::SideFileChange;

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
    /// Comparison of the index of changed paths with the journals.
    #[serde(default)]
    pub changes: ChangesCheck,
}

/// What comparing the index of changed paths with the journals has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesCheck {
    /// Number of sessions compared.
    pub compared: u64,
    /// Sessions of which the index lists something else than their records.
    pub differing: Vec<SessionId>,
    /// Sessions with calls that are not in the index, because they recorded no paths. A repair compares the files before and
    /// after them.
    pub unlisted: Vec<SessionId>,
    /// Number of sessions that were listed again.
    pub rebuilt: u64,
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
    /// Total number of bytes of the deleted objects, and of the records of sessions that have expired.
    pub freed_bytes: u64,
    /// Files and directories that killed processes had left.
    pub left: Vec<PathBuf>,
    /// Sessions that have expired.
    pub expired: Vec<SessionId>,
    /// Whether the store's files may still hold expired sessions. `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Erasure>,
    /// Changes of what is written about sessions outside of the store's tables.
    #[serde(default)]
    pub side_files: Vec<SideFileChange>,
}

/// What a redaction has removed, or would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionRedaction {
    /// Version of this form.
    pub v: Version,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Sessions, objects and files with the value.
    #[serde(flatten)]
    pub content: RedactionReport,
    /// Files and directories that killed processes had left, which may hold the value too.
    pub left: Vec<PathBuf>,
    /// Changes of what is written about sessions outside of the store's tables.
    #[serde(default)]
    pub side_files: Vec<SideFileChange>,
}

/// What a removal of sessions has deleted, or would delete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionRemoval {
    /// Version of this form.
    pub v: Version,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Deleted sessions and objects.
    #[serde(flatten)]
    pub content: RemovalReport,
    /// Number of copies of projects that were deleted with their sessions.
    pub copies: usize,
    /// Files and directories that killed processes had left.
    pub left: Vec<PathBuf>,
    /// Changes of what is written about sessions outside of the store's tables.
    #[serde(default)]
    pub side_files: Vec<SideFileChange>,
}

/// A session that moved, with everything that it depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionTransfer {
    /// Version of this form.
    pub v: Version,
    /// What happened to the session that was named.
    #[serde(flatten)]
    pub outcome: TransferOutcome,
    /// The sessions, and the number of objects that were written.
    #[serde(flatten)]
    pub content: TransferReport,
}

impl From<TransferReport> for SessionTransfer {
    fn from(content: TransferReport) -> Self {
        Self { v: Version, outcome: content.outcome(), content }
    }
}

/// A session that was copied to another store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionCopy {
    /// The session.
    #[serde(flatten)]
    pub transfer: SessionTransfer,
    /// Address of the other store.
    pub store: String,
}

/// A written bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BundleExport {
    /// The session.
    #[serde(flatten)]
    pub transfer: SessionTransfer,
    /// Path of the bundle.
    pub bundle: PathBuf,
    /// Size of the bundle.
    pub bytes: u64,
    /// Owner of the process that drove the session at that time, and may have added records since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// A session that was imported from a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionImport {
    /// The session.
    #[serde(flatten)]
    pub transfer: SessionTransfer,
    /// Address of the store.
    pub store: String,
    /// Directory of the session's files. It may not exist on this machine.
    pub workspace: Option<PathBuf>,
    /// Model that the agent asks.
    pub model: Option<String>,
    /// Address of the model's server, if it is not the provider's own.
    pub base_url: Option<String>,
    /// What the agent may do here, a line for each right. Empty if another program started the session.
    pub rights: Vec<String>,
    /// Rules that let calls run without a question where the session comes from, and do not hold here.
    pub removed_rules: Vec<String>,
}

/// A written git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GitExport {
    /// Version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// Path of the bare repository.
    pub repository: PathBuf,
    /// Its branch.
    pub branch: String,
    /// Ids of the commits, the oldest first.
    pub commits: Vec<ObjectId>,
    /// Number of objects in the repository.
    pub objects: usize,
    /// Files that git cannot hold.
    pub left_out: Vec<GitOmission>,
    /// Paths that the session never captured.
    pub uncovered: Vec<UncoveredFile>,
    /// Calls whose files retention has deleted.
    pub pruned_calls: Vec<CallId>,
}

/// A file that git cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitOmission {
    /// Path in the workspace.
    pub path: String,
    /// The reason in words.
    pub reason: String,
    /// First commit that it is missing from.
    pub commit: Option<ObjectId>,
}

/// A path that no state of the files covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UncoveredFile {
    /// Path in the workspace.
    pub path: String,
    /// Why it is not covered.
    pub reason: UncoveredReason,
}

/// A conversation as a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MarkdownExport {
    /// Version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The document.
    pub markdown: String,
}
