//! What a store refuses, and what can be wrong with what it holds.

use std::path::PathBuf;

use super::store::{FenceToken, Owner, Process};
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::journal::{DecodeError, EncodeError, InboxId, Position};
use crate::object::ObjectId;
use crate::session::BoxError;
use crate::storable::NotStorable;

/// A store refused or failed. Unless it says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Someone else has appended since the writer last looked.
    #[error("session {session} continues at position {actual}, not at {expected}; read it again")]
    Conflict {
        /// The session.
        session: SessionId,
        /// The position that the writer believed to be next.
        expected: Position,
        /// The position that is next.
        actual: Position,
    },
    /// Someone else has claimed the session since, or nobody has.
    #[error("session {session} is no longer held by claim {}: {}", .fence.0, holder(.owner))]
    Fenced {
        /// The session.
        session: SessionId,
        /// The writer's claim.
        fence: FenceToken,
        /// Who holds it now.
        owner: Option<Owner>,
    },
    /// The session is held by someone else.
    #[error("session {session} is held by {owner}{}", place(.process))]
    Held {
        /// The session.
        session: SessionId,
        /// Who holds it.
        owner: Owner,
        /// Where that is, if the store knows it.
        process: Option<Process>,
    },
    /// There is no such session.
    #[error("there is no session {session}")]
    NotFound {
        /// The session.
        session: SessionId,
    },
    /// A batch without records says nothing.
    #[error("a batch needs at least one record")]
    EmptyBatch,
    /// A journal begins with the creation of its session and has it nowhere else.
    #[error("the journal of session {session} begins with its own session_created and has it nowhere else")]
    Beginning {
        /// The session.
        session: SessionId,
    },
    /// A record refers to an object that is neither stored nor in the batch.
    #[error("a record refers to object {object}, which is not stored")]
    MissingObject {
        /// The object.
        object: ObjectId,
    },
    /// An object was thrown away by retention: the boundary that it belonged to can no longer be gone back to.
    #[error("object {object} was pruned by retention")]
    Pruned {
        /// The object.
        object: ObjectId,
    },
    /// An object was lost when a damaged store was salvaged.
    #[error("object {object} was lost when the store was salvaged")]
    LostObject {
        /// The object.
        object: ObjectId,
    },
    /// A batch takes an item that does not wait in the session's inbox.
    #[error(
        "item {item} does not wait in the inbox of session {session}: it was taken before, or never sent"
    )]
    NotInInbox {
        /// The session.
        session: SessionId,
        /// The item.
        item: InboxId,
    },
    /// A snapshot stands behind the end of its journal.
    #[error("a snapshot at position {position} lies beyond the head {head} of session {session}")]
    BeyondHead {
        /// The session.
        session: SessionId,
        /// Where the snapshot stands.
        position: Position,
        /// Where the journal ends.
        head: Position,
    },
    /// A record could be written but not be read again, so it is not written.
    #[error("record {position} of session {session} cannot be stored")]
    Unstorable {
        /// The session.
        session: SessionId,
        /// Where the record would stand.
        position: Position,
        /// Why not.
        #[source]
        source: EncodeError,
    },
    /// An item for an inbox could be written but not be read again, so it is not sent.
    #[error("the item for the inbox of session {session} cannot be stored")]
    UnstorableItem {
        /// The session.
        session: SessionId,
        /// Why not.
        #[source]
        source: NotStorable,
    },
    /// Something is larger than the store can hold in one piece.
    #[error("{what} has {bytes} bytes, and the store holds at most {limit} in one piece")]
    TooLarge {
        /// What it is.
        what: String,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The stored record at a position is not the one that was written there.
    #[error("session {session} is damaged at position {position}: {damage}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// Where.
        position: Position,
        /// How.
        damage: Damage,
    },
    /// What is stored under the name of an object is not that object.
    #[error("object {object} is damaged: {reason}")]
    DamagedObject {
        /// The object.
        object: ObjectId,
        /// How.
        reason: String,
    },
    /// The stored snapshot of a session is not what was written. The journal tells the same.
    #[error("the snapshot of session {session} is damaged; its journal tells the same")]
    DamagedSnapshot {
        /// The session.
        session: SessionId,
    },
    /// A stored record cannot be read.
    #[error("session {session} has a broken record")]
    BrokenRecord {
        /// The session.
        session: SessionId,
        /// Which one, and how.
        #[source]
        source: DecodeError,
    },
    /// The store's file is damaged below the level of sessions.
    #[error("the store's file is damaged")]
    Corrupt {
        /// What the layer below said.
        #[source]
        source: BoxError,
    },
    /// There is no room: the disk is full, or the store has reached the size that it was given. Acknowledged batches are durable,
    /// reading still works, and writing works again once there is room.
    #[error("the store is full: {reason}")]
    Full {
        /// What is used up.
        reason: String,
        /// What the layer below said.
        #[source]
        source: Option<BoxError>,
    },
    /// The store may only be read: it was opened so, or its file or directory is.
    #[error("the store can only be read: {reason}")]
    ReadOnly {
        /// What is read-only.
        reason: String,
    },
    /// Someone else kept the store locked for too long. Trying again may help.
    #[error("the store is busy: another process writes to it and did not let go")]
    Busy {
        /// What the layer below said.
        #[source]
        source: BoxError,
    },
    /// The store's files were removed, moved or replaced while it was open, so a commit would reach files that nobody finds
    /// again. The batch is not acknowledged, and neither is any later one: open the store again. What the open files held is
    /// in the copy; it holds everything that was acknowledged, and may hold the batch that failed.
    #[error("the store {} was removed or replaced while it was open; {}", .path.display(), saved(.copy, .failure))]
    Replaced {
        /// Where the store was opened.
        path: PathBuf,
        /// Where everything that it held was copied to, unless that failed.
        copy: Option<PathBuf>,
        /// Why there is no copy.
        failure: Option<String>,
    },
    /// What is below the store failed.
    #[error("the store failed")]
    Backend(#[source] BoxError),
}

impl StoreError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } | Self::Fenced { .. } => ErrorCode::LeaseLost,
            Self::Held { .. } => ErrorCode::SessionHeld,
            Self::NotFound { .. } => ErrorCode::SessionNotFound,
            Self::EmptyBatch | Self::Beginning { .. } | Self::NotInInbox { .. } | Self::BeyondHead { .. } => {
                ErrorCode::Internal
            }
            Self::MissingObject { .. } => ErrorCode::ObjectMissing,
            Self::Pruned { .. } => ErrorCode::Pruned,
            Self::LostObject { .. } => ErrorCode::ObjectLost,
            Self::Unstorable { .. } | Self::UnstorableItem { .. } => ErrorCode::NotStorable,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Damaged { .. }
            | Self::DamagedObject { .. }
            | Self::DamagedSnapshot { .. }
            | Self::Corrupt { .. } => ErrorCode::StoreDamaged,
            Self::BrokenRecord { .. } => ErrorCode::JournalInvalid,
            Self::Full { .. } => ErrorCode::StoreFull,
            Self::ReadOnly { .. } => ErrorCode::StoreReadOnly,
            Self::Busy { .. } => ErrorCode::StoreBusy,
            Self::Replaced { .. } => ErrorCode::StoreReplaced,
            Self::Backend(_) => ErrorCode::Store,
        }
    }
}

/// What is wrong at a place of a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// There is no record, though there are later ones.
    #[error("the record is missing")]
    Gap,
    /// The record, or one before it, was changed after it was written.
    #[error("its checksum does not follow from the record and the one before it")]
    Checksum,
    /// What stands there is no text.
    #[error("it is no text")]
    NotText,
}

fn saved(copy: &Option<PathBuf>, failure: &Option<String>) -> String {
    match (copy, failure) {
        (Some(copy), _) => format!("its content was saved to {}", copy.display()),
        (None, Some(failure)) => format!("its content could not be saved: {failure}"),
        (None, None) => "its content could not be saved".to_owned(),
    }
}

fn place(process: &Option<Process>) -> String {
    process.as_ref().map_or_else(String::new, |process| format!(" ({process})"))
}

fn holder(owner: &Option<Owner>) -> String {
    owner.as_ref().map_or_else(|| "nobody holds it".to_owned(), |owner| format!("{owner} holds it"))
}
