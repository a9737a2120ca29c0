//! Workspaces: files whose state can be captured and put back.
//!
//! A [`Workspace`] is a [`Filesystem`] with a memory. Capturing gives a root, a name made of content alone, together with the
//! objects that are not stored yet; they are appended to the journal in the batch that names the root. Restoring writes only
//! what differs, and can be repeated after it was interrupted. What a workspace does not cover, it says.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Filesystem;
use crate::journal::WorkspaceRoot;
use crate::object::{Object, ObjectId};
use crate::session::BoxError;

/// Objects that are stored, for reading. It is synchronous, as the workspaces that read from it are.
pub trait Objects: Send + Sync {
    /// An object, if it is stored.
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError>;

    /// Whether an object is stored.
    fn contains(&self, id: ObjectId) -> Result<bool, BoxError>;
}

/// Files whose state can be captured and put back.
pub trait Workspace: Send + Sync {
    /// The files, as tools see them.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// The directory that holds the files, where processes can see them; none when they are not on a disk.
    fn host_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The state of the files as they are now.
    fn capture(&self) -> Result<Captured, WorkspaceError>;

    /// Puts the files back to a state. What is not covered is not touched.
    fn restore(&self, root: WorkspaceRoot) -> Result<Restored, WorkspaceError>;

    /// What differs between two states, by path.
    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError>;
}

/// The state of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// Its name.
    pub root: WorkspaceRoot,
    /// The objects below the root that were not stored yet. The root must not be recorded without them.
    pub objects: Vec<Object>,
    /// What the root does not cover.
    pub uncovered: Vec<Uncovered>,
}

/// Something that a root does not cover: a restore neither changes nor deletes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Uncovered {
    /// Where it is.
    pub path: String,
    /// Why it is not covered.
    pub reason: UncoveredReason,
    /// How large it is, where that is known.
    pub bytes: Option<u64>,
}

/// Why something is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UncoveredReason {
    /// It is the workspace's own repository.
    OwnRepository,
    /// It belongs to the runtime.
    OwnFiles,
    /// A configured pattern excludes it.
    Excluded,
    /// It is larger than a file may be.
    TooLarge,
    /// It is a directory that is ignored and larger than the budget for such.
    IgnoredBudget,
    /// It is a socket, a pipe or a device.
    Special,
    /// Another name of the same file exists: that both are one is not kept.
    HardLink,
    /// It could not be read.
    Unreadable,
    /// It is nested too deeply.
    TooDeep,
    /// It has extended attributes or an access list: its content is kept, they are not.
    Attributes,
}

/// What a restore did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// What it wrote or deleted.
    pub changed: Vec<PathChange>,
    /// What stands in the way of the wanted state, and was left as it is, because it is not covered.
    pub kept: Vec<Uncovered>,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathChange {
    /// Where. Bytes that are no text are shown as replacement characters.
    pub path: String,
    /// How.
    pub change: ChangeKind,
}

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was added.
    Added,
    /// Its content or its kind changed.
    Modified,
    /// Only its mode changed.
    Mode,
    /// It was deleted.
    Deleted,
}

/// A workspace refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The directory must not be a workspace.
    #[error("{path} cannot be a workspace: {reason}")]
    RefusedRoot {
        /// The directory.
        path: String,
        /// Why not.
        reason: String,
    },
    /// Another session holds the directory, one inside of it, or one around it.
    #[error("{path} is held by {holder}")]
    Held {
        /// The directory that is held.
        path: String,
        /// Who holds it.
        holder: String,
    },
    /// An object of a root is not stored, so it cannot be restored.
    #[error("object {object} is not stored, so the files cannot be put back")]
    MissingObject {
        /// The object.
        object: ObjectId,
    },
    /// An object is not what its place says.
    #[error("object {object} is damaged: {reason}")]
    DamagedObject {
        /// The object.
        object: ObjectId,
        /// What is wrong.
        reason: String,
    },
    /// A restore met what it may not change. The files are neither as before nor as wanted.
    #[error("{path} could not be put back: {reason}")]
    Blocked {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
    /// Too many or too large files.
    #[error("the workspace exceeds a limit: {reason}")]
    Limit {
        /// Which one.
        reason: String,
    },
    /// The platform is not supported.
    #[error("host workspaces are not supported on this platform")]
    Unsupported,
    /// The object store failed.
    #[error("the object store failed")]
    Objects(#[source] BoxError),
    /// The files could not be reached.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
}
