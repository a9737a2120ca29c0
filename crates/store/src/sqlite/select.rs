//! Read-only SQL over documented views of a store.
//!
//! A statement that comes from a person is not trusted. It runs on a connection of its own that was opened for
//! reading; an authorizer refuses everything but reading; time, memory and the number of rows are limited. The
//! views (`views.sql`) belong to the connection, so the file stays as it is.

use std::time::Instant;

use backstitch_core::ports::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue, StoreError};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use super::error::Failure;
use super::open;
use super::store::SqliteStore;

/// The views.
const VIEWS: &str = include_str!("views.sql");

/// How many steps of SQLite's machine lie between two looks at the clock.
const STEPS: i32 = 10_000;

/// Converts a value of a row.
fn value_of(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

/// A value as a parameter of a statement.
struct Parameter<'a>(&'a SqlValue);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Integer(number) => ValueRef::Integer(*number),
            SqlValue::Real(number) => ValueRef::Real(*number),
            SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
            SqlValue::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl SqliteStore {
    /// Executes one statement that reads, over the tables of the store and the views of `docs/query.md`. It blocks
    /// the thread.
    pub fn select(
        &self,
        sql: &str,
        parameters: &[SqlValue],
        limits: SelectLimits,
        sink: &mut dyn RowSink,
    ) -> Result<SelectedRows, SelectError> {
        self.check_file("SQL")?;
        let mut connection = open::read_only(&self.path)?.connection;
        let explain = |error: rusqlite::Error| explained(error, limits);
        prepare(&mut connection, limits).map_err(explain)?;
        let mut statement = connection.prepare(sql).map_err(explain)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        if names.is_empty() || !statement.readonly() {
            return Err(SelectError::Refused { reason: "the statement returns no rows".to_owned() });
        }
        let width = names.len();
        let parameters = rusqlite::params_from_iter(parameters.iter().map(Parameter));
        let mut rows = statement.query(parameters).map_err(explain)?;
        sink.columns(names);
        let mut selected = SelectedRows { rows: 0, is_cut: false };
        while let Some(row) = rows.next().map_err(explain)? {
            if selected.rows == limits.rows {
                selected.is_cut = true;
                break;
            }
            let values: rusqlite::Result<Vec<_>> =
                (0..width).map(|index| row.get_ref(index).map(value_of)).collect();
            selected.rows += 1;
            if !sink.row(values.map_err(explain)?) {
                break;
            }
        }
        Ok(selected)
    }
}

/// Creates the views, and limits what the connection may do.
fn prepare(connection: &mut Connection, limits: SelectLimits) -> rusqlite::Result<()> {
    // The stand-in of a store that is still empty allows no new views otherwise.
    connection.pragma_update(None, "query_only", false)?;
    // Intermediate results stay in memory, which is limited, and fill no disk.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    let memory = i64::try_from(limits.memory).unwrap_or(i64::MAX);
    connection.query_row(&format!("PRAGMA hard_heap_limit = {memory}"), [], |_| Ok(()))?;
    connection.execute_batch(VIEWS)?;
    connection.pragma_update(None, "query_only", true)?;
    let end = Instant::now().checked_add(limits.time);
    connection.progress_handler(STEPS, Some(move || end.is_some_and(|end| Instant::now() >= end)))?;
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))
}

fn explained(error: rusqlite::Error, limits: SelectLimits) -> SelectError {
    use rusqlite::ErrorCode as Sqlite;
    match (error.sqlite_error_code(), &error) {
        (Some(Sqlite::OperationInterrupted), _) => SelectError::TooLong { limit: limits.time },
        (Some(Sqlite::OutOfMemory | Sqlite::TooBig), _) => SelectError::TooLarge { limit: limits.memory },
        (Some(Sqlite::AuthorizationForStatementDenied | Sqlite::ReadOnly), _) => {
            SelectError::Refused { reason: error.to_string() }
        }
        (_, rusqlite::Error::MultipleStatement) => {
            SelectError::Refused { reason: "there is more than one statement".to_owned() }
        }
        (Some(Sqlite::Unknown), _) | (None, _) => SelectError::Invalid { reason: error.to_string() },
        _ => match Failure::from(error).0 {
            StoreError::Backend(error) => SelectError::Invalid { reason: error.to_string() },
            other => SelectError::Store(other),
        },
    }
}
