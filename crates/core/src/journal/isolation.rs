//! Records of isolated workspaces: the copy of a project that a session works in, and the merges of its changes into
//! a directory.

use serde::{Deserialize, Serialize};

use super::Position;
use crate::extra::Extra;
use crate::object::ObjectId;
use crate::payload::WorkspaceRoot;

/// The session works in a copy of a project. It is recorded once, when the session starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceIsolated {
    /// The directory that was copied.
    pub project: String,
    /// The copy.
    pub directory: String,
    /// State of the copy when the session started, which its changes are compared with.
    pub root: WorkspaceRoot,
    /// The object that lists the paths that the root does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// Paths of the project that were not copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The changes of a session are about to be written to a directory. Until an [`ApplyFinished`] follows, the directory may have
/// some of them, and they have to be completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyStarted {
    /// The directory.
    pub directory: String,
    /// Common ancestor of the merge.
    pub base: WorkspaceRoot,
    /// The files that are merged into the directory.
    pub result: WorkspaceRoot,
    /// State of the directory before.
    pub before: WorkspaceRoot,
    /// The object that lists the paths of the directory that are not covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// State of the directory after.
    pub after: WorkspaceRoot,
    /// Common ancestor of the next merge.
    pub next_base: WorkspaceRoot,
    /// Position of the application that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Position>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The changes of a session are in the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyFinished {
    /// Position of the [`ApplyStarted`].
    pub started: Position,
    /// Paths that were left as they are, because another process uses them or because they were changed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ApplyFinished {
    /// Creates the end of an application that wrote everything.
    pub fn new(started: Position) -> Self {
        Self { started, kept: Vec::new(), extra: Extra::default() }
    }
}
