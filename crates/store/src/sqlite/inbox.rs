//! Inboxes: pending items for sessions.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxId, InboxItem, InboxKind};
use backstitch_core::json::JsonLimits;
use backstitch_core::ports::StoreError;
use backstitch_core::session::BoxError;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::keys::number_of;
use super::sql::{execute, rows};
use crate::time::now;

/// Maximum size of an item in bytes. Larger content belongs in an object.
const MOST: usize = 16 << 20;

/// An encoded inbox item.
pub(super) struct Letter {
    session: SessionId,
    name: String,
    kind: String,
    at: String,
    data: String,
}

impl Letter {
    pub(super) fn new(session: SessionId, item: &InboxItem) -> Result<Self, Failure> {
        item.check().map_err(|source| StoreError::UnstorableItem { session, source })?;
        let data = item.data.to_string();
        if data.len() > MOST {
            let what = "an item for an inbox".to_owned();
            return Err(StoreError::TooLarge { what, bytes: data.len() as u64, limit: MOST as u64 }.into());
        }
        let (kind, at) = (item.kind.as_str().to_owned(), item.at.to_string());
        Ok(Self { session, name: session.to_string(), kind, at, data })
    }

    /// Adds the item to the inbox, and wakes the session if it waits in the queue.
    pub(super) fn write(&self, connection: &Connection) -> Result<InboxId, Failure> {
        let Some(number) = number_of(connection, &self.name)? else {
            return Err(StoreError::NotFound { session: self.session }.into());
        };
        let sql = "INSERT INTO inbox (session, kind, at, data) VALUES (?1, ?2, ?3, ?4)";
        let mut sql = connection.prepare_cached(sql)?;
        let id = sql.insert(params![self.name, self.kind, self.at, self.data])?;
        wake(connection, number)?;
        Ok(InboxId(id.cast_unsigned()))
    }
}

/// Writes items of another store and keeps their ids.
pub(super) fn put(
    connection: &Connection,
    session: SessionId,
    items: &[(InboxId, InboxItem)],
) -> Result<(), Failure> {
    let sql = "INSERT INTO inbox (id, session, kind, at, data) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut sql = connection.prepare_cached(sql)?;
    for (id, item) in items {
        let letter = Letter::new(session, item)?;
        let id = id.0.cast_signed();
        sql.execute(params![id, letter.name, letter.kind, letter.at, letter.data])?;
    }
    Ok(())
}

/// Returns whether an item is pending in a session's inbox.
pub(super) fn waits(connection: &Connection, name: &str, item: InboxId) -> Result<bool, Failure> {
    let Ok(id) = i64::try_from(item.0) else { return Ok(false) };
    let sql = "SELECT 1 FROM inbox WHERE id = ?1 AND session = ?2";
    Ok(connection.prepare_cached(sql)?.exists(params![id, name])?)
}

/// Removes a pending item.
pub(super) fn remove(connection: &Connection, item: InboxId) -> Result<(), Failure> {
    let sql = "DELETE FROM inbox WHERE id = ?1";
    execute(connection, sql, [item.0.cast_signed()])
}

/// Lists the pending items of a session, oldest first.
pub(super) fn list(
    connection: &Connection,
    session: SessionId,
) -> Result<Vec<(InboxId, InboxItem)>, Failure> {
    let sql = "SELECT id, kind, at, data FROM inbox WHERE session = ?1 ORDER BY id";
    rows(connection, sql, [session.to_string()], |row| {
        let text = |index| row.get::<_, String>(index);
        let item = item(&text(1)?, &text(2)?, &text(3)?).map_err(|source| StoreError::Corrupt { source })?;
        Ok((InboxId(row.get::<_, i64>(0)?.cast_unsigned()), item))
    })
}

/// Returns the stored JSON of all items of all sessions.
pub(super) fn texts(connection: &Connection) -> Result<Vec<String>, Failure> {
    rows(connection, "SELECT data FROM inbox ORDER BY id", [], |row| Ok(row.get(0)?))
}

fn item(kind: &str, at: &str, data: &str) -> Result<InboxItem, BoxError> {
    JsonLimits::default().check(data.as_bytes())?;
    Ok(InboxItem { kind: InboxKind::from(kind), at: at.parse()?, data: serde_json::from_str(data)? })
}

/// Makes a session ready that waits. The caller has begun a write transaction, in which it added an item to the inbox.
fn wake(connection: &Connection, number: i64) -> Result<(), Failure> {
    let sql =
        "UPDATE queue SET state = 'ready', due = ?2 WHERE session = ?1 AND state = 'waiting' AND is_begun";
    execute(connection, sql, params![number, now().unix_micros()])
}
