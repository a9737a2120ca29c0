//! The store of journals and objects.
//!
//! [`Store::append`] is the only way to write a journal. It names the position that the writer expects to be
//! next and the fence of its claim, and both are checked atomically with the write: of two writers exactly
//! one succeeds, and a writer that was replaced can never write again. A batch is stored atomically, its
//! objects no later than its records, and acknowledged batches are never lost.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BoxFuture;
use super::erasure::{Redaction, RedactionReport, Removal, RemovalReport};
use super::index::{ChangingSessions, ListedChanges};
use super::query::{SessionPage, SessionQuery};
use super::queue::check_queue_entry;
use super::store_error::StoreError;
use crate::id::SessionId;
use crate::journal::{Batch, InboxId, InboxItem, LargeRecord, Position, Record, RecordBody, SessionSummary};
use crate::message::MessageError;
use crate::object::{Object, ObjectContent, ObjectId};
use crate::time::Timestamp;

/// The number of a claim to a session. Later claims have larger numbers, and only the largest may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FenceToken(pub u64);

/// Name of the holder of a session, for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Owner(String);

impl Owner {
    /// Creates an owner with this name, for example a host and a process id.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The process that holds a session, if the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Name of the machine.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Time of the claim.
    pub since: Timestamp,
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} on {}, since {}", self.pid, self.host, self.since)
    }
}

/// Behaviour of a claim if another process holds the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimMode {
    /// The claim fails.
    IfFree,
    /// The claim succeeds, and the earlier holder can no longer write.
    TakeOver,
}

/// A held session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClaim {
    /// The session.
    pub session: SessionId,
    /// Number of the claim.
    pub fence: FenceToken,
    /// Name of the holder.
    pub owner: Owner,
}

/// The state of a session at a cut, in the format of its writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// Cut in the journal.
    pub position: Position,
    /// Encoded state.
    pub bytes: Vec<u8>,
}

/// Number of records that are read at a time.
const PAGE: usize = 1_000;

/// A store of journals and objects.
pub trait Store: Send + Sync {
    /// Claims a session, which need not exist yet. Each claim has a larger fence than all earlier ones.
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>>;

    /// Releases a session. Does nothing if the claim is no longer current.
    fn release(&self, claim: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the holder of a session.
    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>>;

    /// Returns whether a claim is the current one of its session. It is not once the session was taken over or released.
    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns whether this process may still act under a claim, by its own clock: nothing is awaited, and no other process is
    /// asked. False once the lease of the claim may be over. Always true in a store whose claims end with their processes.
    fn is_within_lease(&self, session: SessionId, fence: FenceToken) -> bool {
        let _ = (session, fence);
        true
    }

    /// Appends a batch whose first record is at `expected`, and returns the position after its last. On
    /// return, the batch is as durable as the store can make it. Objects that are already stored are not
    /// stored again.
    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>>;

    /// Appends a batch like [`Store::append`], but waits for no sync. The end of the process does not lose the batch; the end of
    /// the machine may, unless another batch was appended to the store since. A store that cannot tell the two apart appends it
    /// as any other.
    fn append_unsynced(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.append(session, expected, fence, batch)
    }

    /// Returns the position after the last record.
    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>>;

    /// Returns at most `limit` records starting at `from`, in order. Reads never wait for a writer, and see
    /// whole batches.
    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Returns all notes of a session, in order. A store that can find them does not read the records between them.
    fn notes(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let (mut notes, mut from) = (Vec::new(), Position::START);
            loop {
                let page = self.read(session, from, PAGE).await?;
                if page.is_empty() {
                    return Ok(notes);
                }
                from = from.after(page.len());
                notes.extend(page.into_iter().filter(|record| matches!(record.body, RecordBody::Note(_))));
            }
        })
    }

    /// Returns all sessions, in the order of their creation.
    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Returns an object, if it is stored. An object that retention deleted is [`StoreError::Pruned`], and one
    /// that a redaction removed is [`StoreError::Redacted`].
    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>>;

    /// Adds an item to the inbox of a session. The caller need not hold the session, but the session must
    /// exist. On return, the item is as durable as a batch. The holder removes it with [`Batch::take`]. A session that waits in
    /// the [queue](super::Queue) becomes ready.
    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>>;

    /// Returns the items in the inbox of a session, in the order in which they were sent. Empty for a session
    /// that does not exist.
    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>>;

    /// Saves the state of a session at a cut, in place of an earlier snapshot. It only makes opening the
    /// session faster: the journal alone is enough. Fails if the caller does not hold the session, and for a
    /// cut beyond the head.
    fn save_snapshot(
        &self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the latest snapshot of a session, if there is one.
    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>>;

    /// Returns the latest snapshot of a session, unless it is of a later cut than `cut`. A store that knows the
    /// cut of a snapshot without its content reads no content in vain.
    fn snapshot_until(
        &self,
        session: SessionId,
        cut: Position,
    ) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        Box::pin(async move { Ok(self.snapshot(session).await?.filter(|saved| saved.position <= cut)) })
    }

    /// Removes a value from a session and from all sessions that share records or calls with it. Replaced records keep their
    /// places, and a `redacted` record at the head of each session names them. Refused while one of the sessions is held. A
    /// redaction that was interrupted is completed by running it again.
    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>>;

    /// Deletes sessions with their sub-agents, and the objects that only they needed. Refused while one of them is held, and,
    /// unless forks are included, if another session is a fork of one of them or a sub-agent has not ended. A removal that was
    /// interrupted is completed by running it again.
    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>>;

    /// A page of the sessions that have a current summary and fulfil a query. Claims and inboxes are joined as they are now.
    fn query(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>>;

    /// The number of sessions that a query lists from its cursor on, on all pages.
    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// The summary of a session; `None` if it has no current one.
    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>>;

    /// At most `limit` sessions without a current summary, in the order of creation: those that an earlier version created, or
    /// whose last batch came without a summary.
    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Writes the summary of a session in place of the one that it has, if it describes the head; otherwise nothing is written,
    /// because the writer of a later batch knows better. Returns whether it was written. No claim is needed: a summary only
    /// repeats the journal.
    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// What the calls of a session changed, in the order of their ends, as the index lists it. `None` if calls of it are missing
    /// there: their records do not list paths, because an earlier version wrote them.
    fn changes(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Vec<ListedChanges>>, StoreError>>;

    /// Replaces what the index lists of a session, if `head` is still the position after its last record; otherwise nothing is
    /// written. Returns whether it was. No claim is needed, and no record is changed.
    fn put_changes(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// The sessions whose calls changed a path or something below it, by the index. The empty path stands for everything.
    fn changing_sessions(&self, path: &str) -> BoxFuture<'_, Result<ChangingSessions, StoreError>>;
}

/// Checks the rules that hold for batches of every store: a batch has records, and the creation of the
/// session is its first record and no other.
pub fn check_batch(session: SessionId, expected: Position, batch: &Batch) -> Result<(), StoreError> {
    if batch.is_empty() {
        return Err(StoreError::EmptyBatch);
    }
    batch.queue_entry().map_or(Ok(()), check_queue_entry)?;
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

/// Loads the large field of a record from its store.
pub async fn fetch_large(store: &dyn Store, record: &mut dyn LargeRecord) -> Result<(), StoreError> {
    match record.large_object() {
        Some(reference) => hydrate(record, content_of(store.object(reference.object).await)?),
        None => Ok(()),
    }
}

/// Returns the content of an object that was read from a store. Redacted content is not an error here.
pub fn content_of(found: Result<Option<Object>, StoreError>) -> Result<Option<ObjectContent>, StoreError> {
    match found {
        Ok(found) => Ok(found.as_ref().map(ObjectContent::from)),
        Err(StoreError::Redacted { .. }) => Ok(Some(ObjectContent::Redacted)),
        Err(error) => Err(error),
    }
}

/// Restores the large field of a record from its object.
pub fn hydrate(record: &mut dyn LargeRecord, found: Option<ObjectContent>) -> Result<(), StoreError> {
    let Some(object) = record.large_object().map(|reference| reference.object) else { return Ok(()) };
    let found = found.ok_or(StoreError::MissingObject { object })?;
    record.hydrate_content(&found).map_err(|error| {
        if let MessageError::Redacted { object, .. } = error {
            return StoreError::Redacted { object };
        }
        let reason = format!("it does not match its record: {error}");
        StoreError::DamagedObject { object, reason }
    })
}
