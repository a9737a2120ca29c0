//! Marks of stored objects.
//!
//! A mark proves to a later process that no object was removed since it was taken. It consists of the generation, which
//! changes whenever content is removed, and of a digest over the latest objects, which detects another store and one
//! that was replaced by an older copy of itself: objects are numbered in the order in which they are stored.

use backstitch_core::digest::Digest;
use backstitch_core::ports::StoredMark;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::generation;

/// How many of the latest objects a mark names.
const NAMED: usize = 64;

/// Returns a mark of what is stored now.
pub(super) fn now(connection: &Connection) -> Result<StoredMark, Failure> {
    let generation = generation::current(connection)?;
    let sql = "SELECT coalesce(max(number), 0) FROM objects";
    let latest: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    up_to(connection, generation, latest)
}

/// Returns whether everything that was stored at a mark still is.
pub(super) fn holds(connection: &Connection, mark: &StoredMark) -> Result<bool, Failure> {
    let number = |at: usize| {
        let bytes = mark.as_bytes().get(at..at + 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    };
    let (Some(generation), Some(latest)) = (number(0), number(8)) else { return Ok(false) };
    Ok(generation::current(connection)? == generation && up_to(connection, generation, latest)? == *mark)
}

fn up_to(connection: &Connection, generation: i64, latest: i64) -> Result<StoredMark, Failure> {
    let sql = "SELECT number, id FROM objects WHERE number <= ?1 ORDER BY number DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![latest, NAMED.cast_signed()])?;
    let mut named = Vec::with_capacity(NAMED * 28);
    while let Some(row) = rows.next()? {
        named.extend_from_slice(&row.get::<_, i64>(0)?.to_le_bytes());
        named.extend_from_slice(row.get_ref(1)?.as_blob().unwrap_or_default());
    }
    let mut mark = Vec::with_capacity(48);
    mark.extend_from_slice(&generation.to_le_bytes());
    mark.extend_from_slice(&latest.to_le_bytes());
    mark.extend_from_slice(Digest::of(&named).as_bytes());
    Ok(StoredMark::new(mark))
}
