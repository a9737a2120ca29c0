//! A store that counts what is done to it, whose acknowledgements can be delayed or noted, and that can be locked.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, RecordBody, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ChangingSessions, ClaimMode, FenceToken, ListedChanges, Owner, Redaction, RedactionReport,
    Removal, RemovalReport, SavedSnapshot, SessionClaim, SessionPage, SessionQuery, Store, StoreError,
};
use backstitch_store::MemoryStore;
use tokio::sync::watch;

/// Called for each batch that was acknowledged, with its first position.
type OnAppend = Box<dyn Fn(SessionId, Position, &[RecordBody]) + Send + Sync>;

pub(crate) struct CountingStore {
    inner: Arc<dyn Store>,
    /// The store that it counts by default.
    queue: Arc<MemoryStore>,
    appends: AtomicUsize,
    stalls: watch::Sender<bool>,
    stalls_snapshots: watch::Sender<bool>,
    /// The number of appends without a sync, also of those that were refused.
    unsynced: watch::Sender<usize>,
    refuses_unsynced: AtomicBool,
    is_locked_for_append: AtomicBool,
    is_locked_for_query: AtomicBool,
    is_lease_over: AtomicBool,
    /// The first position of each read.
    reads: Mutex<Vec<(SessionId, Position)>>,
    /// The positions of the snapshots that were saved.
    saved: Mutex<Vec<Position>>,
    /// Called by the thread that reads records, before it reads.
    before_read: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Returned in place of any snapshot.
    forged: Mutex<Option<SavedSnapshot>>,
    on_append: Option<OnAppend>,
}

impl Default for CountingStore {
    fn default() -> Self {
        let queue = Arc::new(MemoryStore::new());
        Self {
            inner: queue.clone(),
            queue,
            appends: AtomicUsize::default(),
            stalls: watch::Sender::default(),
            stalls_snapshots: watch::Sender::default(),
            unsynced: watch::Sender::default(),
            refuses_unsynced: AtomicBool::default(),
            is_locked_for_append: AtomicBool::default(),
            is_locked_for_query: AtomicBool::default(),
            is_lease_over: AtomicBool::default(),
            reads: Mutex::default(),
            saved: Mutex::default(),
            before_read: OnceLock::default(),
            forged: Mutex::default(),
            on_append: None,
        }
    }
}

impl CountingStore {
    /// The same over another store, with a function that is called for each batch that was acknowledged.
    pub(crate) fn noting(
        inner: Arc<dyn Store>,
        on_append: impl Fn(SessionId, Position, &[RecordBody]) + Send + Sync + 'static,
    ) -> Self {
        Self { inner, on_append: Some(Box::new(on_append)), ..Self::default() }
    }

    /// Its queue, which nothing counts.
    pub(crate) fn queue(&self) -> Arc<MemoryStore> {
        self.queue.clone()
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// From now on appends are stored, but not acknowledged before [`Self::unstall`].
    pub(crate) fn stall(&self) {
        self.stalls.send_replace(true);
    }

    pub(crate) async fn wait_until_stalled(&self) {
        self.stalls.subscribe().wait_for(|stalls| *stalls).await.unwrap();
    }

    pub(crate) fn unstall(&self) {
        self.stalls.send_replace(false);
    }

    /// Waits for so many appends without a sync.
    pub(crate) async fn wait_for_unsynced(&self, count: usize) {
        self.unsynced.subscribe().wait_for(|unsynced| *unsynced >= count).await.unwrap();
    }

    /// From now on the disk is full for appends without a sync.
    pub(crate) fn refuse_unsynced(&self) {
        self.refuses_unsynced.store(true, Ordering::SeqCst);
    }

    /// The next append finds that another process keeps the store locked.
    pub(crate) fn lock_for_append(&self) {
        self.is_locked_for_append.store(true, Ordering::SeqCst);
    }

    /// The same for the next query.
    pub(crate) fn lock_for_query(&self) {
        self.is_locked_for_query.store(true, Ordering::SeqCst);
    }

    /// From now on its claims may have ended, by the clock of this process.
    pub(crate) fn end_lease(&self) {
        self.is_lease_over.store(true, Ordering::SeqCst);
    }

    /// The lease is renewed after all.
    pub(crate) fn renew_lease(&self) {
        self.is_lease_over.store(false, Ordering::SeqCst);
    }

    /// From now on no snapshot is saved before this is called with `false`.
    pub(crate) fn stall_snapshots(&self, stalls: bool) {
        self.stalls_snapshots.send_replace(stalls);
    }

    /// From now on the thread that reads records calls this first.
    pub(crate) fn before_read(&self, act: impl Fn() + Send + Sync + 'static) {
        assert!(self.before_read.set(Box::new(act)).is_ok(), "it is set once");
    }

    /// Returns the first position of each read since the last time.
    pub(crate) fn take_reads(&self) -> Vec<(SessionId, Position)> {
        std::mem::take(&mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the positions of all snapshots that were saved.
    pub(crate) fn saved(&self) -> Vec<Position> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(
        &self,
        session: SessionId,
        expected: Position,
        appended: &Result<Position, StoreError>,
        bodies: Option<Vec<RecordBody>>,
    ) {
        if let (Some(note), Some(bodies), Ok(_)) = (&self.on_append, bodies, appended) {
            note(session, expected, &bodies);
        }
    }

    /// Returns this snapshot for every session from now on.
    pub(crate) fn forge(&self, position: u64, bytes: Vec<u8>) {
        let forged = SavedSnapshot { position: Position::new(position), bytes };
        *self.forged.lock().unwrap_or_else(PoisonError::into_inner) = Some(forged);
    }
}

fn busy() -> StoreError {
    StoreError::Busy { source: "another process writes".into() }
}

impl Store for CountingStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        self.inner.claim(session, owner, mode)
    }

    fn release(&self, held: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.release(held)
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        self.inner.holder(session)
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.is_current(session, fence)
    }

    fn is_within_lease(&self, session: SessionId, fence: FenceToken) -> bool {
        !self.is_lease_over.load(Ordering::SeqCst) && self.inner.is_within_lease(session, fence)
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        let bodies = self.on_append.is_some().then(|| batch.bodies().to_vec());
        Box::pin(async move {
            if self.is_locked_for_append.swap(false, Ordering::SeqCst) {
                return Err(busy());
            }
            let appended = self.inner.append(session, expected, fence, batch).await;
            self.note(session, expected, &appended, bodies);
            self.stalls.subscribe().wait_for(|stalls| !stalls).await.unwrap();
            appended
        })
    }

    fn append_unsynced(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        let bodies = self.on_append.is_some().then(|| batch.bodies().to_vec());
        Box::pin(async move {
            let appended = match self.refuses_unsynced.load(Ordering::SeqCst) {
                true => Err(StoreError::Full { reason: "no space".to_owned(), source: None }),
                false => self.inner.append_unsynced(session, expected, fence, batch).await,
            };
            self.note(session, expected, &appended, bodies);
            self.unsynced.send_modify(|count| *count += 1);
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
        Box::pin(async move {
            self.reads.lock().unwrap_or_else(PoisonError::into_inner).push((session, from));
            if let Some(act) = self.before_read.get() {
                act();
            }
            self.inner.read(session, from, limit).await
        })
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
        Box::pin(async move {
            self.stalls_snapshots.subscribe().wait_for(|stalls| !stalls).await.unwrap();
            self.inner.save_snapshot(session, fence, position, bytes).await?;
            self.saved.lock().unwrap_or_else(PoisonError::into_inner).push(position);
            Ok(())
        })
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        let forged = self.forged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match forged {
            Some(forged) => Box::pin(async move { Ok(Some(forged)) }),
            None => self.inner.snapshot(session),
        }
    }

    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        self.inner.redact(redaction)
    }

    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        self.inner.remove(removal)
    }

    fn query(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        match self.is_locked_for_query.swap(false, Ordering::SeqCst) {
            true => Box::pin(async { Err(busy()) }),
            false => self.inner.query(query),
        }
    }

    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.count(query)
    }

    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        self.inner.summary(session)
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.inner.unindexed(limit)
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.put_summary(summary)
    }

    fn changes(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Vec<ListedChanges>>, StoreError>> {
        self.inner.changes(session)
    }

    fn put_changes(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.put_changes(session, head, listed)
    }

    fn changing_sessions(&self, path: &str) -> BoxFuture<'_, Result<ChangingSessions, StoreError>> {
        self.inner.changing_sessions(path)
    }
}
