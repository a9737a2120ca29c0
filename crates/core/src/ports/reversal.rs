//! Reversals: a session's own changes are undone in files that others change too.
//!
//! A session changes files in *steps*: its calls, and its rewinds. Between them others may change the same files. A reversal
//! undoes the steps, the latest first, and touches only the paths that they changed. A path that is still as a step left it
//! gets its state before the step. A path that others changed since is merged by lines. Where that conflicts, the path
//! is left as it is, and listed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FilePath, MergeConflict, PathChange, WorkspaceCapture};
use crate::journal::{WorkspaceRevision, WorkspaceRoot};

/// A change of files by a session: its files right before and right after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnStep {
    /// The files before.
    pub before: WorkspaceRevision,
    /// The files after.
    pub after: WorkspaceRevision,
}

/// Steps of a session to undo in the files of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Reversal {
    /// The steps, the oldest first.
    pub steps: Vec<OwnStep>,
    /// The files before a call that has not ended. Everything that changed since counts as its change.
    pub open: Option<WorkspaceRevision>,
    /// The files at the point that the session returns to. They decide what a merged path is, and win forced conflicts.
    pub target: WorkspaceRevision,
    /// Paths that stay as they are.
    pub kept: Vec<FilePath>,
    /// What to do about paths that others changed too, where the changes cannot be merged.
    pub conflicts: ReversalConflicts,
}

/// What a reversal does about paths whose changes cannot be merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalConflicts {
    /// Leaves them as they are.
    #[default]
    LeaveAlone,
    /// Restores their state at the point.
    TakeTarget,
}

/// What a reversal does with the paths that the session changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReversalPlan {
    /// The changes of the files.
    #[serde(default)]
    pub changes: Vec<PathChange>,
    /// Changed paths that differ from their state at the point, since they keep what others changed.
    #[serde(default)]
    pub merged: Vec<String>,
    /// Paths that others changed too, and that are left as they are.
    #[serde(default)]
    pub conflicts: Vec<MergeConflict>,
    /// Paths that others changed too, and that get their state at the point. The files as they were found keep the changes.
    #[serde(default)]
    pub forced: Vec<MergeConflict>,
}

/// The files of a workspace as if steps had been undone. Nothing is written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ReversedCapture {
    /// The state. Its coverage is that of the files as they are now, so a restore touches nothing that was not captured.
    pub captured: WorkspaceCapture,
    /// The root of the files as they are. Its objects are among those of `captured`.
    pub found: WorkspaceRoot,
    /// What happened to the paths.
    pub plan: ReversalPlan,
}
