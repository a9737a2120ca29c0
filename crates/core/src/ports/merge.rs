//! Three-way merges of files.
//!
//! A merge has a base, a result that was made from it (*theirs*, mostly of a session), and files that may have changed since
//! (*ours*, the directory). Paths that only one side changed are taken from that side. Texts that both changed are merged by
//! lines. Anything else that both changed is a conflict, which a merge lists, or decides as it was told to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FilePath, PathChange, UncoveredPath, WorkspaceCapture};
use crate::journal::{WorkspaceRevision, WorkspaceRoot};
use crate::object::Object;
use crate::text_form::words;

/// A merge of changes into the files of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceMerge {
    /// State that both sides started from.
    pub base: WorkspaceRoot,
    /// State whose changes are merged into the files. Paths that it does not cover count as unchanged.
    pub theirs: WorkspaceRevision,
    /// Files and directories to merge. If there are none, everything is merged.
    pub paths: Vec<FilePath>,
    /// What to do about conflicts.
    pub resolution: ConflictResolution,
    /// What to do about paths that a `.gitignore` names.
    pub ignored: IgnoredPaths,
}

/// What a merge does about paths that a `.gitignore` names, such as the output of builds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoredPaths {
    /// Leaves them as they are, unless the merge names them.
    #[default]
    LeaveOut,
    /// Merges them like others.
    Merge,
}

/// What a merge does about conflicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictResolution {
    /// Lists them.
    #[default]
    List,
    /// Writes both versions of conflicting lines between markers, and lists conflicts that are not about lines.
    Markers,
    /// Keeps the files of the directory.
    Ours,
    /// Takes the files of the result.
    Theirs,
}

/// A path that both sides changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MergeConflict {
    /// Path in the workspace.
    pub path: String,
    /// Kind of conflict.
    pub kind: ConflictKind,
}

words! {
    /// Kinds of conflicts.
    #[non_exhaustive]
    ConflictKind = "kind of conflict" {
        /// Both changed the same lines of a text.
        BothChanged = "both_changed",
        /// Both changed a file that is not a text, or a link.
        BothChangedBinary = "both_changed_binary",
        /// Both added a file.
        BothAdded = "both_added",
        /// The result deleted a path that was changed in the directory.
        DeletedInResult = "deleted_in_result",
        /// The directory no longer has a path that was changed in the result.
        DeletedInDirectory = "deleted_in_directory",
        /// One side made a file, a link or a directory of something else.
        TypeChanged = "type_changed",
        /// Both changed the mode.
        ModeChanged = "mode_changed",
        /// Calls of two sessions that ran at the same time changed it. Only a reversal lists it.
        Shared = "shared",
    }
}

/// The result of a merge. Nothing is written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedCapture {
    /// The files of the workspace as they are.
    pub before: WorkspaceCapture,
    /// The merged files. Where a conflict is listed, they are those of the workspace.
    pub after: WorkspaceRoot,
    /// Objects of the merged files that are neither stored nor part of `before`.
    pub objects: Vec<Object>,
    /// Differences between the files before and after.
    pub changes: Vec<PathChange>,
    /// Conflicts that are not decided.
    pub conflicts: Vec<MergeConflict>,
    /// Conflicts that the resolution decided.
    pub decided: Vec<MergeConflict>,
    /// Changed paths that were left out, since one of the two sides does not cover them.
    pub left_out: Vec<UncoveredPath>,
}
