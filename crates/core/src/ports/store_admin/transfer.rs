//! Moving sessions between stores.
//!
//! A session is moved with everything that it depends on: the sessions that it was forked from up to the fork, its sub-agents, pending
//! inbox items, and all objects that any of them names. It is either copied from store to store, or written to a bundle, a file that
//! another machine imports.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::journal::{Batch, Position};
use crate::ports::store_admin::OpenError;
use crate::ports::store_error::StoreError;
use crate::time::Timestamp;

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferProgress {
    /// The current step.
    pub step: TransferStep,
    /// Number of objects or sessions that are done.
    pub done: u64,
    /// Number of all objects or sessions of the step.
    pub total: u64,
}

/// A step of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferStep {
    /// Objects are checked.
    Check,
    /// Objects are written.
    Objects,
    /// Sessions are written.
    Sessions,
}

/// Result of moving a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferReport {
    /// The session that was named.
    pub session: SessionId,
    /// All moved sessions, the named one last.
    pub sessions: Vec<TransferredSession>,
    /// Number of objects that were written.
    pub objects: u64,
}

impl TransferReport {
    /// Outcome of the session that was named.
    pub fn outcome(&self) -> TransferOutcome {
        self.sessions.last().map_or(TransferOutcome::Present, |last| last.outcome)
    }
}

/// Result for one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferredSession {
    /// Id of the session, the same in both stores.
    pub session: SessionId,
    /// Reason why it was moved.
    pub role: SessionRole,
    /// Number of moved records.
    pub records: u64,
    /// What happened to it.
    #[serde(flatten)]
    pub outcome: TransferOutcome,
}

/// Reason why a session is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionRole {
    /// It was named.
    Main,
    /// The main session was forked from it. Only its records before the fork are moved.
    Ancestor,
    /// It is the sub-agent of a call of another moved session.
    SubAgent,
}

/// What happened to a moved session in the target. Its serialized form is the field `outcome` of what it is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TransferOutcome {
    /// It is new there.
    Created,
    /// Its journal there was the beginning of the moved one, and has the rest now.
    Extended {
        /// Position of the first new record.
        from: Position,
    },
    /// All of its records were there already.
    Present,
}

/// What an import changes in the sessions that it creates or extends. That is done in the transaction which makes them visible, so no
/// process ever sees such a session without the changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportChanges {
    /// Records that are appended to these sessions.
    pub additions: BTreeMap<SessionId, Batch>,
    /// Whether decisions that wait in inboxes are left out.
    pub leaves_out_decisions: bool,
}

/// Size and content of a written bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleReport {
    /// Sessions and objects in the bundle.
    pub content: TransferReport,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// An open bundle whose content was checked completely. What is imported is what was checked.
pub trait OpenBundle: Any + Send + Sync {
    /// Session that the bundle was written for.
    fn session(&self) -> SessionId;

    /// Time at which the bundle was written, as it says.
    fn written_at(&self) -> Option<Timestamp>;

    /// Path at which the bundle can be read as a store. If the bundle has an older version, that is a temporary copy, which exists as
    /// long as this value.
    fn path(&self) -> &Path;

    /// Number of sessions, records and objects.
    fn counts(&self) -> (usize, u64, usize);
}

/// A session could not be moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The file is a store, but not a bundle.
    #[error("{} is not a bundle", path.display())]
    NotABundle {
        /// Path of the file.
        path: PathBuf,
    },
    /// The bundle is damaged, incomplete or was not written by a program of Backstitch. Nothing of it was
    /// imported.
    #[error("the bundle is invalid: {reason}")]
    Invalid {
        /// Description of the problem.
        reason: String,
    },
    /// The bundle would take more space than its size can account for, or than a limit allows.
    #[error("the bundle is invalid: {what} has {found}, but at most {limit} are accepted")]
    Excessive {
        /// Description of the content.
        what: String,
        /// The size or number, with its unit.
        found: String,
        /// The limit in the same unit.
        limit: u64,
    },
    /// The session is the sub-agent of a call, and is moved with its parent.
    #[error("session {session} is a sub-agent of session {parent}, and is moved together with it")]
    SubAgent {
        /// The session.
        session: SessionId,
        /// The session whose call it belongs to.
        parent: SessionId,
    },
    /// The store has a session with the same id and another journal.
    #[error("session {session} has other records in this store from position {position} on")]
    Conflict {
        /// The session.
        session: SessionId,
        /// The first position at which the journals differ.
        position: Position,
    },
    /// A file could not be opened or created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BundleError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotABundle { .. } | Self::Invalid { .. } | Self::Excessive { .. } => {
                ErrorCode::BundleInvalid
            }
            Self::SubAgent { .. } => ErrorCode::SubAgent,
            Self::Conflict { .. } => ErrorCode::SessionConflict,
            Self::Open(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }

    /// What to do instead, for something that is not supported.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}
