//! The first port: what sessions need of the store, and its objects.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ChangingSessions, ClaimMode, FenceToken, ListedChanges, ObjectFacts, Objects, Owner,
    Redaction, RedactionReport, Removal, RemovalReport, SavedSnapshot, SessionClaim, SessionPage,
    SessionQuery, Store, StoreError, StoredMark,
};
use backstitch_core::session::BoxError;
use rusqlite::Connection;

use super::error::Failure;
use super::objects::Presence;
use super::store::SqliteStore;
use super::writer::CommitSync;
use super::{append, changes, claims, inbox, index, mark, objects, query, read, snapshots};

impl SqliteStore {
    fn read_with<'a, T: 'a>(
        &'a self,
        read: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { self.readers.with(read) })
    }

    /// Writes about so many bytes with the next group commit.
    pub(super) async fn write_with<T: Send + 'static>(
        &self,
        session: SessionId,
        bytes: u64,
        write: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_synced(session, bytes, CommitSync::Now, write).await
    }

    async fn write_synced<T: Send + 'static>(
        &self,
        session: SessionId,
        bytes: u64,
        sync: CommitSync,
        write: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer()?.submit(session, bytes, sync, write).await.map_err(|error| self.explain(error))
    }

    async fn append_batch(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
        sync: CommitSync,
    ) -> Result<Position, StoreError> {
        let writer = self.writer()?;
        let generation = self.locks.generation(session, fence);
        let prepared = append::PreparedBatch::new(&self.packer, session, expected, fence, batch, generation)?
            .divided(self.options.transaction_bytes);
        let prepared = Arc::new(prepared);
        for part in prepared.parts_ahead() {
            let (part, prepared) = (part.clone(), Arc::clone(&prepared));
            let bytes = prepared.bytes_of(&part);
            self.write_with(session, bytes, move |connection| prepared.write_ahead(connection, &part))
                .await?;
        }
        let bytes = prepared.bytes();
        let write = move |connection: &Connection| prepared.write(connection);
        let appended = self.write_synced(session, bytes, sync, write).await?;
        writer.counters().appends += 1;
        Ok(appended)
    }
}

impl Store for SqliteStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        Box::pin(async move {
            let locks = Arc::clone(&self.locks);
            let work =
                move |connection: &Connection| claims::claim(&locks, connection, session, &owner, mode);
            let (claim, held) = self.write_with(session, 0, work).await?;
            self.locks.keep(&claim, held);
            Ok(claim)
        })
    }

    fn release(&self, claim: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let SessionClaim { session, fence, .. } = claim;
            let work = move |connection: &Connection| claims::release(connection, session, fence);
            let released = self.write_with(session, 0, work).await;
            self.locks.let_go(session, fence);
            released
        })
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        self.read_with(move |connection| claims::holder(&self.locks, connection, session))
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.read_with(move |connection| claims::is_current(connection, session, fence))
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(self.append_batch(session, expected, fence, batch, CommitSync::Now))
    }

    fn append_unsynced(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(self.append_batch(session, expected, fence, batch, CommitSync::WithNext))
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.read_with(move |connection| read::head(connection, session))
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.read_with(move |connection| read::read(connection, session, from, limit))
    }

    fn notes(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.read_with(move |connection| read::notes(connection, session))
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.read_with(read::sessions)
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        self.read_with(move |connection| objects::get(connection, id))
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        Box::pin(async move {
            let letter = inbox::Letter::new(session, &item)?;
            self.write_with(session, 0, move |connection| letter.write(connection)).await
        })
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        self.read_with(move |connection| inbox::list(connection, session))
    }

    fn save_snapshot(
        &self,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let snapshot = snapshots::PreparedSnapshot::new(&self.packer, session, fence, position, &bytes)?;
            self.write_with(session, 0, move |connection| snapshot.write(connection)).await
        })
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.read_with(move |connection| snapshots::get(connection, session, None))
    }

    fn snapshot_until(
        &self,
        session: SessionId,
        cut: Position,
    ) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.read_with(move |connection| snapshots::get(connection, session, Some(cut)))
    }

    fn redact(&self, redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        Box::pin(async move { self.redact_value(redaction).await.map_err(|error| self.explain(error)) })
    }

    fn remove(&self, removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        Box::pin(async move { self.remove_sessions(removal).await.map_err(|error| self.explain(error)) })
    }

    fn query(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        Box::pin(
            async move { self.readers.at_once(|connection| query::page(&self.locks, connection, &query)) },
        )
    }

    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(
            async move { self.readers.at_once(|connection| query::count(&self.locks, connection, &query)) },
        )
    }

    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        self.read_with(move |connection| index::get(connection, session))
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.read_with(move |connection| index::unindexed(connection, limit))
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let prepared = index::PreparedSummary::new(&summary)?;
            self.write_with(summary.session, 0, move |connection| prepared.put(connection)).await
        })
    }

    fn changes(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Vec<ListedChanges>>, StoreError>> {
        Box::pin(async move { self.readers.at_once(|connection| changes::of_session(connection, session)) })
    }

    fn put_changes(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let put = move |connection: &Connection| changes::put(connection, session, head, &listed);
            self.write_with(session, 0, put).await
        })
    }

    fn changing_sessions(&self, path: &str) -> BoxFuture<'_, Result<ChangingSessions, StoreError>> {
        let path = path.to_owned();
        Box::pin(async move { self.readers.at_once(|connection| changes::sessions_with(connection, &path)) })
    }
}

impl Objects for SqliteStore {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.readers.with(|connection| objects::get(connection, id))?)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        let presence = self.readers.with(|connection| objects::presence(connection, id))?;
        Ok(presence == Presence::Stored)
    }

    fn length(&self, id: ObjectId) -> Result<Option<u64>, BoxError> {
        let size = self.readers.with(|connection| objects::stored_size(connection, id))?;
        Ok(size.map(|size| size.length))
    }

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        let presence = self.readers.with(|connection| objects::presence(connection, id))?;
        Ok(presence == Presence::Redacted)
    }

    fn get_many(&self, ids: &[ObjectId]) -> Result<Vec<Object>, BoxError> {
        Ok(self.readers.at_once(|connection| objects::get_many(connection, ids))?)
    }

    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        Ok(self.readers.with(|connection| objects::find_many(connection, ids))?)
    }

    fn mark(&self) -> Result<Option<StoredMark>, BoxError> {
        // A mark serves a later process, and a store in memory has none.
        if self.is_in_memory() {
            return Ok(None);
        }
        Ok(Some(self.readers.at_once(mark::now)?))
    }

    fn keeps(&self, mark: &StoredMark) -> Result<bool, BoxError> {
        Ok(self.readers.at_once(|connection| mark::holds(connection, mark))?)
    }
}
