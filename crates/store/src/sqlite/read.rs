//! Reads records and verifies each against the checksum chain.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::{Damage, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::keys::{end_of, first_key, key_of, last_key, number_of, position_of};
use super::redactions;
use super::row::{RestoredText, RowContext, TEXT_COLUMNS, kind_numbers, text_in};
use super::sql::rows;
use crate::NOTE_KIND;
use crate::chain::Checksum;

/// Number of a session; fails with `NotFound` if there is none.
pub(super) fn existing(connection: &Connection, session: SessionId) -> Result<i64, Failure> {
    Ok(number_of(connection, &session.to_string())?.ok_or(StoreError::NotFound { session })?)
}

/// Position after the last record.
pub(super) fn head(connection: &Connection, session: SessionId) -> Result<Position, Failure> {
    let number = existing(connection, session)?;
    Ok(end_of(connection, session, number)?.0)
}

/// Lists all sessions in the order of creation.
pub(super) fn sessions(connection: &Connection) -> Result<Vec<SessionId>, Failure> {
    rows(connection, "SELECT session FROM sessions ORDER BY id", [], |row| session_in(row.get_ref(0)?))
}

/// Lists all sessions with their numbers.
pub(super) fn numbered_sessions(connection: &Connection) -> Result<Vec<(i64, SessionId)>, Failure> {
    let sql = "SELECT id, session FROM sessions NOT INDEXED ORDER BY id";
    rows(connection, sql, [], |row| Ok((row.get(0)?, session_in(row.get_ref(1)?)?)))
}

/// Numbers of all sessions that have records.
pub(super) fn numbers_with_records(connection: &Connection) -> Result<Vec<i64>, Failure> {
    let mut sql = connection.prepare("SELECT min(id) FROM records WHERE id >= ?1")?;
    let mut found = Vec::new();
    let mut from = i64::MIN;
    while let Some(key) = sql.query_row([from], |row| row.get::<_, Option<i64>>(0))? {
        found.push(key >> 32);
        match ((key >> 32) + 1).checked_mul(1 << 32) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(found)
}

/// Decodes a stored session id.
pub(super) fn session_in(value: ValueRef<'_>) -> Result<SessionId, Failure> {
    let text = value.as_str().ok().and_then(|text| text.parse().ok());
    let unnamed = || StoreError::Corrupt { source: "a session has an invalid id".into() };
    Ok(text.ok_or_else(unnamed)?)
}

/// Reads at most `limit` records, starting at `from`.
pub(super) fn read(
    connection: &Connection,
    session: SessionId,
    from: Position,
    limit: usize,
) -> Result<Vec<Record>, Failure> {
    read_numbered(connection, session, existing(connection, session)?, from, limit)
}

/// The same for a session with a known number.
pub(super) fn read_numbered(
    connection: &Connection,
    session: SessionId,
    number: i64,
    from: Position,
    limit: usize,
) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    restore(connection, session, number, from, limit, |position, text| {
        let record = text.decode(position).map_err(|source| StoreError::BrokenRecord { session, source })?;
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// Reads all notes, each verified against the checksum before it.
pub(super) fn notes(connection: &Connection, session: SessionId) -> Result<Vec<Record>, Failure> {
    let number = existing(connection, session)?;
    // A row without a kind holds a whole text.
    let kinds = kind_numbers(NOTE_KIND).map(|kind| format!(" OR kind = {kind}")).collect::<String>();
    let sql =
        format!("SELECT id FROM records WHERE id BETWEEN ?1 AND ?2 AND (kind IS NULL{kinds}) ORDER BY id");
    let keys: Vec<i64> =
        rows(connection, &sql, params![first_key(number), last_key(number)], |row| Ok(row.get(0)?))?;
    let mut notes = Vec::new();
    for key in keys {
        let found = read_numbered(connection, session, number, position_of(key), 1)?;
        notes.extend(found.into_iter().filter(|record| record.body.kind() == NOTE_KIND));
    }
    Ok(notes)
}

/// Decodes the text of a record.
pub(super) fn decode(session: SessionId, position: Position, text: &str) -> Result<Record, Failure> {
    Ok(Record::decode(position, text).map_err(|source| StoreError::BrokenRecord { session, source })?)
}

/// Checksum of a record, as it is stored. It covers the record and all records before it.
pub(super) fn checksum_at(
    connection: &Connection,
    session: SessionId,
    number: i64,
    position: Position,
) -> Result<Checksum, Failure> {
    let damaged = |damage| StoreError::Damaged { session, position, damage };
    let mut sql = connection.prepare_cached("SELECT checksum FROM records WHERE id = ?1")?;
    let mut rows = sql.query(params![key_of(number, position)])?;
    let row = rows.next()?.ok_or_else(|| damaged(Damage::Gap))?;
    let stored = row.get_ref(0)?.as_blob().ok().and_then(Checksum::stored);
    Ok(stored.ok_or_else(|| damaged(Damage::Checksum))?)
}

/// Passes the texts of at most `limit` records, starting at `from`, each verified against the chain, or, if it
/// was redacted, against the checksum of its new text.
pub(super) fn texts(
    connection: &Connection,
    session: SessionId,
    number: i64,
    from: Position,
    limit: usize,
    mut each: impl FnMut(Position, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    restore(connection, session, number, from, limit, |position, text| each(position, text.as_str()))
}

/// Does the same with restored texts, which need not be parsed as a whole to be decoded.
fn restore(
    connection: &Connection,
    session: SessionId,
    number: i64,
    from: Position,
    limit: usize,
    mut each: impl FnMut(Position, &RestoredText<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // The record before the first one is read too, because its checksum and its text are needed.
    let (mut next, mut checksum) = match from.number().checked_sub(1) {
        None => (from, Some(Checksum::start(session))),
        Some(before) => (Position::new(before), None),
    };
    let Some(start) = key_of(number, next).filter(|_| limit > 0) else { return Ok(()) };
    let more = limit.saturating_add(usize::from(checksum.is_none()));
    let sql = format!(
        "SELECT id, checksum, {TEXT_COLUMNS} FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3"
    );
    let mut sql = connection.prepare_cached(&sql)?;
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    let mut rows = sql.query(params![start, last_key(number), more])?;
    let name = session.to_string();
    let mut text_before: Option<String> = None;
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        let position = position_of(key);
        let damaged = |position, damage| Failure(StoreError::Damaged { session, position, damage });
        if position != next {
            return Err(damaged(next, Damage::Gap));
        }
        let stored = row.get_ref(1)?.as_blob().ok().and_then(Checksum::stored);
        let stored = stored.ok_or(damaged(position, Damage::Checksum))?;
        let text = text_in(row, 2, RowContext { session: &name, before: text_before.as_deref() })?;
        if let Some(before) = checksum {
            let text = text.as_ref().ok_or(damaged(position, Damage::NotText))?;
            let bytes = text.as_str().as_bytes();
            if before.next(bytes) != stored && !redactions::is_replacement(connection, key, bytes)? {
                return Err(damaged(position, Damage::Checksum));
            }
            each(position, text)?;
        }
        text_before = text.map(|text| text.into_text().into_owned());
        (next, checksum) = (next.next(), Some(stored));
    }
    Ok(())
}
