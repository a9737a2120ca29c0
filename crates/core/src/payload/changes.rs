//! The paths that a call changed.
//!
//! They are recorded with the end of the call, so that a reader learns what a call changed without comparing the files
//! before it with those after it. They repeat what the roots of the call say, and keep no content: the roots do. Of a
//! call that changed very many paths, or one whose name is not UTF-8, only counts are recorded, and the roots say the
//! rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::ObjectId;

/// Kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The path was added.
    Added,
    /// Content or kind changed.
    Modified,
    /// Only the mode changed.
    Mode,
    /// The path was deleted.
    Deleted,
}

/// The paths that a call changed, in byte order, or their number if they are too many to list.
///
/// ```
/// use backstitch_core::journal::{CallChanges, ChangeKind, ChangedPath};
///
/// let changes = CallChanges::new(vec![ChangedPath::new("hem.txt", ChangeKind::Deleted)]);
/// assert_eq!(changes.counts().deleted, 1);
/// assert_eq!(changes.paths().map(<[_]>::len), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallChanges {
    /// All of them.
    Paths(Vec<ChangedPath>),
    /// Their number. The roots before and after the call say which they are.
    Counts(ChangeCounts),
}

impl CallChanges {
    /// The most paths that are listed.
    pub const MOST_PATHS: usize = 256;

    /// The most bytes of the listed paths together.
    pub const MOST_BYTES: usize = 16 * 1024;

    /// Creates the changes of a call: the paths within the limits, or else their number.
    pub fn new(paths: Vec<ChangedPath>) -> Self {
        let bytes: usize = paths.iter().map(|changed| changed.path.len()).sum();
        if paths.len() > Self::MOST_PATHS || bytes > Self::MOST_BYTES {
            Self::Counts(ChangeCounts::of(paths.iter().map(|changed| changed.change)))
        } else {
            Self::Paths(paths)
        }
    }

    /// Returns the paths, if they are listed.
    pub fn paths(&self) -> Option<&[ChangedPath]> {
        match self {
            Self::Paths(paths) => Some(paths),
            Self::Counts(_) => None,
        }
    }

    /// Returns the number of paths by kind.
    pub fn counts(&self) -> ChangeCounts {
        match self {
            Self::Paths(paths) => ChangeCounts::of(paths.iter().map(|changed| changed.change)),
            Self::Counts(counts) => *counts,
        }
    }
}

/// The number of changed paths by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeCounts {
    /// Paths that were added.
    #[serde(default)]
    pub added: u64,
    /// Paths whose content or kind changed.
    #[serde(default)]
    pub modified: u64,
    /// Paths of which only the mode changed.
    #[serde(default)]
    pub mode: u64,
    /// Paths that were deleted.
    #[serde(default)]
    pub deleted: u64,
}

impl ChangeCounts {
    /// Counts changes.
    pub fn of(changes: impl IntoIterator<Item = ChangeKind>) -> Self {
        let mut counts = Self::default();
        for change in changes {
            let count = match change {
                ChangeKind::Added => &mut counts.added,
                ChangeKind::Modified => &mut counts.modified,
                ChangeKind::Mode => &mut counts.mode,
                ChangeKind::Deleted => &mut counts.deleted,
            };
            *count += 1;
        }
        counts
    }

    /// Returns the number of all paths.
    pub fn total(self) -> u64 {
        [self.added, self.modified, self.mode, self.deleted].into_iter().fold(0, u64::saturating_add)
    }
}

/// A path that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedPath {
    /// Path in the workspace. Its stored name is one that a redaction may replace.
    #[serde(rename = "file")]
    pub path: String,
    /// Kind of change.
    pub change: ChangeKind,
    /// The content before the call; none for a path that was added, and for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileContent>,
    /// The content after the call; none for a path that was deleted, and for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileContent>,
}

impl ChangedPath {
    /// Creates a change without contents.
    pub fn new(path: impl Into<String>, change: ChangeKind) -> Self {
        Self { path: path.into(), change, before: None, after: None }
    }
}

/// The content of a file, or the target of a link, by name. The content itself may not be kept any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The object with the content.
    pub object: ObjectId,
    /// Its size, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
