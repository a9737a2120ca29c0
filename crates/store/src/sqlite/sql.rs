//! Statements that are prepared once for each connection, and executed in one call.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::error::Failure;

/// Reads all rows.
pub(super) fn rows<T, All: FromIterator<T>>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
) -> Result<All, Failure> {
    connection.prepare_cached(sql)?.query_and_then(parameters, read)?.collect()
}

/// Reads the first row, if there is one.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, Failure> {
    Ok(connection.prepare_cached(sql)?.query_row(parameters, read).optional()?)
}

/// Executes a statement that returns no rows.
pub(super) fn execute(connection: &Connection, sql: &str, parameters: impl Params) -> Result<(), Failure> {
    connection.prepare_cached(sql)?.execute(parameters)?;
    Ok(())
}
