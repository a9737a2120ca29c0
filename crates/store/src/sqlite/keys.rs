//! Numbers of sessions, keys of records, and the end of a journal.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{Damage, StoreError};
use rusqlite::Connection;

use super::error::Failure;
use super::sql::first;
use crate::chain::Checksum;

/// Maximum number of records of a session. A record's key holds its position in the low 32 bits and the
/// session's number above them.
pub(super) const MOST_RECORDS: u64 = 1 << 32;

/// Key of a session's first record.
pub(super) fn first_key(session: i64) -> i64 {
    session << 32
}

/// Largest key that a record of the session can have.
pub(super) fn last_key(session: i64) -> i64 {
    first_key(session) | (MOST_RECORDS.cast_signed() - 1)
}

/// Key of a record, or `None` if the position exceeds [`MOST_RECORDS`].
pub(super) fn key_of(session: i64, position: Position) -> Option<i64> {
    let position = u32::try_from(position.number()).ok()?;
    Some(first_key(session) | i64::from(position))
}

/// Position that is encoded in a record's key.
pub(super) fn position_of(key: i64) -> Position {
    Position::new((key & (MOST_RECORDS.cast_signed() - 1)).cast_unsigned())
}

/// Number of a session, or `None` if it does not exist.
pub(super) fn number_of(connection: &Connection, name: &str) -> Result<Option<i64>, Failure> {
    first(connection, "SELECT id FROM sessions WHERE session = ?1", [name], |row| row.get(0))
}

/// Position after the last record, and the checksum of that record.
pub(super) fn end_of(
    connection: &Connection,
    session: SessionId,
    number: i64,
) -> Result<(Position, Checksum), Failure> {
    let sql = "SELECT id, checksum FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let mut sql = connection.prepare_cached(sql)?;
    let mut rows = sql.query([first_key(number), last_key(number)])?;
    let Some(row) = rows.next()? else {
        return Ok((Position::START, Checksum::start(session)));
    };
    let position = position_of(row.get(0)?);
    let checksum = row.get_ref(1)?;
    let checksum = checksum.as_blob().ok().and_then(Checksum::stored);
    let damage = Damage::Checksum;
    let checksum = checksum.ok_or(StoreError::Damaged { session, position, damage })?;
    Ok((position.next(), checksum))
}
