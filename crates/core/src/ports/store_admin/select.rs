//! SQL that reads. The dialect is the store's; the views of `docs/query.md` have the same names in every store.

use std::time::Duration;

use crate::code::ErrorCode;
use crate::ports::store_admin::OpenError;
use crate::ports::store_error::StoreError;

/// Limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectLimits {
    /// The most rows that are returned.
    pub rows: usize,
    /// The longest time that the statement may run.
    pub time: Duration,
    /// The most memory that the store may use for it, in bytes. It applies to the whole process.
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

/// The end of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedRows {
    /// The number of rows that were returned.
    pub rows: usize,
    /// Whether there were more rows than the limit allows.
    pub is_cut: bool,
}

/// Receives the rows of a query.
pub trait RowSink {
    /// Receives the names of the columns, once and before the rows.
    fn columns(&mut self, names: Vec<String>);
    /// Receives a row. Returns false if no more rows are wanted.
    fn row(&mut self, values: Vec<SqlValue>) -> bool;
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
        /// The message of the database.
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

    /// What to do instead, for something that is not supported.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}
