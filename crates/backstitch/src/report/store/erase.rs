//! Reports of erasures: of values, and of whole sessions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ports::{RedactionReport, RemovalReport};
use crate::report::Version;

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
}
