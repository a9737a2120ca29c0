//! A store that counts its appends, and whose acknowledgements can be delayed.

use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ClaimMode, FenceToken, Owner, Redaction, RedactionReport, Removal, RemovalReport,
    SavedSnapshot, SessionClaim, Store, StoreError,
};
use backstitch_store::MemoryStore;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct CountingStore {
    inner: MemoryStore,
    appends: AtomicUsize,
    stalls: watch::Sender<bool>,
}

impl CountingStore {
    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// From now on appends are stored, but not acknowledged before [`Self::unstall`].
    pub(crate) fn stall(&self) {
        self.stalls.send_replace(true);
    }

    pub(crate) fn unstall(&self) {
        self.stalls.send_replace(false);
    }
}

impl Store for CountingStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        claim: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        self.inner.claim(session, owner, claim)
    }

    fn release(&self, lease: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.release(lease)
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        self.inner.holder(session)
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let appended = self.inner.append(session, expected, fence, batch).await;
            self.stalls.subscribe().wait_for(|stalls| !stalls).await.unwrap();
            appended
        })
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.inner.head(session)
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.inner.read(session, from, limit)
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.inner.sessions()
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        self.inner.object(id)
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        self.inner.send(session, item)
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        self.inner.inbox(session)
    }

    fn save_snapshot(
        &self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.save_snapshot(session, fence, position, bytes)
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.inner.snapshot(session)
    }

    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        self.inner.redact(redaction)
    }

    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        self.inner.remove(removal)
    }
}
