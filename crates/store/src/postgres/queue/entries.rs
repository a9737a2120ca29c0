//! Entries of the queue, their keys, and items that wake them.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, QueueEntry};
use backstitch_core::ports::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::postgres::error::{Failure, code};
use crate::postgres::inbox::Letter;
use crate::postgres::schema::get;
use crate::postgres::server::{Parameter, parameters};
use crate::postgres::store::SharedStore;
use crate::queue_rows::time_of;

/// An entry as parameters of a function.
pub(in crate::postgres) struct EntryValues {
    agent: String,
    priority: i16,
    due: Option<i64>,
    tags: Vec<String>,
    key: Option<String>,
}

impl EntryValues {
    pub(in crate::postgres) fn new(entry: &QueueEntry) -> Self {
        Self {
            agent: entry.agent.clone(),
            priority: entry.priority,
            due: entry.due.map(|due| due.unix_micros()),
            tags: entry.tags.iter().cloned().collect(),
            key: entry.key.clone(),
        }
    }

    pub(in crate::postgres) fn parameters(&self) -> Vec<Parameter<'_>> {
        parameters![
            self.agent => TEXT, self.priority => INT2, self.due => INT8, self.tags => TEXT_ARRAY, self.key => TEXT
        ]
        .to_vec()
    }

    /// The error of a key that was used, as the server describes it.
    pub(in crate::postgres) fn key_used(&self, failure: &Failure) -> Option<StoreError> {
        let session = failure.detail().parse::<SessionId>().ok();
        let used = self.key.clone().zip(session).filter(|_| failure.code() == Some(code::KEY))?;
        Some(StoreError::KeyUsed { key: used.0, session: used.1 })
    }
}

/// The columns of an entry in a query over `q`, which [`entry_in`] reads.
pub(super) const ENTRY: &str =
    "q.agent, q.priority, (extract(epoch FROM q.due) * 1000000)::bigint, q.tags, q.key";

/// Reads an entry from the columns from `start` on.
pub(super) fn entry_in(row: &Row, start: usize) -> Result<QueueEntry, Failure> {
    let due: Option<i64> = get(row, start + 2)?;
    let tags: Vec<String> = get(row, start + 3)?;
    Ok(QueueEntry {
        agent: get(row, start)?,
        priority: get(row, start + 1)?,
        due: due.map(time_of).transpose()?,
        tags: tags.into_iter().collect(),
        key: get(row, start + 4)?,
    })
}

/// Adds a session that exists. Returns the session, or the one that the key was used for. An answer that was lost is asked for again, and is then the session
/// itself.
pub(super) async fn enqueue(
    shared: &SharedStore,
    session: SessionId,
    entry: QueueEntry,
) -> Result<SessionId, Failure> {
    shared.check_writable()?;
    let entry = EntryValues::new(&entry);
    let mut values = parameters![*session.as_uuid() => UUID].to_vec();
    values.extend(entry.parameters());
    let sql = "SELECT {schema}.enqueue_existing_1($1, $2, $3, $4, $5, $6)";
    match shared.server.read(sql, &values).await {
        Ok(rows) => match rows.first().map(|row| get::<bool>(row, 0)).transpose()? {
            Some(true) => Ok(session),
            _ => Err(StoreError::NotFound { session }.into()),
        },
        Err(failure) => match entry.key_used(&failure) {
            Some(StoreError::KeyUsed { session, .. }) => Ok(session),
            _ => Err(failure),
        },
    }
}

/// The session that was enqueued with a key.
pub(super) async fn find_keyed(shared: &SharedStore, key: &str) -> Result<Option<SessionId>, Failure> {
    let sql = "SELECT s.session FROM {schema}.queue_keys k JOIN {schema}.sessions s ON s.id = k.session WHERE k.key = $1";
    let rows = shared.server.read(sql, parameters![key => TEXT]).await?;
    rows.first().map(|row| Ok(SessionId::from_uuid(get::<Uuid>(row, 0)?))).transpose()
}

/// Adds an item to an inbox, once per word. An answer that was lost is asked for again, and then says that the word was used.
pub(super) async fn deliver(
    shared: &SharedStore,
    session: SessionId,
    once: String,
    item: InboxItem,
) -> Result<bool, Failure> {
    shared.check_writable()?;
    let letter = Letter::new(session, &item)?;
    let sql = "SELECT {schema}.deliver_1($1, $2, $3, $4, $5)";
    let mut values = parameters![*session.as_uuid() => UUID, once => TEXT].to_vec();
    values.extend(letter.parameters());
    let rows = shared.server.read(sql, &values).await?;
    let is_first: Option<bool> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(is_first.ok_or(StoreError::NotFound { session })?)
}

/// Makes a session ready that had failed. Returns whether it had.
pub(super) async fn retry(shared: &SharedStore, session: SessionId) -> Result<bool, Failure> {
    shared.check_writable()?;
    let sql = "SELECT {schema}.retry_1($1)";
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID]).await?;
    let had_failed: Option<bool> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(had_failed.ok_or(StoreError::NotFound { session })?)
}

/// Takes a session out of the queue, unless a worker holds it. Returns whether it was taken out.
pub(super) async fn dequeue(shared: &SharedStore, session: SessionId) -> Result<bool, Failure> {
    shared.check_writable()?;
    // A worker that is taking it has locked its row: then the state is looked at again. The last statement finds sessions that do not exist.
    let sql = "WITH gone AS (DELETE FROM {schema}.queue q USING {schema}.sessions s
            WHERE q.session = s.id AND s.session = $1 AND q.state <> 'held' RETURNING 1)
        SELECT EXISTS (SELECT FROM gone) FROM {schema}.sessions WHERE session = $1 AND created IS NOT NULL";
    let rows = shared.server.query(sql, parameters![*session.as_uuid() => UUID]).await?;
    let was_queued: Option<bool> = rows.first().map(|row| get(row, 0)).transpose()?;
    Ok(was_queued.ok_or(StoreError::NotFound { session })?)
}
