//! Read-only SQL over documented views of a store.
//!
//! A statement that comes from a person is not trusted. It runs on a connection of its own that was opened for
//! reading; an authorizer refuses everything but reading; time, memory and the number of rows are limited. The
//! views (`views.sql`) belong to the connection, so the file stays as it is.

use std::time::{Duration, Instant};

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::StoreError;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use super::error::{Failure, OpenError};
use super::{SqliteStore, open};

/// The views.
const VIEWS: &str = include_str!("views.sql");

/// How many steps of SQLite's machine lie between two looks at the clock.
const STEPS: i32 = 10_000;

/// Limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectLimits {
    /// The most rows that are returned.
    pub rows: usize,
    /// The longest time that the statement may run.
    pub time: Duration,
    /// The most memory that SQLite may use, in bytes. It applies to the whole process.
    pub memory: u64,
}

impl Default for SelectLimits {
    fn default() -> Self {
        Self { rows: 10_000, time: Duration::from_secs(10), memory: 512 * 1024 * 1024 }
    }
}

/// A value of a row or of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for SqlValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The end of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedRows {
    /// The number of rows that were returned.
    pub rows: usize,
    /// Whether there were more rows than the limit allows.
    pub is_cut: bool,
}

/// A query failed. The store was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The statement does something other than reading.
    #[error("only statements that read are executed: {reason}")]
    Refused {
        /// What was refused.
        reason: String,
    },
    /// The statement is wrong.
    #[error("the statement is wrong: {reason}")]
    Invalid {
        /// SQLite's message.
        reason: String,
    },
    /// The statement ran too long.
    #[error("the query was stopped after {} seconds", .limit.as_secs_f64())]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// The statement needs more memory than it may use.
    #[error("the query needs more than {} MiB of memory, and was stopped", .limit / (1024 * 1024))]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SelectError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { .. } | Self::Invalid { .. } => ErrorCode::QueryInvalid,
            Self::TooLong { .. } | Self::TooLarge { .. } => ErrorCode::QueryStopped,
            Self::Open(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
}

/// Receives the rows of a query.
pub trait RowSink {
    /// Receives the names of the columns, once and before the rows.
    fn columns(&mut self, names: Vec<String>);
    /// Receives a row. Returns false if no more rows are wanted.
    fn row(&mut self, values: Vec<SqlValue>) -> bool;
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
        let mut connection = open::read_only(&self.path)?.connection;
        let explain = |error: rusqlite::Error| explained(error, limits);
        prepare(&mut connection, limits).map_err(explain)?;
        let mut statement = connection.prepare(sql).map_err(explain)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        if names.is_empty() || !statement.readonly() {
            return Err(SelectError::Refused { reason: "the statement returns no rows".to_owned() });
        }
        let width = names.len();
        let parameters: Vec<&dyn ToSql> = parameters.iter().map(|value| value as &dyn ToSql).collect();
        let mut rows = statement.query(&parameters[..]).map_err(explain)?;
        sink.columns(names);
        let mut selected = SelectedRows { rows: 0, is_cut: false };
        while let Some(row) = rows.next().map_err(explain)? {
            if selected.rows == limits.rows {
                selected.is_cut = true;
                break;
            }
            let values: rusqlite::Result<Vec<_>> =
                (0..width).map(|index| row.get_ref(index).map(SqlValue::from)).collect();
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
