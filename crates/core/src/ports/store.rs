//! The store: where journals and objects are kept.
//!
//! [`Store::append`] is the only way to write a journal. It names the position that the writer believes to be next and the
//! fence that the writer holds, and both are checked together with the write: of two writers exactly one succeeds, and a
//! writer that was replaced can do no harm however late it wakes up. A batch is stored whole or not at all, its objects no
//! later than its records, and what was acknowledged is never lost.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BoxFuture;
use super::store_error::StoreError;
use crate::id::SessionId;
use crate::journal::{Batch, InboxId, InboxItem, LargeRecord, Position, Record, RecordBody};
use crate::object::{Object, ObjectId};
use crate::time::Timestamp;

/// The number of a claim to a session. A later claim has a larger number, and only the largest may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FenceToken(pub u64);

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
pub enum ClaimMode {
    /// Leave it to them.
    IfFree,
    /// Take it from them: from now on nothing of theirs is written.
    TakeOver,
}

/// A held session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClaim {
    /// The session.
    pub session: SessionId,
    /// The number of the claim.
    pub fence: FenceToken,
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

/// Where journals and objects are kept.
pub trait Store: Send + Sync {
    /// Claims a session, which need not exist yet. Each claim has a larger fence than all before it.
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        claim: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>>;

    /// Gives a session back. Giving back what is no longer held changes nothing.
    fn release(&self, lease: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Who holds a session.
    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>>;

    /// Appends a batch whose first record stands at `expected`, and gives the position after its last. When this returns, the
    /// batch is as durable as the store can make it. Objects that are already stored are not stored again.
    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
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
        fence: FenceToken,
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

/// Puts back what is too large for a record from the store that it is recorded in.
pub async fn fetch_large(store: &dyn Store, record: &mut dyn LargeRecord) -> Result<(), StoreError> {
    match record.large_object() {
        Some(reference) => hydrate(record, store.object(reference.object).await?),
        None => Ok(()),
    }
}

/// Puts back what is too large for a record from the object that was found under its name.
pub fn hydrate(record: &mut dyn LargeRecord, found: Option<Object>) -> Result<(), StoreError> {
    let Some(object) = record.large_object().map(|reference| reference.object) else { return Ok(()) };
    let found = found.ok_or(StoreError::MissingObject { object })?;
    record.hydrate(&found).map_err(|error| {
        let reason = format!("it is not what its record says: {error}");
        StoreError::DamagedObject { object, reason }
    })
}
