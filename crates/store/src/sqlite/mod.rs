//! A store in one SQLite file.
//!
//! The file holds sessions, records, objects, snapshots, claims and inboxes. It can be read with ordinary SQL
//! (`docs/storage.md`). Acknowledged writes are durable: each commit is synced before it is acknowledged
//! (write-ahead log, `synchronous = FULL`). Other processes may read and write the same file at any time; of
//! two that append to one session at the same position, exactly one succeeds.
//!
//! | module | responsibility |
//! |---|---|
//! | `open`, `schema`, `options`, `private` | create and migrate the file |
//! | `writer`, `slot`, `watch` | group commit, only to files that are still in place |
//! | `admin` | the second port |
//! | `append`, `read`, `chain` | journals and their checksums |
//! | `objects`, `snapshots`, `inbox` | all other data |
//! | `leases` | claims to sessions, and liveness of their holders |
//! | `index`, `query` | summaries of sessions, and queries over them |
//! | `select` | read-only SQL of people over documented views |
//! | `reach`, `retention`, `gc`, `size` | garbage collection and disk usage |
//! | `redact`, `redactions`, `remove`, `expiry`, `erase` | deletion of values and of sessions |
//! | `verify`, `salvage` | detection of damage, and recovery from it |
//! | `backup`, `bundle`, `new_file` | copies of the store, and sessions that are moved to other stores |
//! | `unfinished` | what killed processes have left of them |
//!
//! Reads, and the commit of a leader (see `writer`), block the thread that polls the future, for as long as
//! the disk takes.

mod admin;
mod append;
mod backup;
mod bundle;
mod chain;
mod contents;
mod counters;
mod erase;
mod error;
mod expiry;
mod gc;
mod inbox;
mod index;
mod leases;
mod mark;
mod new_file;
mod objects;
mod open;
mod options;
mod padded;
mod presence;
mod private;
mod query;
mod reach;
mod read;
mod readers;
mod redact;
mod redactions;
mod remove;
mod retention;
mod row;
mod salvage;
mod schema;
mod select;
mod size;
mod slot;
mod snapshots;
mod unfinished;
mod verify;
mod watch;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ClaimMode, FenceToken, Objects, OpenError, Owner, Redaction, RedactionReport, Removal,
    RemovalReport, SavedSnapshot, SessionClaim, SessionPage, SessionQuery, Store, StoreError, StoredMark,
};
use backstitch_core::session::BoxError;
use backstitch_core::time::Timestamp;

pub use bundle::Bundle;
pub use counters::Counters;
pub use options::SqliteOptions;

use leases::Locks;
use objects::{Packer, Presence};
use readers::Readers;
use writer::Writer;

/// A [`Store`] in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    // Dropped before the writer. The writer is then the last connection, and closing it copies the log into
    // the file.
    readers: Readers,
    /// `None` in a read-only store.
    writer: Option<Writer>,
    locks: Arc<Locks>,
    packer: Packer,
    options: SqliteOptions,
}

impl SqliteStore {
    /// Opens the store at a path, and creates it if it does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens the store at a path with these options, and creates it if it does not exist.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = absolute(path.as_ref())?;
        let locks = Locks::beside(&path);
        let (connection, files) = open::for_writing(&path, &locks, &options)?;
        let files = Arc::new(files);
        let readers = Readers::new(path.clone(), Some(Arc::clone(&files)));
        let writer = Writer::new(connection, files, &options)?;
        Ok(Self::over(path, readers, Some(writer), locks, options))
    }

    /// Opens an existing store for reading. Nothing is changed, and every write is refused. An empty file,
    /// which an unfinished creation leaves, counts as an empty store.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = absolute(path.as_ref())?;
        drop(open::read_only(&path)?);
        let locks = Locks::beside(&path);
        let readers = Readers::new(path.clone(), None);
        Ok(Self::over(path, readers, None, locks, SqliteOptions::default()))
    }

    /// Names a store that may be damaged, or have an older version, without opening it. It serves
    /// [`StoreAdmin::backup`](backstitch_core::ports::StoreAdmin::backup) and
    /// [`StoreAdmin::salvage`](backstitch_core::ports::StoreAdmin::salvage); everything else opens it for reading first, and fails if
    /// that is not possible.
    pub fn for_rescue(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = absolute(path.as_ref())?;
        let (locks, readers) = (Locks::beside(&path), Readers::new(path.clone(), None));
        Ok(Self::over(path, readers, None, locks, SqliteOptions::default()))
    }

    fn over(
        path: PathBuf,
        readers: Readers,
        writer: Option<Writer>,
        locks: Locks,
        options: SqliteOptions,
    ) -> Self {
        Self { path, readers, writer, locks: Arc::new(locks), packer: Packer::default(), options }
    }

    /// Absolute path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts of operations since the store was opened in this process.
    pub fn counters(&self) -> Counters {
        self.writer.as_ref().map(|writer| writer.counting().read()).unwrap_or_default()
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(error::read_only)
    }

    /// Names the store's own limit in a `Full` error, if that was the limit reached.
    fn explain(&self, error: StoreError) -> StoreError {
        let is_full = |source: &BoxError| {
            let error = source.downcast_ref::<rusqlite::Error>();
            error.and_then(rusqlite::Error::sqlite_error_code) == Some(rusqlite::ErrorCode::DiskFull)
        };
        match (error, self.options.max_bytes) {
            (StoreError::Full { source: Some(source), .. }, Some(most)) if is_full(&source) => {
                let reason = format!(
                    "its file has reached the limit of {most} bytes: collect garbage or raise the limit"
                );
                StoreError::Full { reason, source: Some(source) }
            }
            (error, _) => error,
        }
    }

    async fn append_batch(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> Result<Position, StoreError> {
        let writer = self.writer()?;
        let generation = self.locks.generation(session, fence);
        let prepared = append::PreparedBatch::new(&self.packer, session, expected, fence, batch, generation)?
            .divided(self.options.transaction_bytes);
        let prepared = Arc::new(prepared);
        for part in prepared.parts_ahead() {
            let (part, prepared) = (part.clone(), Arc::clone(&prepared));
            let bytes = prepared.bytes_of(&part);
            let write = move |connection: &rusqlite::Connection| prepared.write_ahead(connection, &part);
            writer.submit_bytes(session, bytes, write).await.map_err(|error| self.explain(error))?;
        }
        let bytes = prepared.bytes();
        let write = move |connection: &rusqlite::Connection| prepared.write(connection);
        let appended = writer.submit_bytes(session, bytes, write).await;
        if appended.is_ok() {
            writer.counting().appends.fetch_add(1, Ordering::Relaxed);
        }
        appended.map_err(|error| self.explain(error))
    }
}

/// Makes a path absolute, so that a later change of the working directory does not affect it.
fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

/// Current time, for claims and migrations.
fn now() -> Timestamp {
    timestamp_of(SystemTime::now())
}

/// Converts a time of the system. A clock that was never set may be before 1970.
fn timestamp_of(time: SystemTime) -> Timestamp {
    let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp::UNIX_EPOCH.saturating_add(since),
        Err(before) => {
            Timestamp::from_unix_micros(-micros(before.duration())).unwrap_or(Timestamp::UNIX_EPOCH)
        }
    }
}

impl Store for SqliteStore {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        claim: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        Box::pin(async move {
            let locks = Arc::clone(&self.locks);
            let work = move |connection: &rusqlite::Connection| {
                leases::claim(&locks, connection, session, &owner, claim)
            };
            let (lease, held) =
                self.writer()?.submit(session, work).await.map_err(|error| self.explain(error))?;
            self.locks.keep(&lease, held);
            Ok(lease)
        })
    }

    fn release(&self, lease: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let SessionClaim { session, fence, .. } = lease;
            let released = self
                .writer()?
                .submit(session, move |connection| leases::release(connection, session, fence))
                .await;
            self.locks.let_go(session, fence);
            released.map_err(|error| self.explain(error))
        })
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        Box::pin(
            async move { self.readers.with(|connection| leases::holder(&self.locks, connection, session)) },
        )
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(
            async move { self.readers.with(|connection| leases::is_current(connection, session, fence)) },
        )
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(self.append_batch(session, expected, fence, batch))
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| read::head(connection, session)) })
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| read::read(connection, session, from, limit)) })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { self.readers.with(read::sessions) })
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| objects::get(connection, id)) })
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        Box::pin(async move {
            let letter = inbox::Letter::new(session, &item)?;
            let sent = self.writer()?.submit(session, move |connection| letter.write(connection)).await;
            sent.map_err(|error| self.explain(error))
        })
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| inbox::list(connection, session)) })
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
            let saved = self.writer()?.submit(session, move |connection| snapshot.write(connection)).await;
            saved.map_err(|error| self.explain(error))
        })
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| snapshots::get(connection, session, None)) })
    }

    fn snapshot_until(
        &self,
        session: SessionId,
        cut: Position,
    ) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        Box::pin(
            async move { self.readers.with(|connection| snapshots::get(connection, session, Some(cut))) },
        )
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
        Box::pin(async move { self.readers.with(|connection| index::get(connection, session)) })
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { self.readers.with(|connection| index::unindexed(connection, limit)) })
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let prepared = index::PreparedSummary::new(&summary)?;
            let put =
                self.writer()?.submit(summary.session, move |connection| prepared.put(connection)).await;
            put.map_err(|error| self.explain(error))
        })
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

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        let presence = self.readers.with(|connection| objects::presence(connection, id))?;
        Ok(presence == Presence::Redacted)
    }

    fn mark(&self) -> Result<Option<StoredMark>, BoxError> {
        Ok(Some(self.readers.at_once(mark::now)?))
    }

    fn keeps(&self, mark: &StoredMark) -> Result<bool, BoxError> {
        Ok(self.readers.at_once(|connection| mark::holds(connection, mark))?)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_read() {
        let early = UNIX_EPOCH - Duration::from_secs(60);
        assert_eq!(timestamp_of(early), "1969-12-31T23:59:00Z".parse().unwrap());
    }
}
