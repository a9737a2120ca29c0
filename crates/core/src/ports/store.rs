//! The store: where journals and objects are kept.
//!
//! [`Store::append`] is the only way to write a journal. It names the position that the writer believes to be next and the
//! fence that the writer holds, and both are checked together with the write: of two writers exactly one succeeds, and a
//! writer that was replaced can do no harm however late it wakes up. A batch is stored whole or not at all, its objects no
//! later than its records, and what was acknowledged is never lost.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BoxFuture;
use crate::id::SessionId;
use crate::journal::{Batch, DecodeError, EncodeError, InboxId, InboxItem, Position, Record, RecordBody};
use crate::object::{Object, ObjectId};
use crate::session::BoxError;
use crate::storable::NotStorable;
use crate::time::Timestamp;

/// The number of a claim to a session. A later claim has a larger number, and only the largest may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// Who holds a session, for a person to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(String);

impl Owner {
    /// An owner with this name, for instance a host and a process id.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The process that holds a session, where a store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Since when it holds the session.
    pub since: Timestamp,
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} on {}, since {}", self.pid, self.host, self.since)
    }
}

/// What to do when a session is held by someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Leave it to them.
    IfFree,
    /// Take it from them: from now on nothing of theirs is written.
    TakeOver,
}

/// A held session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// The number of the claim.
    pub fence: Fence,
    /// Who holds it.
    pub owner: Owner,
}

/// The state of a session at a cut, as whoever saved it wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// The cut: the state that all records before it lead to.
    pub position: Position,
    /// The state.
    pub bytes: Vec<u8>,
}

/// A store refused or failed. Unless it says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Someone else has appended since the writer last looked.
    #[error("session {session} goes on at position {actual}, not at {expected}: read it again")]
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
        fence: Fence,
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
    /// What is stored at a place of a journal is not what was written there. The `verify` command tells the extent, and
    /// `salvage` writes what is sound to a new store.
    #[error("session {session} is damaged at position {position}: {damage}; see `verify` and `salvage`")]
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
    /// The store's file is damaged below what a session could tell. The `verify` command tells the extent, and `salvage` writes
    /// what is sound to a new store.
    #[error("the store's file is damaged; see `verify` and `salvage`")]
    Corrupt {
        /// What the layer below said.
        #[source]
        source: BoxError,
    },
    /// There is no room: the disk is full, or the store has reached the size that it was given. Whatever was acknowledged is
    /// safe, reading goes on, and writing does once there is room again.
    #[error("the store is full: {reason}")]
    Full {
        /// What is used up, and what to do about it.
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
    /// What is below the store failed.
    #[error("the store failed")]
    Backend(#[source] BoxError),
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

fn place(process: &Option<Process>) -> String {
    process.as_ref().map_or_else(String::new, |process| format!(" ({process})"))
}

fn holder(owner: &Option<Owner>) -> String {
    owner.as_ref().map_or_else(|| "nobody holds it".to_owned(), |owner| format!("{owner} holds it"))
}

/// Where journals and objects are kept.
pub trait Store: Send + Sync {
    /// Claims a session, which need not exist yet. Each claim has a larger fence than all before it.
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        claim: Claim,
    ) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Gives a session back. Giving back what is no longer held changes nothing.
    fn release(&self, lease: Lease) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Who holds a session.
    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>>;

    /// Appends a batch whose first record stands at `expected`, and gives the position after its last. When this returns, the
    /// batch is as durable as the store can make it. Objects that are already stored are not stored again.
    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: Fence,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>>;

    /// The position after the last record.
    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>>;

    /// At most `limit` records from `from` on, in order. Reading never waits for a writer, and sees whole batches.
    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// All sessions, in the order in which they were created.
    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// An object, if it is stored. One that retention threw away is [`StoreError::Pruned`].
    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>>;

    /// Puts an item into the inbox of a session. Anybody may, also without holding the session; it must exist. When this
    /// returns, the item is as durable as a batch. The holder takes it out with [`Batch::take`].
    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>>;

    /// The items that wait in the inbox of a session, in the order in which they were sent. Empty for a session that does
    /// not exist.
    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>>;

    /// Keeps the state of a session as it is at a cut, in place of an earlier snapshot. It is for opening the session faster
    /// and for nothing else: the journal alone is enough. Refused to whoever does not hold the session, and for a cut that
    /// lies beyond the head.
    fn save_snapshot(
        &self,
        session: SessionId,
        fence: Fence,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The latest snapshot of a session, if there is one.
    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>>;
}

/// Checks what every store has to check of a batch before it looks at its own data: that it says something, and that the
/// creation of the session stands at its beginning and nowhere else.
pub fn check_batch(session: SessionId, expected: Position, batch: &Batch) -> Result<(), StoreError> {
    if batch.is_empty() {
        return Err(StoreError::EmptyBatch);
    }
    for (index, body) in batch.bodies().iter().enumerate() {
        let creates = match body {
            RecordBody::SessionCreated(created) if created.session_id == session => true,
            RecordBody::SessionCreated(_) => return Err(StoreError::Beginning { session }),
            _ => false,
        };
        if creates != (expected.after(index) == Position::START) {
            return Err(StoreError::Beginning { session });
        }
    }
    Ok(())
}
