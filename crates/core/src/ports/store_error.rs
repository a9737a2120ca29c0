//! Errors of stores, and kinds of damage.

use std::path::PathBuf;

use super::store::{FenceToken, Owner, Process};
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::journal::{DecodeError, EncodeError, InboxId, Position};
use crate::object::ObjectId;
use crate::session::BoxError;
use crate::storable::NotStorable;

/// A store refused an operation, or failed. Unless a variant states otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer has appended to the session.
    #[error("session {session} continues at position {actual}, not at {expected}; read it again")]
    Conflict {
        /// The session.
        session: SessionId,
        /// Position that the writer expected to be next.
        expected: Position,
        /// Actual next position.
        actual: Position,
    },
    /// Another process has claimed the session since then, or the claim was released.
    #[error("session {session} is no longer held by claim {}: {}", .fence.0, holder(.owner))]
    Fenced {
        /// The session.
        session: SessionId,
        /// Claim of the writer.
        fence: FenceToken,
        /// Current holder.
        owner: Option<Owner>,
    },
    /// The lease of a claim may be over by the clock of this machine, so another process may have the session.
    #[error("the lease of session {session} was not renewed in time")]
    LeaseOver {
        /// The session.
        session: SessionId,
    },
    /// Another process holds the session.
    #[error("session {session} is held by {owner}{}", place(.process))]
    Held {
        /// The session.
        session: SessionId,
        /// Current holder.
        owner: Owner,
        /// Process of the holder, if the store knows it.
        process: Option<Process>,
    },
    /// There is no such session.
    #[error("there is no session {session}")]
    NotFound {
        /// The session.
        session: SessionId,
    },
    /// A batch has no records.
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
    /// Retention deleted an object, so its boundary can no longer be restored.
    #[error("object {object} was pruned by retention")]
    Pruned {
        /// The object.
        object: ObjectId,
    },
    /// The content of an object was removed by a redaction.
    #[error("object {object} was redacted")]
    Redacted {
        /// The object.
        object: ObjectId,
    },
    /// Other sessions depend on a session that is to be removed.
    #[error("session {session} is not removed: {}", dependents(.forks, .children))]
    Shared {
        /// The session.
        session: SessionId,
        /// The forks of it, or of its sub-agents.
        forks: Vec<SessionId>,
        /// The sub-agents that have not ended.
        children: Vec<SessionId>,
    },
    /// An object was lost when a damaged store was salvaged.
    #[error("object {object} was lost when the store was salvaged")]
    LostObject {
        /// The object.
        object: ObjectId,
    },
    /// A session was enqueued with this key before.
    #[error("the key {key:?} was used for session {session}")]
    KeyUsed {
        /// The key.
        key: String,
        /// The session that was enqueued with it.
        session: SessionId,
    },
    /// A word of the queue, such as a key or a tag, cannot be kept.
    #[error("{word:?} cannot be used as {what} in the queue: {reason}")]
    QueueWord {
        /// What the word is, such as `key`.
        what: &'static str,
        /// The word, or its beginning.
        word: String,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// A batch removes an item that is not in the session's inbox.
    #[error(
        "item {item} does not wait in the inbox of session {session}: it was taken before, or never sent"
    )]
    NotInInbox {
        /// The session.
        session: SessionId,
        /// The item.
        item: InboxId,
    },
    /// A snapshot is beyond the end of its journal.
    #[error("a snapshot at position {position} lies beyond the head {head} of session {session}")]
    BeyondHead {
        /// The session.
        session: SessionId,
        /// Position of the snapshot.
        position: Position,
        /// End of the journal.
        head: Position,
    },
    /// A record could be written but not read again, so it is not written.
    #[error("record {position} of session {session} cannot be stored")]
    Unstorable {
        /// The session.
        session: SessionId,
        /// Position of the record.
        position: Position,
        /// Reason for the refusal.
        #[source]
        source: EncodeError,
    },
    /// An inbox item could be written but not read again, so it is not sent.
    #[error("the item for the inbox of session {session} cannot be stored")]
    UnstorableItem {
        /// The session.
        session: SessionId,
        /// Reason for the refusal.
        #[source]
        source: NotStorable,
    },
    /// A value is larger than the store can hold in one piece.
    #[error("{what} has {bytes} bytes, and the store holds at most {limit} in one piece")]
    TooLarge {
        /// Description of the value.
        what: String,
        /// Size of the value.
        bytes: u64,
        /// Largest size allowed.
        limit: u64,
    },
    /// The stored record at a position differs from the one that was written.
    #[error("session {session} is damaged at position {position}: {damage}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// Position of the damage.
        position: Position,
        /// Kind of damage.
        damage: Damage,
    },
    /// The content stored under the name of an object is not that object.
    #[error("object {object} is damaged: {reason}")]
    DamagedObject {
        /// The object.
        object: ObjectId,
        /// Reason for the failure.
        reason: String,
    },
    /// The stored snapshot of a session differs from the one that was written. The journal holds the same
    /// state.
    #[error("the snapshot of session {session} is damaged; its journal holds the same state")]
    DamagedSnapshot {
        /// The session.
        session: SessionId,
    },
    /// The stored summary of a session is not what was written. The journal tells the same.
    #[error("the summary of session {session} is damaged; its journal tells the same")]
    DamagedSummary {
        /// The session.
        session: SessionId,
    },
    /// A cursor that this store did not return.
    #[error("{cursor:?} is not a cursor of this store")]
    UnknownCursor {
        /// The cursor.
        cursor: String,
    },
    /// A stored record cannot be decoded.
    #[error("session {session} has a broken record")]
    BrokenRecord {
        /// The session.
        session: SessionId,
        /// Position and kind of the failure.
        #[source]
        source: DecodeError,
    },
    /// The store's file is damaged below the level of sessions.
    #[error("the store's file is damaged")]
    Corrupt {
        /// Error of the layer below.
        #[source]
        source: BoxError,
    },
    /// The disk is full, or the store has reached its size limit. Acknowledged batches are durable, reads
    /// still work, and writes work again once there is space.
    #[error("the store is full: {reason}")]
    Full {
        /// The exhausted resource.
        reason: String,
        /// Error of the layer below.
        #[source]
        source: Option<BoxError>,
    },
    /// The store cannot do this.
    #[error("{store} does not support {operation}")]
    Unsupported {
        /// What the store is called, such as `a store in memory`.
        store: &'static str,
        /// What was asked for.
        operation: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The store is read-only: it was opened so, or its file or directory is.
    #[error("the store can only be read: {reason}")]
    ReadOnly {
        /// The read-only file, directory or mode.
        reason: String,
    },
    /// Another process kept the store locked for too long. A retry may help.
    #[error("the store is busy: another process kept it locked for too long")]
    Busy {
        /// Error of the layer below.
        #[source]
        source: BoxError,
    },
    /// The store's files were removed, moved or replaced while it was open, so a commit would reach files
    /// that no process can find again. Neither this batch nor any later one is acknowledged: the store has to
    /// be opened again. The content of the open files is in the copy, which holds everything that was
    /// acknowledged, and may hold the batch that failed.
    #[error("the store {} was removed or replaced while it was open; {}", .path.display(), saved(.copy, .failure))]
    Replaced {
        /// Path of the opened store.
        path: PathBuf,
        /// Path of the copy, unless copying failed.
        copy: Option<PathBuf>,
        /// Reason why there is no copy.
        failure: Option<String>,
    },
    /// The server of the store cannot be reached, or does not answer in time. A retry may help.
    #[error("the server of the store is not available: {reason}")]
    Unavailable {
        /// What the connection or the server said.
        reason: String,
        /// Error of the layer below.
        #[source]
        source: Option<BoxError>,
    },
    /// The server of the store refused the user, or the user may not do this there.
    #[error("the server of the store refused access: {reason}")]
    Denied {
        /// What the server said.
        reason: String,
    },
    /// The answer to an append was lost, and the server does not say whether the batch is stored. It is stored as a whole or not at all: the
    /// session has to be opened again.
    #[error("the last batch of session {session} may or may not have been stored")]
    OutcomeUnknown {
        /// The session.
        session: SessionId,
        /// Why the answer was lost.
        #[source]
        source: BoxError,
    },
    /// The server has lost records that it had acknowledged, for example in a failover to a server that did not have them yet.
    #[error(
        "the server of the store has lost records of session {session}: its journal ends at {head}, but {acknowledged} was acknowledged"
    )]
    HistoryLost {
        /// The session.
        session: SessionId,
        /// End of the journal that was acknowledged.
        acknowledged: Position,
        /// End of the journal now.
        head: Position,
    },
    /// The layer below the store failed.
    #[error("the store failed")]
    Backend(#[source] BoxError),
}

impl StoreError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } | Self::Fenced { .. } | Self::LeaseOver { .. } => ErrorCode::ClaimLost,
            Self::Held { .. } => ErrorCode::SessionHeld,
            Self::NotFound { .. } => ErrorCode::SessionNotFound,
            Self::EmptyBatch | Self::Beginning { .. } | Self::NotInInbox { .. } | Self::BeyondHead { .. } => {
                ErrorCode::Internal
            }
            Self::MissingObject { .. } => ErrorCode::ObjectMissing,
            Self::Pruned { .. } => ErrorCode::Pruned,
            Self::Redacted { .. } => ErrorCode::Redacted,
            Self::Shared { .. } => ErrorCode::SessionShared,
            Self::LostObject { .. } => ErrorCode::ObjectLost,
            Self::Unstorable { .. } | Self::UnstorableItem { .. } => ErrorCode::NotStorable,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Damaged { .. }
            | Self::DamagedObject { .. }
            | Self::DamagedSnapshot { .. }
            | Self::DamagedSummary { .. }
            | Self::Corrupt { .. } => ErrorCode::StoreDamaged,
            Self::UnknownCursor { .. } | Self::KeyUsed { .. } | Self::QueueWord { .. } => ErrorCode::Usage,
            Self::BrokenRecord { .. } => ErrorCode::JournalInvalid,
            Self::Full { .. } => ErrorCode::StoreFull,
            Self::Unsupported { .. } => ErrorCode::StoreUnsupported,
            Self::ReadOnly { .. } => ErrorCode::StoreReadOnly,
            Self::Busy { .. } => ErrorCode::StoreBusy,
            Self::Replaced { .. } => ErrorCode::StoreReplaced,
            Self::Unavailable { .. } => ErrorCode::StoreUnavailable,
            Self::Denied { .. } => ErrorCode::StoreDenied,
            Self::OutcomeUnknown { .. } => ErrorCode::WriteUnknown,
            Self::HistoryLost { .. } => ErrorCode::HistoryLost,
            Self::Backend(_) => ErrorCode::Store,
        }
    }

    /// What to do instead, for something that is not supported.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unsupported { hint, .. } => Some(hint),
            _ => None,
        }
    }
}

/// Kind of damage at a position of a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The record is missing, though there are later ones.
    #[error("the record is missing")]
    Gap,
    /// The record, or one before it, was changed after it was written.
    #[error("its checksum does not follow from the record and the one before it")]
    Checksum,
    /// The stored value is not a text.
    #[error("it is not text")]
    NotText,
}

fn saved(copy: &Option<PathBuf>, failure: &Option<String>) -> String {
    match (copy, failure) {
        (Some(copy), _) => format!("its content was saved to {}", copy.display()),
        (None, Some(failure)) => format!("its content could not be saved: {failure}"),
        (None, None) => "its content could not be saved".to_owned(),
    }
}

fn dependents(forks: &[SessionId], children: &[SessionId]) -> String {
    let list =
        |sessions: &[SessionId]| sessions.iter().map(SessionId::to_string).collect::<Vec<_>>().join(", ");
    let forks = (!forks.is_empty()).then(|| format!("it was forked to {}", list(forks)));
    let children =
        (!children.is_empty()).then(|| format!("its sub-agents {} have not ended", list(children)));
    forks.into_iter().chain(children).collect::<Vec<_>>().join(", and ")
}

fn place(process: &Option<Process>) -> String {
    process.as_ref().map_or_else(String::new, |process| format!(" ({process})"))
}

fn holder(owner: &Option<Owner>) -> String {
    owner.as_ref().map_or_else(|| "it is not held".to_owned(), |owner| format!("{owner} holds it"))
}
