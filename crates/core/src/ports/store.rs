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
use crate::journal::{Batch, DecodeError, Position, Record, RecordBody};
use crate::object::{Object, ObjectId};
use crate::session::BoxError;

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
    #[error("session {session} is held by {owner}")]
    Held {
        /// The session.
        session: SessionId,
        /// Who holds it.
        owner: Owner,
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
    /// A stored record cannot be read.
    #[error("session {session} has a broken record")]
    BrokenRecord {
        /// The session.
        session: SessionId,
        /// Which one, and how.
        #[source]
        source: DecodeError,
    },
    /// What is below the store failed.
    #[error("the store failed")]
    Backend(#[source] BoxError),
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

    /// An object, if it is stored.
    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>>;
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
