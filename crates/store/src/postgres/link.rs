//! One connection for an operation that looks after the store: it has many steps, and blocks a thread of its own.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::time::Duration;

use backstitch_core::crash_point;
use deadpool_postgres::Object;
use futures_util::TryStreamExt as _;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, SimpleQueryMessage};

use super::error::Failure;
use super::server::{Names, Parameter, Server};

/// A connection whose statements block the thread.
pub(super) struct Link<'a> {
    server: &'a Server,
    handle: &'a Handle,
    connection: RefCell<Option<Object>>,
    /// Whether a transaction has begun and not ended.
    is_open: Cell<bool>,
    /// Whether the connection of the open transaction is gone. What belongs to the transaction must not be executed on another one.
    is_lost: Cell<bool>,
}

impl<'a> Link<'a> {
    /// A link without a connection, which the first statement takes.
    pub(super) fn new(server: &'a Server, handle: &'a Handle) -> Self {
        Self {
            server,
            handle,
            connection: RefCell::new(None),
            is_open: Cell::new(false),
            is_lost: Cell::new(false),
        }
    }

    /// The server.
    pub(super) fn server(&self) -> &Server {
        self.server
    }

    /// Names of the store.
    pub(super) fn names(&self) -> &Names {
        &self.server.names
    }

    /// Waits for a future of the server.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Executes one statement.
    pub(super) fn query(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        self.query_within(self.server.options.long_deadline, &self.server.names.fill(sql), parameters)
    }

    /// Executes one statement as it is, within a time.
    pub(super) fn query_within(
        &self,
        time: Duration,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.run(time, async |connection| connection.query_typed(sql, parameters).await)
    }

    /// Executes one statement as it is, and passes its rows on one by one, until `each` returns false. At most a few of them are in memory.
    pub(super) fn stream(
        &self,
        time: Duration,
        sql: &str,
        mut each: impl FnMut(&Row) -> bool,
    ) -> Result<(), Failure> {
        self.run(time, async |connection| {
            let none: [(&(dyn ToSql + Sync), Type); 0] = [];
            let mut rows = pin!(connection.query_typed_raw(sql, none).await?);
            while let Some(row) = rows.try_next().await? {
                if !each(&row) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Names of the columns that a statement without parameters returns, which are known without rows.
    pub(super) fn columns(&self, time: Duration, sql: &str) -> Result<Vec<String>, Failure> {
        let messages = self.run(time, async |connection| connection.simple_query(sql).await)?;
        let columns = messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::RowDescription(columns) => Some(columns),
            _ => None,
        });
        Ok(columns.iter().flat_map(|columns| columns.iter()).map(|column| column.name().to_owned()).collect())
    }

    /// Executes statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Failure> {
        self.run(self.server.options.long_deadline, async |connection| connection.batch_execute(sql).await)
    }

    fn run<T>(
        &self,
        time: Duration,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        if self.is_lost.get() {
            return Err(Failure::Late("the connection ended in the middle of a transaction"));
        }
        let connection = match self.connection.borrow_mut().take() {
            Some(connection) => connection,
            None => self.handle.block_on(self.server.connection())?,
        };
        let answer = self.handle.block_on(async { timeout(time, work(&connection)).await });
        let failure = match answer {
            Ok(Ok(value)) => {
                *self.connection.borrow_mut() = Some(connection);
                return Ok(value);
            }
            Ok(Err(error)) => Failure::from(error),
            Err(_) => Failure::Late("the server did not answer in time"),
        };
        match failure.is_outage() {
            true => {
                self.is_lost.set(self.is_open.get());
                drop(Object::take(connection));
            }
            false => *self.connection.borrow_mut() = Some(connection),
        }
        Err(failure)
    }

    /// Runs statements in one transaction.
    pub(super) fn transact<T, E: From<Failure>>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        // Each statement has to see what was committed while an earlier one waited for a lock, whatever the default of the server is.
        self.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        self.is_open.set(true);
        let result = run().and_then(|value| {
            crash_point!("store.before_commit");
            self.batch("COMMIT")?;
            crash_point!("store.after_commit");
            self.is_open.set(false);
            Ok(value)
        });
        self.abandon();
        result
    }

    /// Runs statements in a transaction that cannot write, and is rolled back in any case: what they set for the connection ends with it.
    pub(super) fn inspect<T, E: From<Failure>>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.batch("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")?;
        self.is_open.set(true);
        let result = run();
        self.abandon();
        result
    }

    /// Rolls back the transaction, if one is open.
    fn abandon(&self) {
        if self.is_lost.take() {
            // The server rolls back what has no connection any more.
            self.is_open.set(false);
        }
        if self.is_open.get() {
            // The first error is the one to report. A connection that cannot roll back is closed.
            let is_rolled_back = self.batch("ROLLBACK").is_ok();
            self.is_open.set(!is_rolled_back && !self.is_lost.take());
        }
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.borrow_mut().take().filter(|_| self.is_open.get()) {
            drop(Object::take(connection));
        }
    }
}
