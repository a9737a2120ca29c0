//! The first port: what sessions need of the store.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ChangingSessions, ClaimMode, FenceToken, ListedChanges, Owner, Redaction, RedactionReport,
    Removal, RemovalReport, SavedSnapshot, SessionClaim, SessionPage, SessionQuery, Store, StoreError,
};

use super::append::{CommitSync, append};
use super::store::PostgresStore;
use super::{changes, claims, hint, inbox, index, objects, query, records, snapshots};

impl Store for PostgresStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        self.run(move |shared| async move { claims::claim(&shared, session, owner, mode).await })
    }

    fn release(&self, claim: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(move |shared| async move {
            let session = claim.session;
            claims::release(&shared, claim).await?;
            if shared.hints.take_queued(session) {
                hint::send(&shared);
            }
            Ok(())
        })
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        self.run(move |shared| async move { claims::holder(&shared, session).await })
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(move |shared| async move { claims::is_current(&shared, session, fence).await })
    }

    fn is_within_lease(&self, session: SessionId, fence: FenceToken) -> bool {
        claims::is_within_lease(self.shared(), session, fence)
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.run(move |shared| async move {
            let is_queued = batch.queue_entry().is_some_and(|entry| entry.due.is_none());
            let end = append(&shared, session, expected, fence, batch, CommitSync::Now).await?;
            if is_queued {
                shared.hints.note_queued(session);
            }
            Ok(end)
        })
    }

    fn append_unsynced(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.run(move |shared| async move {
            append(&shared, session, expected, fence, batch, CommitSync::WithNext).await
        })
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.run(move |shared| async move { records::head(&shared, session).await })
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.run(move |shared| async move { records::read(&shared, session, from, limit).await })
    }

    fn notes(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.run(move |shared| async move { records::notes(&shared, session).await })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.run(|shared| async move { records::sessions(&shared).await })
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        self.run(move |shared| async move { objects::read(&shared.server, id).await })
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        self.run_hinting(move |shared| async move { inbox::send(&shared, session, item).await })
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        self.run(move |shared| async move { inbox::list(&shared, session).await })
    }

    fn save_snapshot(
        &self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(
            move |shared| async move { snapshots::save(&shared, session, fence, position, &bytes).await },
        )
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.run(move |shared| async move { snapshots::read(&shared, session, None).await })
    }

    fn snapshot_until(
        &self,
        session: SessionId,
        cut: Position,
    ) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.run(move |shared| async move { snapshots::read(&shared, session, Some(cut)).await })
    }

    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        Box::pin(self.redact_value(redaction))
    }

    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        Box::pin(self.remove_sessions(removal))
    }

    fn query(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        self.run(move |shared| async move { query::page(&shared, &query).await })
    }

    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.run(move |shared| async move { query::count(&shared, &query).await })
    }

    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        self.run(move |shared| async move { index::read(&shared, session).await })
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.run(move |shared| async move { index::list_unindexed(&shared, limit).await })
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(move |shared| async move { index::put(&shared, &summary).await })
    }

    fn changes(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Vec<ListedChanges>>, StoreError>> {
        self.run(move |shared| async move { changes::of_session(&shared, session).await })
    }

    fn put_changes(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(move |shared| async move { changes::put(&shared, session, head, &listed).await })
    }

    fn changing_sessions(&self, path: &str) -> BoxFuture<'_, Result<ChangingSessions, StoreError>> {
        let path = path.to_owned();
        self.run(move |shared| async move { changes::sessions_with(&shared, &path).await })
    }
}
