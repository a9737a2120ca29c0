//! Workspaces: files whose state can be captured and restored.
//!
//! A [`Workspace`] adds captures and restores to a [`Filesystem`]. A capture returns a root, which depends on
//! content alone, together with the objects that are not stored yet; they are appended to the journal in the
//! batch that names the root. A restore writes only differences, and can be repeated after an interruption.
//! Uncovered paths are always reported.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FilePath, Filesystem, MergedCapture, Reversal, ReversedCapture, StoreError, WorkspaceMerge};
use crate::code::ErrorCode;
use crate::id::SessionId;
pub use crate::journal::ChangeKind;
use crate::journal::{CallChanges, ChangedPath, WorkspaceRoot};
use crate::object::{Object, ObjectId};
use crate::session::BoxError;

/// Read access to stored objects. It is synchronous, as the workspaces that use it.
pub trait Objects: Send + Sync {
    /// Returns an object, if it is stored.
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError>;

    /// Returns whether an object is stored.
    fn contains(&self, id: ObjectId) -> Result<bool, BoxError>;

    /// Returns the length of the content of an object in bytes, if it is stored.
    fn length(&self, id: ObjectId) -> Result<Option<u64>, BoxError> {
        Ok(self.get(id)?.map(|object| object.bytes().len() as u64))
    }

    /// Returns whether a redaction removed the content of an object.
    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        let _ = id;
        Ok(false)
    }

    /// Returns those of some objects that are stored, in any order. A store behind a network reads them at once.
    fn get_many(&self, ids: &[ObjectId]) -> Result<Vec<Object>, BoxError> {
        let found = ids.iter().filter_map(|id| self.get(*id).transpose());
        found.collect()
    }

    /// Returns what is known about some objects, in any order. Those that were never stored are left out. A store behind a network
    /// looks them up at once.
    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        let mut found = Vec::new();
        for id in ids {
            match self.length(*id)? {
                Some(length) => found.push(ObjectFacts { id: *id, length: Some(length) }),
                None if self.is_redacted(*id)? => found.push(ObjectFacts { id: *id, length: None }),
                None => {}
            }
        }
        Ok(found)
    }

    /// Returns a mark of what is stored now, for [`keeps`](Self::keeps) in this or a later process; `None` if there are no marks.
    fn mark(&self) -> Result<Option<StoredMark>, BoxError> {
        Ok(None)
    }

    /// Returns whether everything that was stored at a mark is certainly still stored: the mark comes from these objects,
    /// and since then nothing was deleted, redacted, or replaced by an older state.
    fn keeps(&self, mark: &StoredMark) -> Result<bool, BoxError> {
        let _ = mark;
        Ok(false)
    }
}

/// What is known about an object without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFacts {
    /// The object.
    pub id: ObjectId,
    /// Length of its content in bytes; `None` if a redaction removed it.
    pub length: Option<u64>,
}

/// A mark of what is stored at one moment. Its meaning is known only to the objects that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMark(Box<[u8]>);

impl StoredMark {
    /// Creates a mark from its bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Stored objects, and new ones that are not stored yet.
pub struct ObjectOverlay<'a> {
    new: HashMap<ObjectId, Object>,
    stored: &'a dyn Objects,
}

impl<'a> ObjectOverlay<'a> {
    /// Creates an overlay of new objects over stored ones.
    pub fn new(new: impl IntoIterator<Item = Object>, stored: &'a dyn Objects) -> Self {
        Self { new: new.into_iter().map(|object| (object.id(), object)).collect(), stored }
    }

    /// Adds a new object.
    pub fn insert(&mut self, object: Object) {
        self.new.insert(object.id(), object);
    }

    /// Returns the new objects.
    pub fn into_new(self) -> impl Iterator<Item = Object> {
        self.new.into_values()
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

    fn length(&self, id: ObjectId) -> Result<Option<u64>, BoxError> {
        match self.new.get(&id) {
            Some(object) => Ok(Some(object.bytes().len() as u64)),
            None => self.stored.length(id),
        }
    }

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(!self.new.contains_key(&id) && self.stored.is_redacted(id)?)
    }
}

/// Files whose state can be captured and restored.
pub trait Workspace: Send + Sync {
    /// The files, as tools see them.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// The directory of the files, for processes; none if they are not on a disk.
    fn host_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The directory of the runtime's own files, such as the store. Processes must not write it.
    fn own_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The patterns of paths that are neither captured nor restored, as it was opened with them.
    fn excludes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the files are those of one session, and nobody else works in the directory, as in the checkout of a worker.
    /// Then everything that differs from the journal comes from a call that was interrupted.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Paths that the last capture did not cover.
    fn uncovered(&self) -> Vec<UncoveredPath> {
        Vec::new()
    }

    /// Captures the current state of the files, and decides the coverage anew.
    fn capture(&self) -> Result<WorkspaceCapture, WorkspaceError>;

    /// Captures the current state of the files with the coverage of an earlier capture: paths that it did not
    /// cover stay uncovered. `coverage` names the stored object of that decision; none if it covered
    /// everything.
    fn capture_covering(&self, coverage: Option<ObjectId>) -> Result<WorkspaceCapture, WorkspaceError> {
        let _ = coverage;
        self.capture()
    }

    /// Captures the state of the files before a restore with this coverage, within a budget of new content.
    /// Content over the budget is listed and not captured.
    fn rescue(&self, coverage: Option<ObjectId>, byte_budget: u64) -> Result<RescueCapture, WorkspaceError> {
        let _ = byte_budget;
        Ok(RescueCapture { captured: self.capture_covering(coverage)?, left_out: Vec::new() })
    }

    /// Captures the current state of the files as if `paths` had been restored to their state in another root. Nothing
    /// is restored. Paths that neither state holds are listed.
    fn capture_grafted(
        &self,
        from: WorkspaceRoot,
        paths: &[FilePath],
    ) -> Result<GraftedCapture, WorkspaceError> {
        let _ = from;
        let path = paths.first().map(ToString::to_string).unwrap_or_default();
        Err(WorkspaceError::Blocked { path, reason: "this workspace is only restored as a whole".to_owned() })
    }

    /// Captures the current state of the files and merges changes into it. Nothing is written.
    fn capture_merged(&self, merge: &WorkspaceMerge) -> Result<MergedCapture, WorkspaceError> {
        let path = merge.paths.first().map(ToString::to_string).unwrap_or_default();
        Err(WorkspaceError::Blocked {
            path,
            reason: "changes cannot be merged into this workspace".to_owned(),
        })
    }

    /// Captures the current state of the files as if a session's own changes had been undone. Nothing is written.
    fn capture_reversed(&self, reversal: &Reversal) -> Result<ReversedCapture, WorkspaceError> {
        let _ = reversal;
        let reason = "this workspace is only restored as a whole".to_owned();
        Err(WorkspaceError::Blocked { path: ".".to_owned(), reason })
    }

    /// Restores the files to a state. Uncovered paths are not touched; the last capture decided the coverage.
    fn restore(&self, root: WorkspaceRoot) -> Result<RestoreReport, WorkspaceError>;

    /// Restores the files to a state with the coverage that was recorded with it. Uncovered paths are not
    /// touched. Covered ones are restored even if their current content could not be captured.
    fn restore_covering(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
    ) -> Result<RestoreReport, WorkspaceError> {
        let _ = coverage;
        self.restore(root)
    }

    /// Does the same with additional objects that may not be stored.
    fn restore_bringing(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        let _ = brought;
        self.restore_covering(root, coverage)
    }

    /// Restores what differs between two states, in the files as they are now. What others have changed since the first one stays:
    /// it is merged with the difference, and a path where that conflicts is left as it is and listed. So no content is lost that is not
    /// part of the first state. It can be repeated after an interruption. `brought` are objects that may not be stored.
    fn restore_changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        let _ = from;
        self.restore_bringing(to, coverage, brought)
    }

    /// Fails if an object of a state is neither stored nor passed along, before anything is changed.
    fn check_restorable(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<(), WorkspaceError>;

    /// Remembers what git executes in the repositories of the workspace, such as settings and hooks, before a
    /// call that may write.
    fn guard_repositories(&self) -> Result<(), WorkspaceError> {
        Ok(())
    }

    /// Returns what changed of that since the call began, and restores it if the mode says so.
    fn check_repositories(&self, mode: GuardMode) -> Result<Vec<RepositoryChange>, WorkspaceError> {
        let _ = mode;
        Ok(Vec::new())
    }

    /// Describes what has changed in the workspace's own repository since a capture: its head, its references
    /// and its index. A restore does not undo that. `coverage` names the object that was recorded with the
    /// capture.
    fn repository_moves(&self, coverage: Option<ObjectId>) -> Result<Vec<String>, WorkspaceError> {
        let _ = coverage;
        Ok(Vec::new())
    }

    /// Returns the branches of the workspace's own repository that moved since a capture, with the commits that they are
    /// at now. `HEAD` is one of them where it names a commit itself. `coverage` names the object that was recorded with the
    /// capture.
    fn moved_branches(&self, coverage: Option<ObjectId>) -> Result<Vec<MovedBranch>, WorkspaceError> {
        let _ = coverage;
        Ok(Vec::new())
    }

    /// Returns the differences between two states, by path.
    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError>;

    /// Returns the changes between two states as a call records them. `brought` are objects of the states that may not be
    /// stored yet.
    fn changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        brought: &[Object],
    ) -> Result<CallChanges, WorkspaceError>;
}

/// A captured state of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceCapture {
    /// Root of the captured state.
    pub root: WorkspaceRoot,
    /// Objects of the root that were not stored yet. The root must not be recorded without them.
    pub objects: Vec<Object>,
    /// Paths that the root does not cover.
    pub uncovered: Vec<UncoveredPath>,
    /// The coverage decision, for a later restore to this root. It has to be recorded and stored with the
    /// root. None if everything coverable is covered.
    pub coverage: Option<Object>,
}

/// A captured state in which some paths are those of another root.
#[derive(Debug, Clone, PartialEq)]
pub struct GraftedCapture {
    /// The state.
    pub captured: WorkspaceCapture,
    /// The root of the files as they are. Its objects are among those of `captured`.
    pub found: WorkspaceRoot,
    /// What differs in it from the files as they are.
    pub changes: Vec<PathChange>,
    /// The paths that neither state holds.
    pub missing: Vec<String>,
}

/// A captured state that a restore is about to overwrite.
#[derive(Debug, Clone, PartialEq)]
pub struct RescueCapture {
    /// The captured part.
    pub captured: WorkspaceCapture,
    /// Covered paths that are over the budget or could not be captured. A restore loses them.
    pub left_out: Vec<UncoveredPath>,
}

/// A branch of a repository that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedBranch {
    /// Its reference, such as `refs/heads/main`, or `HEAD`.
    pub reference: String,
    /// The commit that it is at now.
    pub commit: String,
}

/// A path that a root does not cover: a restore neither changes nor deletes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct UncoveredPath {
    /// Path in the workspace.
    pub path: String,
    /// Why it is not covered.
    pub reason: UncoveredReason,
    /// Size, if it is known.
    pub bytes: Option<u64>,
}

/// Reason why a path is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UncoveredReason {
    /// The repository of the workspace itself.
    OwnRepository,
    /// Files of the runtime.
    OwnFiles,
    /// A configured pattern excludes it.
    Excluded,
    /// A file over the size limit.
    TooLarge,
    /// An ignored directory over the budget for such directories.
    IgnoredBudget,
    /// A socket, a pipe or a device.
    Special,
    /// A file with several names. A restore does not keep them linked.
    HardLink,
    /// A file that could not be read.
    Unreadable,
    /// A path that is nested too deeply.
    TooDeep,
    /// A file with extended attributes or an access list. Its content is covered, they are not.
    Attributes,
    /// A file that a process outside of the call is writing, or keeps changing during a restore.
    InUse,
    /// A redaction removed its content from the store, so it cannot be restored.
    Redacted,
    /// A `.gitignore` names it, so it is not merged.
    Ignored,
    /// Others changed it after the call that is rolled back, or during it.
    ChangedByOthers,
}

impl UncoveredReason {
    /// Returns whether the content is covered, and only metadata is not.
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
            Self::Redacted => "its content was redacted",
            Self::Ignored => "ignored by git",
            Self::ChangedByOthers => "changed by others",
        })
    }
}

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Paths that were written or deleted.
    pub changed: Vec<PathChange>,
    /// Uncovered or used paths that are in the way of the target state, and were left unchanged.
    pub kept: Vec<UncoveredPath>,
}

/// What happens to changes of what git executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardMode {
    /// They are restored.
    Restore,
    /// They are kept, since a person approved the call.
    Keep,
    /// They are restored, after the process was killed that ran the call.
    Recover {
        /// Files that were changed after this time are kept, since the call cannot have changed them then. In nanoseconds since 1970,
        /// by the clock of their file system. `None` if the end of the call is not known.
        kept_since: Option<i64>,
    },
}

/// A change of what git executes in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChange {
    /// Path of the file in the workspace.
    pub path: String,
    /// Keys of the changed settings, if the file holds settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What happened to the change.
    pub outcome: GuardOutcome,
}

/// What happened to a change of what git executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardOutcome {
    /// The file is as before.
    Restored,
    /// The change is kept: it is harmless, or a person approved the call.
    Kept,
    /// The file could not be restored.
    Failed,
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PathChange {
    /// Path in the workspace. Bytes that are not UTF-8 are shown as replacement characters.
    pub path: String,
    /// Kind of difference.
    pub change: ChangeKind,
}

impl From<&ChangedPath> for PathChange {
    fn from(changed: &ChangedPath) -> Self {
        Self { path: changed.path.clone(), change: changed.change }
    }
}

/// A workspace refused an operation, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The directory is not allowed as a workspace.
    #[error("{path} cannot be a workspace: {reason}")]
    RefusedRoot {
        /// The directory.
        path: String,
        /// Reason for the refusal.
        reason: String,
    },
    /// Another session holds the directory, one inside of it, or one around it.
    #[error("{path} is held by {holder}")]
    Held {
        /// The directory that is held.
        path: String,
        /// Description of the holder.
        holder: String,
    },
    /// An object of a root is not stored, so it cannot be restored.
    #[error("object {object} is not stored, so the files cannot be restored")]
    MissingObject {
        /// The object.
        object: ObjectId,
    },
    /// An object does not have the expected kind or content.
    #[error("object {object} is damaged: {reason}")]
    DamagedObject {
        /// The object.
        object: ObjectId,
        /// Reason for the failure.
        reason: String,
    },
    /// A restore found a path that it may not change. The files are partly restored.
    #[error("{path} could not be restored: {reason}")]
    Blocked {
        /// Path in the workspace.
        path: String,
        /// Reason for the failure.
        reason: String,
    },
    /// There are too many or too large files.
    #[error("the workspace exceeds a limit: {reason}")]
    Limit {
        /// The limit that is exceeded.
        reason: String,
    },
    /// The platform is not supported.
    #[error("host workspaces are not supported on this platform")]
    Unsupported,
    /// The object store failed.
    #[error("the object store failed")]
    Objects(#[source] BoxError),
    /// The files could not be accessed.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
}

/// Beginning of the name under which a session holds its directory.
const HOLDING_SESSION: &str = "session ";

/// Returns the name under which a session holds its directory.
pub fn directory_holder(session: SessionId) -> String {
    format!("{HOLDING_SESSION}{session}")
}

impl WorkspaceError {
    /// Returns whether this session, in this process or in another one, holds the directory.
    pub fn is_held_by(&self, session: SessionId) -> bool {
        self.holding_session() == Some(session)
    }

    /// Returns the session that holds the directory, in this process or in another one.
    pub fn holding_session(&self) -> Option<SessionId> {
        let Self::Held { holder, .. } = self else { return None };
        holder.strip_prefix(HOLDING_SESSION)?.split(' ').next()?.parse().ok()
    }

    /// Returns the stable code of the error; for a failed object store, the store's own.
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
