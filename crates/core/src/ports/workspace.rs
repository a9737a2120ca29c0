//! Workspaces: files whose state can be captured and put back.
//!
//! A [`Workspace`] is a [`Filesystem`] with a memory. Capturing gives a root, a name made of content alone, together with the
//! objects that are not stored yet; they are appended to the journal in the batch that names the root. Restoring writes only
//! what differs, and can be repeated after it was interrupted. What a workspace does not cover, it says.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Filesystem, StoreError};
use crate::code::ErrorCode;
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

/// What is stored, and what is not yet.
pub struct ObjectOverlay<'a> {
    new: HashMap<ObjectId, Object>,
    stored: &'a dyn Objects,
}

impl<'a> ObjectOverlay<'a> {
    /// These objects over what is stored.
    pub fn new(new: impl IntoIterator<Item = Object>, stored: &'a dyn Objects) -> Self {
        Self { new: new.into_iter().map(|object| (object.id(), object)).collect(), stored }
    }
}

impl Objects for ObjectOverlay<'_> {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        match self.new.get(&id) {
            Some(object) => Ok(Some(object.clone())),
            None => self.stored.get(id),
        }
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.new.contains_key(&id) || self.stored.contains(id)?)
    }
}

/// Files whose state can be captured and put back.
pub trait Workspace: Send + Sync {
    /// The files, as tools see them.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// The directory that holds the files, where processes can see them; none when they are not on a disk.
    fn host_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The state of the files as they are now. What is covered is decided anew.
    fn capture(&self) -> Result<WorkspaceCapture, WorkspaceError>;

    /// The state of the files as they are now, where what is covered was decided by an earlier capture: what that one left out
    /// stays left out. `coverage` names the stored object of its decision; none if it left out nothing.
    fn capture_covering(&self, coverage: Option<ObjectId>) -> Result<WorkspaceCapture, WorkspaceError> {
        let _ = coverage;
        self.capture()
    }

    /// The state of the files before they are put back to a state with this coverage, within a budget of new content. What
    /// does not fit is listed and not captured.
    fn rescue(&self, coverage: Option<ObjectId>, byte_budget: u64) -> Result<RescueCapture, WorkspaceError> {
        let _ = byte_budget;
        Ok(RescueCapture { captured: self.capture_covering(coverage)?, left_out: Vec::new() })
    }

    /// Puts the files back to a state. What is not covered is not touched; what that is, the last capture decided.
    fn restore(&self, root: WorkspaceRoot) -> Result<RestoreReport, WorkspaceError>;

    /// Puts the files back to a state with the coverage that was recorded with it. What is not covered is not touched, what
    /// is covered is put back even if it could not be captured as it is now.
    fn restore_covering(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
    ) -> Result<RestoreReport, WorkspaceError> {
        let _ = coverage;
        self.restore(root)
    }

    /// The same with objects that are needed and may not be stored.
    fn restore_bringing(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        let _ = brought;
        self.restore_covering(root, coverage)
    }

    /// Refuses a state of which something is neither stored nor brought along, before anything is changed.
    fn check_restorable(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<(), WorkspaceError>;

    /// What differs between two states, by path.
    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError>;
}

/// The state of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceCapture {
    /// Its name.
    pub root: WorkspaceRoot,
    /// The objects below the root that were not stored yet. The root must not be recorded without them.
    pub objects: Vec<Object>,
    /// What the root does not cover.
    pub uncovered: Vec<UncoveredPath>,
    /// What was decided about that, for whoever puts the files back to this root: it has to be recorded and stored with it.
    /// None when all is covered that can be.
    pub coverage: Option<Object>,
}

/// The state of a workspace that is about to be overwritten.
#[derive(Debug, Clone, PartialEq)]
pub struct RescueCapture {
    /// What was captured. What did not fit is not in it.
    pub captured: WorkspaceCapture,
    /// What did not fit, or could not be captured, although it is covered: it is lost if the files are put back.
    pub left_out: Vec<UncoveredPath>,
}

/// Something that a root does not cover: a restore neither changes nor deletes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UncoveredPath {
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
    /// A process outside of the call is writing it, or keeps changing it while files are put back.
    InUse,
}

impl UncoveredReason {
    /// Whether the content is covered all the same, and only something beside it is not.
    pub fn covers_content(self) -> bool {
        matches!(self, Self::HardLink | Self::Attributes)
    }
}

impl std::fmt::Display for UncoveredReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::OwnRepository => "the repository of the workspace itself",
            Self::OwnFiles => "files of the runtime",
            Self::Excluded => "excluded by a pattern",
            Self::TooLarge => "too large",
            Self::IgnoredBudget => "ignored, and over the budget for ignored directories",
            Self::Special => "a socket, a pipe or a device",
            Self::HardLink => "a hard link",
            Self::Unreadable => "unreadable",
            Self::TooDeep => "nested too deeply",
            Self::Attributes => "extended attributes",
            Self::InUse => "in use by another process",
        })
    }
}

/// What a restore did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// What it wrote or deleted.
    pub changed: Vec<PathChange>,
    /// What stands in the way of the wanted state, and was left as it is, because it is not covered or in use.
    pub kept: Vec<UncoveredPath>,
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

impl WorkspaceError {
    /// The stable code of the error; of a failed object store, the store's own.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::RefusedRoot { .. } => ErrorCode::WorkspaceRefused,
            Self::Held { .. } => ErrorCode::WorkspaceHeld,
            Self::MissingObject { .. } => ErrorCode::ObjectMissing,
            Self::DamagedObject { .. } => ErrorCode::StoreDamaged,
            Self::Blocked { .. } => ErrorCode::WorkspaceBlocked,
            Self::Limit { .. } => ErrorCode::WorkspaceLimit,
            Self::Unsupported => ErrorCode::PlatformUnsupported,
            Self::Objects(source) => {
                source.downcast_ref::<StoreError>().map_or(ErrorCode::Store, StoreError::code)
            }
            Self::Io { .. } => ErrorCode::Workspace,
        }
    }
}
