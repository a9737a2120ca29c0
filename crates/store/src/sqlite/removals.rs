//! Notes about removed sessions, and the deletion of their records.

use backstitch_core::id::SessionId;
use backstitch_core::ports::RemovedSession;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::keys::{first_key, last_key};
use super::read::session_in;
use super::sql::{first, rows};

/// Numbers of removed sessions whose records are not deleted yet.
pub(super) fn pending(connection: &Connection) -> Result<Vec<i64>, Failure> {
    let sql = "SELECT number FROM removals WHERE number IS NOT NULL ORDER BY number";
    rows(connection, sql, [], |row| Ok(row.get(0)?))
}

/// Deletes records of a removed session, up to `limit` bytes. Returns whether none is left. The caller has
/// begun a transaction.
pub(super) fn delete_records(connection: &Connection, number: i64, limit: u64) -> Result<bool, Failure> {
    let sql = "SELECT id, octet_length(record) FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut sql = connection.prepare_cached(sql)?;
    let mut rows = sql.query([first_key(number), last_key(number)])?;
    let (mut last, mut bytes) = (None, 0);
    while let Some(row) = rows.next()? {
        last = Some(row.get::<_, i64>(0)?);
        bytes += row.get::<_, i64>(1)?.cast_unsigned();
        if bytes >= limit {
            break;
        }
    }
    drop(rows);
    match last.filter(|_| bytes >= limit) {
        Some(last) => {
            connection
                .execute("DELETE FROM records WHERE id BETWEEN ?1 AND ?2", [first_key(number), last])?;
            Ok(false)
        }
        None => {
            delete_all_records(connection, number)?;
            Ok(true)
        }
    }
}

/// Deletes all records of a removed session. The caller has begun a transaction.
fn delete_all_records(connection: &Connection, number: i64) -> Result<(), Failure> {
    let range = [first_key(number), last_key(number)];
    connection.execute("DELETE FROM records WHERE id BETWEEN ?1 AND ?2", range)?;
    connection.execute("UPDATE removals SET number = NULL WHERE number = ?1", [number])?;
    Ok(())
}

/// Forgets the removal of a session that is created again. The caller has begun a transaction.
pub(super) fn forget(connection: &Connection, name: &str) -> Result<(), Failure> {
    let sql = "DELETE FROM removals WHERE session = ?1 RETURNING number";
    let pending: Option<Option<i64>> = first(connection, sql, [name], |row| row.get(0))?;
    match pending.flatten() {
        Some(number) => delete_all_records(connection, number),
        None => Ok(()),
    }
}

/// Time at which a session was removed.
pub(super) fn removed_at(connection: &Connection, session: SessionId) -> Result<Option<String>, Failure> {
    let sql = "SELECT at FROM removals WHERE session = ?1";
    first(connection, sql, [session.to_string()], |row| row.get(0))
}

/// All removed sessions with their numbers of records.
pub(super) fn all(connection: &Connection) -> Result<Vec<RemovedSession>, Failure> {
    rows(connection, "SELECT session, records FROM removals ORDER BY at, session", [], |row| {
        let session = session_in(row.get_ref(0)?)?;
        Ok(RemovedSession { session, records: row.get::<_, i64>(1)?.cast_unsigned() })
    })
}

/// Copies the notes of removed sessions to another store.
pub(super) fn copy_notes(old: &Connection, new: &Connection) -> Result<(), Failure> {
    let mut sql = old.prepare("SELECT session, at, records FROM removals")?;
    let mut rows = sql.query([])?;
    while let Some(row) = rows.next()? {
        let (session, at, records): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let sql = "INSERT OR REPLACE INTO removals (session, at, records) VALUES (?1, ?2, ?3)";
        new.execute(sql, params![session, at, records])?;
    }
    Ok(())
}
