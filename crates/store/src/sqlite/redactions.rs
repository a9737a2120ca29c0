//! Records whose text was replaced.
//!
//! The checksum of such a record stays, as the link between its neighbours in the chain, but no longer
//! matches the text. A row of `redactions` holds the checksum of the new text alone, and readers check the
//! record by that.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record, RecordBody, RecordsRedacted};
use backstitch_core::ports::StoreError;
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::keys::{MOST_RECORDS, end_of, first_key, key_of, last_key, position_of};
use super::row::{RecordRow, RowContext, detach_next};
use super::sql::{execute, first, rows};
use crate::chain::Checksum;

/// Returns whether a text is the replacement of the record with this key.
pub(super) fn is_replacement(connection: &Connection, key: i64, text: &[u8]) -> Result<bool, Failure> {
    let sql = "SELECT checksum FROM redactions WHERE record = ?1";
    let stored: Option<Vec<u8>> = first(connection, sql, [key], |row| row.get(0))?;
    Ok(stored.is_some_and(|stored| Checksum::stored(&stored) == Some(Checksum::alone(text))))
}

/// Replaces the text of a record. The caller has begun a transaction.
pub(super) fn replace(
    connection: &Connection,
    (number, session): (i64, SessionId),
    position: Position,
    text: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    let Some(key) = key_of(number, position) else { return Ok(()) };
    let session = session.to_string();
    // The next row may hold only what does not follow from the old text.
    detach_next(connection, &session, key)?;
    RecordRow::of(text, RowContext { session: &session, before: None }).replace(connection, key)?;
    note(connection, key, text, at)
}

/// Notes that the text of a record is a replacement.
fn note(connection: &Connection, key: i64, text: &str, at: Timestamp) -> Result<(), Failure> {
    let sql = "INSERT OR REPLACE INTO redactions (record, checksum, at) VALUES (?1, ?2, ?3)";
    let checksum = Checksum::alone(text.as_bytes());
    execute(connection, sql, params![key, checksum.as_bytes(), at.to_string()])
}

/// Copies the note of a record to another store, if there is one.
pub(super) fn copy_note(
    (old, old_key): (&Connection, i64),
    (new, new_key): (&Connection, i64),
    text: &str,
) -> Result<(), Failure> {
    let sql = "SELECT at FROM redactions WHERE record = ?1";
    let at: Option<String> = first(old, sql, [old_key], |row| row.get(0))?;
    match at.and_then(|at| at.parse().ok()) {
        Some(at) => note(new, new_key, text, at),
        None => Ok(()),
    }
}

/// Positions of the replaced records of a session.
pub(super) fn positions(connection: &Connection, number: i64) -> Result<Vec<Position>, Failure> {
    let sql = "SELECT record FROM redactions WHERE record BETWEEN ?1 AND ?2 ORDER BY record";
    rows(connection, sql, [first_key(number), last_key(number)], |row| Ok(position_of(row.get(0)?)))
}

/// Deletes the notes about a session's records.
pub(super) fn delete(connection: &Connection, number: i64) -> Result<(), Failure> {
    let sql = "DELETE FROM redactions WHERE record BETWEEN ?1 AND ?2";
    execute(connection, sql, [first_key(number), last_key(number)])
}

/// Number of notes about records that do not exist.
pub(super) fn strays(connection: &Connection) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM redactions WHERE record NOT IN (SELECT id FROM records)";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Appends the record of a redaction. The caller holds the session and has begun a transaction.
pub(super) fn append(
    connection: &Connection,
    session: SessionId,
    number: i64,
    redacted: RecordsRedacted,
    at: Timestamp,
) -> Result<(), Failure> {
    let (position, before) = end_of(connection, session, number)?;
    let record = Record::new(position, at, RecordBody::from(redacted));
    let text = record.encode().map_err(|source| StoreError::Unstorable { session, position, source })?;
    let limit = MOST_RECORDS;
    let full = || {
        let what = format!("the journal of session {session}, in records,");
        StoreError::TooLarge { what, bytes: position.number(), limit }
    };
    let key = key_of(number, position).ok_or_else(full)?;
    let context = RowContext { session: &session.to_string(), before: None };
    RecordRow::of(&text, context).insert(connection, key, before.next(text.as_bytes()))
}
