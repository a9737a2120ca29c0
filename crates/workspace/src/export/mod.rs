//! Roots as a repository that git reads.
//!
//! [`git`] writes an ordinary bare repository: one pack, one branch, one commit for each root that is given. No git is needed
//! for it, and `git fsck --strict` accepts the result. Git cannot hold everything, so what a root says in its manifest stays
//! out, and so do the few files whose content git refuses. All of it is listed.

mod clean;
mod commit;
mod pack;
mod repository;

use std::io;
use std::path::Path;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Objects, WorkspaceError};
use backstitch_core::time::Timestamp;

/// A commit that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportCommit {
    /// The files.
    pub root: WorkspaceRoot,
    /// What is said of them. Zero bytes are dropped.
    pub message: String,
    /// Whose commit it is.
    pub author: Author,
    /// When it was made. Git knows whole seconds from 1970 on.
    pub time: Timestamp,
    /// The commits before it, by their place in the list.
    pub parents: Vec<usize>,
}

/// Whose commit it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// A name.
    pub name: String,
    /// An address.
    pub email: String,
}

impl Default for Author {
    fn default() -> Self {
        Self { name: "Backstitch".to_owned(), email: "session@backstitch.invalid".to_owned() }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// The commits, in the order in which they were given.
    pub commits: Vec<ObjectId>,
    /// How many objects the repository holds.
    pub objects: usize,
    /// What git does not hold of the roots, each path once for each reason.
    pub left_out: Vec<OmittedEntry>,
}

/// Something that a root holds and the repository does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OmittedEntry {
    /// Where it is.
    pub path: String,
    /// Why it is left out.
    pub reason: LeftOutReason,
    /// The first commit that it is missing from, by its place in the list.
    pub commit: usize,
}

/// Why something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// Git refuses its name.
    Name,
    /// Git refuses its content: it is a list of submodules or of attributes that git does not accept.
    Content,
    /// It is an empty directory.
    EmptyDirectory,
    /// Its mode is none of the two that git knows.
    Mode,
}

/// An export failed. What was written of the repository is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There is something at the path already.
    #[error("{path}: it exists already")]
    Exists {
        /// The path.
        path: String,
    },
    /// A commit names one that does not come before it.
    #[error("commit {commit} names commit {parent} as its parent, which does not come before it")]
    Parent {
        /// The commit.
        commit: usize,
        /// What it names.
        parent: usize,
    },
    /// The name cannot be a branch.
    #[error("{branch:?} cannot be the name of a branch")]
    Branch {
        /// The name.
        branch: String,
    },
    /// A root cannot be read.
    #[error(transparent)]
    Root(#[from] WorkspaceError),
    /// The repository cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

/// Writes a bare repository with these commits, the last of which is the head of `branch`.
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
