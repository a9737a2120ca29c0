//! Exports roots as a git repository.
//!
//! [`git`] writes an ordinary bare repository: one pack, one branch, and one commit for each given root. It
//! does not need git, and `git fsck --strict` accepts the result. Git cannot represent everything: the
//! entries of a root's manifest, and the few files whose content git refuses, are omitted and listed.

mod clean;
mod commit;
mod pack;
mod repository;

use std::io;
use std::path::Path;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Objects, WorkspaceError};
use backstitch_core::time::Timestamp;

pub use repository::partial_path;

/// A commit to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportCommit {
    /// Files of the commit.
    pub root: WorkspaceRoot,
    /// Commit message. Zero bytes are dropped.
    pub message: String,
    /// Author and committer.
    pub author: Author,
    /// Author and commit time. Git supports whole seconds from 1970 on.
    pub time: Timestamp,
    /// Indices of the parent commits in the list.
    pub parents: Vec<usize>,
}

/// Author of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Display name.
    pub name: String,
    /// Email address.
    pub email: String,
}

impl Default for Author {
    fn default() -> Self {
        Self { name: "Backstitch".to_owned(), email: "session@backstitch.invalid".to_owned() }
    }
}

/// Result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// Ids of the commits, in the given order.
    pub commits: Vec<ObjectId>,
    /// Number of objects in the repository.
    pub objects: usize,
    /// Omitted entries of the roots, each path once for each reason.
    pub left_out: Vec<OmittedEntry>,
}

/// An entry that a root contains and the repository does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OmittedEntry {
    /// Path in the workspace.
    pub path: String,
    /// Reason for the omission.
    pub reason: LeftOutReason,
    /// Index of the first commit that it is missing from.
    pub commit: usize,
}

/// Reason why an entry is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// Git refuses its name.
    Name,
    /// Git refuses its content: an invalid list of submodules or attributes.
    Content,
    /// Git cannot represent an empty directory.
    EmptyDirectory,
    /// Its mode is neither of the two that git supports.
    Mode,
    /// A redaction removed its content.
    Redacted,
}

/// An export failed. The incomplete repository is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A file or directory already exists at the path.
    #[error("{path}: it already exists")]
    Exists {
        /// Path of the repository.
        path: String,
    },
    /// A commit names a parent that does not precede it in the list.
    #[error("commit {commit} names commit {parent} as its parent, which does not precede it")]
    Parent {
        /// Index of the commit.
        commit: usize,
        /// Index of the invalid parent.
        parent: usize,
    },
    /// The branch name is invalid.
    #[error("{branch:?} is not a valid branch name")]
    Branch {
        /// The invalid name.
        branch: String,
    },
    /// A root cannot be read.
    #[error(transparent)]
    Root(#[from] WorkspaceError),
    /// The repository cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// Path that failed.
        path: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl ExportError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Exists { .. } => ErrorCode::AlreadyExists,
            Self::Parent { .. } | Self::Branch { .. } => ErrorCode::Internal,
            Self::Root(error) => error.code(),
            Self::Io { .. } => ErrorCode::Io,
        }
    }
}

/// Writes a bare repository with these commits. The last one is the head of `branch`.
pub fn git(
    objects: &dyn Objects,
    commits: &[ExportCommit],
    repository: &Path,
    branch: &str,
) -> Result<ExportReport, ExportError> {
    if !commit::is_branch(branch) {
        return Err(ExportError::Branch { branch: branch.to_owned() });
    }
    let mut clean = clean::Clean::new(objects);
    let mut ids = Vec::with_capacity(commits.len());
    for (at, commit) in commits.iter().enumerate() {
        let mut parents = Vec::with_capacity(commit.parents.len());
        for parent in &commit.parents {
            parents.push(*ids.get(*parent).ok_or(ExportError::Parent { commit: at, parent: *parent })?);
        }
        let tree = clean.root(commit.root, at)?;
        ids.push(clean.add(commit::encode(commit, tree, &parents)));
    }
    let (contents, left_out) = clean.finish();
    repository::write(objects, &contents, repository, branch, ids.last().copied())?;
    Ok(ExportReport { commits: ids, objects: contents.len(), left_out })
}
