//! The counter of transactions that removed the content of objects.
//!
//! What was stored at a generation is still stored as long as the counter has not moved.

use rusqlite::Connection;

use super::error::Failure;
use super::sql::execute;

/// Number of transactions so far that removed the content of objects.
pub(super) fn current(connection: &Connection) -> Result<i64, Failure> {
    let sql = "SELECT value FROM counters WHERE name = 'generation'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Records that objects lost their content, in the transaction that removes it.
pub(super) fn increment(connection: &Connection) -> Result<(), Failure> {
    execute(connection, "UPDATE counters SET value = value + 1 WHERE name = 'generation'", [])
}
