//! Reports about sessions that moved: to other stores, to bundles and from them, to git and to documents.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, SessionId};
use crate::object::ObjectId;
use crate::ports::{TransferOutcome, TransferReport, UncoveredReason};
use crate::report::Version;

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
