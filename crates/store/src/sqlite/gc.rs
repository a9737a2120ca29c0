//! Collecting what nobody can reach any more.

use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::error::failed;

/// How often garbage was collected.
pub(super) fn generation(connection: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT value FROM counters WHERE name = 'generation'";
    connection.prepare_cached(sql).and_then(|mut sql| sql.query_row([], |row| row.get(0))).map_err(failed)
}
