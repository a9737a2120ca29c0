//! Entries of the queue, and their keys.

use std::collections::BTreeSet;

use backstitch_core::id::SessionId;
use backstitch_core::journal::QueueEntry;
use backstitch_core::ports::StoreError;
use rusqlite::{Connection, Row, params};

use crate::queue_rows::time_of;
use crate::sqlite::error::Failure;
use crate::sqlite::keys::number_of;
use crate::sqlite::read::session_in;
use crate::sqlite::sql::{execute, first};
use crate::time::now;

/// The columns of an entry, which [`entry_in`] reads.
pub(super) const ENTRY: &str = "queue.agent, queue.priority, queue.due, queue.tags, queue.key";

/// Reads an entry from the columns from `start` on.
pub(super) fn entry_in(row: &Row<'_>, start: usize) -> Result<QueueEntry, Failure> {
    let priority: i64 = row.get(start + 1)?;
    let due: Option<i64> = row.get(start + 2)?;
    let tags: BTreeSet<String> = tags_in(row, start + 3)?;
    Ok(QueueEntry {
        agent: row.get(start)?,
        priority: i16::try_from(priority).map_err(|_| corrupt("the queue has an invalid priority"))?,
        due: due.map(time_of).transpose()?,
        tags,
        key: row.get(start + 4)?,
    })
}

/// Reads a list of tags.
pub(super) fn tags_in(row: &Row<'_>, column: usize) -> Result<BTreeSet<String>, Failure> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|_| corrupt("the queue has invalid tags"))
}

pub(super) fn corrupt(what: &'static str) -> Failure {
    StoreError::Corrupt { source: what.into() }.into()
}

/// The session that was enqueued with a key.
pub(super) fn keyed(connection: &Connection, key: &str) -> Result<Option<SessionId>, Failure> {
    let sql = "SELECT session FROM queue_keys WHERE key = ?1";
    let mut sql = connection.prepare_cached(sql)?;
    let mut rows = sql.query([key])?;
    rows.next()?.map(|row| session_in(row.get_ref(0)?)).transpose()
}

/// Fails if the key of an entry was used. The caller has begun a write transaction.
pub(in crate::sqlite) fn check_key(connection: &Connection, entry: &QueueEntry) -> Result<(), Failure> {
    let Some(key) = &entry.key else { return Ok(()) };
    match keyed(connection, key)? {
        Some(session) => Err(StoreError::KeyUsed { key: key.clone(), session }.into()),
        None => Ok(()),
    }
}

/// Writes the entry of a session whose key was checked. One that a worker holds is left as it is.
pub(in crate::sqlite) fn put(
    connection: &Connection,
    name: &str,
    number: i64,
    entry: &QueueEntry,
) -> Result<(), Failure> {
    if let Some(key) = &entry.key {
        execute(connection, "INSERT INTO queue_keys (key, session) VALUES (?1, ?2)", params![key, name])?;
    }
    let now = now().unix_micros();
    let due = entry.due.map_or(now, |due| due.unix_micros());
    let state = if due <= now { "ready" } else { "waiting" };
    let tags = serde_json::to_string(&entry.tags).map_err(|error| StoreError::Backend(error.into()))?;
    let sql = "INSERT INTO queue (session, agent, priority, due, tags, key, state, is_begun, attempts)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)
        ON CONFLICT (session) DO UPDATE SET agent = excluded.agent, priority = excluded.priority, due = excluded.due,
            tags = excluded.tags, key = coalesce(excluded.key, key), state = excluded.state, is_begun = 0,
            attempts = 0, reason = NULL
        WHERE queue.state <> 'held'";
    execute(connection, sql, params![number, entry.agent, entry.priority, due, tags, entry.key, state])
}

/// Adds a session that exists. Returns the session, or the one that the key was used for.
pub(super) fn enqueue(
    connection: &Connection,
    session: SessionId,
    entry: &QueueEntry,
) -> Result<SessionId, Failure> {
    if let Err(Failure(StoreError::KeyUsed { session, .. })) = check_key(connection, entry) {
        return Ok(session);
    }
    let name = session.to_string();
    let number = number_of(connection, &name)?.ok_or(StoreError::NotFound { session })?;
    put(connection, &name, number, entry)?;
    Ok(session)
}

/// Notes that an item is delivered with a word. Returns whether it is the first one.
pub(super) fn note_delivery(connection: &Connection, number: i64, once: &str) -> Result<bool, Failure> {
    let sql = "INSERT OR IGNORE INTO deliveries (session, once) VALUES (?1, ?2)";
    Ok(connection.prepare_cached(sql)?.execute(params![number, once])? > 0)
}

/// Makes a session ready that had failed. Returns whether it had.
pub(super) fn retry(connection: &Connection, session: SessionId) -> Result<bool, Failure> {
    let Some(number) = number_of(connection, &session.to_string())? else {
        return Err(StoreError::NotFound { session }.into());
    };
    let sql = "UPDATE queue SET state = 'ready', due = ?2, attempts = 0, reason = NULL
        WHERE session = ?1 AND state = 'failed'";
    Ok(connection.prepare_cached(sql)?.execute(params![number, now().unix_micros()])? > 0)
}

/// Takes a session out of the queue, unless a worker holds it. Returns whether it was taken out.
pub(super) fn dequeue(connection: &Connection, session: SessionId) -> Result<bool, Failure> {
    let Some(number) = number_of(connection, &session.to_string())? else {
        return Err(StoreError::NotFound { session }.into());
    };
    let sql = "DELETE FROM queue WHERE session = ?1 AND state <> 'held'";
    Ok(connection.prepare_cached(sql)?.execute([number])? > 0)
}

/// Deletes the reason of a failure, which may repeat what a session said.
pub(in crate::sqlite) fn forget_reason(connection: &Connection, number: i64) -> Result<(), Failure> {
    execute(connection, "UPDATE queue SET reason = NULL WHERE session = ?1", [number])
}

/// Deletes everything that the queue has of a session.
pub(in crate::sqlite) fn forget(connection: &Connection, name: &str, number: i64) -> Result<(), Failure> {
    execute(connection, "DELETE FROM queue WHERE session = ?1", [number])?;
    execute(connection, "DELETE FROM deliveries WHERE session = ?1", [number])?;
    execute(connection, "DELETE FROM queue_keys WHERE session = ?1", [name])
}

/// Copies the queue of a store to another one in which the same sessions have the same numbers, and none is held.
pub(in crate::sqlite) fn copy(old: &Connection, new: &Connection) -> Result<(), Failure> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name = 'queue'";
    if first(old, sql, [], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    let tables = [
        ("queue", "session, agent, priority, due, tags, key, state, is_begun, fence, attempts, reason"),
        ("queue_keys", "key, session"),
        ("deliveries", "session, once"),
        ("limits", "tag, most"),
        ("schedules", "name, cron, request, next, last"),
    ];
    for (table, columns) in tables {
        let mut select = old.prepare(&format!("SELECT {columns} FROM {table}"))?;
        let marks = vec!["?"; columns.split(", ").count()].join(", ");
        let mut insert =
            new.prepare(&format!("INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"))?;
        let count = select.column_count();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<rusqlite::types::Value> =
                (0..count).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            insert.execute(rusqlite::params_from_iter(values))?;
        }
    }
    new.execute_batch(
        "DELETE FROM queue WHERE session NOT IN (SELECT id FROM sessions);
        DELETE FROM deliveries WHERE session NOT IN (SELECT id FROM sessions);
        DELETE FROM queue_keys WHERE session NOT IN (SELECT session FROM sessions);
        UPDATE queue SET state = 'ready', fence = NULL WHERE state = 'held';",
    )?;
    Ok(())
}
