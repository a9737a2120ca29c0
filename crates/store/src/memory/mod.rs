//! A store in memory.
//!
//! Its data lasts as long as the value. It serves tests and sessions that are never resumed, and it is the
//! plainest implementation of the port. One lock guards everything. Each operation is one critical section
//! that checks first and writes afterwards, so no reader sees a part of a batch.
//!
//! Records are shared, never encoded. A read holds the lock only while it shares the records; it copies them
//! after releasing the lock.

mod admin;
mod erasure;
mod index;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, RecordBody, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ClaimMode, FenceToken, Objects, Owner, Redaction, RedactionReport, Removal, RemovalReport,
    SavedSnapshot, SessionClaim, SessionPage, SessionQuery, Store, StoreError, check_batch,
};
use backstitch_core::session::BoxError;

/// An in-memory [`Store`]. Its data is dropped with the value.
#[derive(Default)]
pub struct MemoryStore {
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    journals: HashMap<SessionId, Vec<Arc<Record>>>,
    /// Sessions of `journals` by number, in the order of creation. No number is given twice.
    created: BTreeMap<u64, SessionId>,
    numbered: u64,
    claims: HashMap<SessionId, Claims>,
    objects: HashMap<ObjectId, Object>,
    /// Objects whose content was redacted, unless they were stored again.
    redacted: HashSet<ObjectId>,
    /// Sessions that were removed and not created again, each with the number of its records.
    removed: HashMap<SessionId, u64>,
    /// Pending inbox items of all sessions, in the order of sending.
    inbox: BTreeMap<InboxId, (SessionId, InboxItem)>,
    sent: u64,
    snapshots: HashMap<SessionId, SavedSnapshot>,
    /// Summaries of the sessions whose last batch came with one.
    summaries: HashMap<SessionId, SessionSummary>,
}

/// Claims to one session. The number outlives a release, so no fence is issued twice.
#[derive(Default)]
struct Claims {
    latest: u64,
    owner: Option<Owner>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the contents. A poisoned lock is ignored: every operation finishes its checks before it writes,
    /// and no write can panic, so the contents are sound even if a thread died while it held the lock.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn claim(
        &mut self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> Result<SessionClaim, StoreError> {
        let claims = self.claims.entry(session).or_default();
        if let (Some(owner), ClaimMode::IfFree) = (&claims.owner, mode) {
            return Err(StoreError::Held { session, owner: owner.clone(), process: None });
        }
        claims.latest += 1;
        claims.owner = Some(owner.clone());
        Ok(SessionClaim { session, fence: FenceToken(claims.latest), owner })
    }

    fn release(&mut self, claim: &SessionClaim) {
        if let Some(claims) = self.claims.get_mut(&claim.session)
            && FenceToken(claims.latest) == claim.fence
        {
            claims.owner = None;
        }
    }

    fn holder(&self, session: SessionId) -> Option<Owner> {
        self.claims.get(&session).and_then(|claims| claims.owner.clone())
    }

    fn append(
        &mut self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> Result<Position, StoreError> {
        self.check_fence(session, fence)?;
        let actual = head_of(self.journals.get(&session).map_or(&[], Vec::as_slice));
        if actual != expected {
            return Err(StoreError::Conflict { session, expected, actual });
        }
        self.check_objects(&batch)?;
        self.check_taken(session, &batch)?;

        for item in batch.taken() {
            self.inbox.remove(item);
        }
        match batch.summary(session, expected) {
            Some(summary) => drop(self.summaries.insert(session, summary.clone())),
            None => drop(self.summaries.remove(&session)),
        }
        let (records, objects) = batch.into_records(expected);
        for object in objects {
            self.redacted.remove(&object.id());
            self.objects.entry(object.id()).or_insert(object);
        }
        if expected == Position::START {
            self.removed.remove(&session);
            self.numbered += 1;
            self.created.insert(self.numbered, session);
        }
        let journal = self.journals.entry(session).or_default();
        journal.extend(records.into_iter().map(Arc::new));
        Ok(head_of(journal))
    }

    /// Fails with `Fenced` unless the fence belongs to the current holder.
    fn check_fence(&self, session: SessionId, fence: FenceToken) -> Result<(), StoreError> {
        let is_held = |claims: &Claims| claims.owner.is_some() && FenceToken(claims.latest) == fence;
        if self.claims.get(&session).is_some_and(is_held) {
            Ok(())
        } else {
            Err(StoreError::Fenced { session, fence, owner: self.holder(session) })
        }
    }

    /// Fails if the batch takes an item that is not pending in the session's inbox, or takes one twice.
    fn check_taken(&self, session: SessionId, batch: &Batch) -> Result<(), StoreError> {
        let mut seen = HashSet::new();
        for item in batch.taken() {
            let waits = self.inbox.get(item).is_some_and(|(whose, _)| *whose == session);
            if !waits || !seen.insert(item) {
                return Err(StoreError::NotInInbox { session, item: *item });
            }
        }
        Ok(())
    }

    fn send(&mut self, session: SessionId, item: InboxItem) -> Result<InboxId, StoreError> {
        self.journal(session)?;
        item.check().map_err(|source| StoreError::UnstorableItem { session, source })?;
        self.sent += 1;
        let id = InboxId(self.sent);
        self.inbox.insert(id, (session, item));
        Ok(id)
    }

    fn inbox(&self, session: SessionId) -> Vec<(InboxId, InboxItem)> {
        let items = self.inbox.iter().filter(|(_, (whose, _))| *whose == session);
        items.map(|(id, (_, item))| (*id, item.clone())).collect()
    }

    fn save_snapshot(
        &mut self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.check_fence(session, fence)?;
        let head = head_of(self.journal(session)?);
        if position > head {
            return Err(StoreError::BeyondHead { session, position, head });
        }
        self.snapshots.insert(session, SavedSnapshot { position, bytes });
        Ok(())
    }

    /// Fails if the batch refers to an object that is neither stored nor part of the batch.
    fn check_objects(&self, batch: &Batch) -> Result<(), StoreError> {
        let brought: HashSet<ObjectId> = batch.objects().iter().map(Object::id).collect();
        for object in batch.bodies().iter().flat_map(RecordBody::object_refs) {
            let is_known = self.objects.contains_key(&object) || self.redacted.contains(&object);
            if !brought.contains(&object) && !is_known {
                return Err(StoreError::MissingObject { object });
            }
        }
        Ok(())
    }

    fn object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        match self.redacted.contains(&id) {
            true => Err(StoreError::Redacted { object: id }),
            false => Ok(self.objects.get(&id).cloned()),
        }
    }

    fn journal(&self, session: SessionId) -> Result<&[Arc<Record>], StoreError> {
        self.journals.get(&session).map(Vec::as_slice).ok_or(StoreError::NotFound { session })
    }

    fn read(&self, session: SessionId, from: Position, limit: usize) -> Result<Vec<Arc<Record>>, StoreError> {
        let journal = self.journal(session)?;
        let start = usize::try_from(from.number()).unwrap_or(usize::MAX).min(journal.len());
        let end = start.saturating_add(limit).min(journal.len());
        Ok(journal[start..end].to_vec())
    }
}

fn head_of(journal: &[Arc<Record>]) -> Position {
    Position::START.after(journal.len())
}

impl Store for MemoryStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        Box::pin(async move { self.contents().claim(session, owner, mode) })
    }

    fn release(&self, claim: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.contents().release(&claim);
            Ok(())
        })
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        Box::pin(async move { Ok(self.contents().holder(session)) })
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.contents().check_fence(session, fence).is_ok()) })
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move {
            check_batch(session, expected, &batch)?;
            self.contents().append(session, expected, fence, batch)
        })
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move { self.contents().journal(session).map(head_of) })
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let shared = self.contents().read(session, from, limit)?;
            Ok(shared.iter().map(|record| Record::clone(record)).collect())
        })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { Ok(self.contents().created.values().copied().collect()) })
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        Box::pin(async move { self.contents().object(id) })
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        Box::pin(async move { self.contents().send(session, item) })
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        Box::pin(async move { Ok(self.contents().inbox(session)) })
    }

    fn save_snapshot(
        &self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.contents().save_snapshot(session, fence, position, bytes) })
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        Box::pin(async move { Ok(self.contents().snapshots.get(&session).cloned()) })
    }

    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        Box::pin(async move { self.contents().redact(&redaction) })
    }

    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        Box::pin(async move { self.contents().remove(&removal) })
    }

    fn query(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        Box::pin(async move { self.contents().page(&query) })
    }

    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.contents().indexed(&query)?.count() as u64) })
    }

    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let contents = self.contents();
            contents.journal(session)?;
            Ok(contents.summaries.get(&session).cloned())
        })
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { Ok(self.contents().unindexed(limit)) })
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { self.contents().put_summary(summary) })
    }
}

impl Objects for MemoryStore {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.contents().object(id)?)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.contents().objects.contains_key(&id))
    }

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.contents().redacted.contains(&id))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.contents();
        formatter
            .debug_struct("MemoryStore")
            .field("sessions", &contents.created.len())
            .field("objects", &contents.objects.len())
            .finish()
    }
}
