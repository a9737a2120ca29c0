//! Connections to a server.
//!
//! Statements have no names: through a pooler, another program's statement of the same name would be executed. They are sent with the types of their
//! parameters, in one round trip. A statement that takes too long has its connection closed, and is never cancelled: a commit that waits for a standby and is cancelled
//! stays committed on this server alone.

use backstitch_core::ports::StoreError;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::address::PostgresAddress;
use super::error::Failure;
use super::options::PostgresOptions;
use super::tls;

/// A parameter of a statement.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Parameters of a statement with their types.
macro_rules! parameters {
    ($($value:expr => $type:ident),* $(,)?) => {
        &[$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$type)),*]
    };
}

pub(super) use parameters;

/// Names of a store in its database.
#[derive(Debug, Clone)]
pub(super) struct Names {
    schema: String,
}

impl Names {
    /// Fills the names into a statement: `{schema}`, `{views}` and `{reader}`, each quoted.
    pub(super) fn fill(&self, sql: &str) -> String {
        let schema = &self.schema;
        sql.replace("{schema}", &format!("\"{schema}\""))
            .replace("{views}", &format!("\"{schema}_views\""))
            .replace("{reader}", &format!("\"{schema}_reader\""))
    }

    /// The name of the schema itself.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of the schema of the views.
    pub(super) fn views(&self) -> String {
        format!("{}_views", self.schema)
    }

    /// The name of the role that reads the views.
    pub(super) fn reader(&self) -> String {
        format!("{}_reader", self.schema)
    }
}

/// A server with its connections.
pub(super) struct Server {
    pool: Pool,
    pub(super) names: Names,
    pub(super) options: PostgresOptions,
}

impl Server {
    /// Prepares connections. None is opened yet.
    pub(super) fn new(
        address: &PostgresAddress,
        options: PostgresOptions,
        is_for_writing: bool,
    ) -> Result<Self, StoreError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let tls = tls::connector(address.encryption())?;
        let manager = Manager::from_config(address.config(is_for_writing), tls, config);
        let pool = Pool::builder(manager)
            .max_size(options.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.deadline))
            .create_timeout(Some(options.deadline))
            .build()
            .map_err(|error| StoreError::Backend(error.into()))?;
        Ok(Self { pool, names: Names { schema: address.schema().to_owned() }, options })
    }

    /// Takes a connection that is free, or opens one.
    pub(super) async fn connection(&self) -> Result<Object, Failure> {
        match self.pool.get().await {
            Ok(connection) => Ok(connection),
            Err(PoolError::Backend(error)) => Err(error.into()),
            Err(PoolError::Timeout(_)) => {
                Err(Failure::Late("no connection was free, or could be opened, in time"))
            }
            Err(other) => Err(StoreError::Backend(other.into()).into()),
        }
    }

    /// Executes one statement, which is a transaction of its own.
    pub(super) async fn query(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        let connection = self.connection().await?;
        let sql = self.names.fill(sql);
        let answer = timeout(self.options.deadline, connection.query_typed(&sql, parameters)).await;
        answered(answer, connection)
    }

    /// Executes a statement that can be repeated, until the server answers.
    pub(super) async fn read(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        super::retry::repeat(self.options.deadline, || self.query(sql, parameters)).await
    }
}

/// Returns what a statement returned. A connection that broke, or did not answer in time, is closed.
pub(super) fn answered<T>(
    answer: Result<Result<T, tokio_postgres::Error>, tokio::time::error::Elapsed>,
    connection: Object,
) -> Result<T, Failure> {
    let failure = match answer {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => Failure::from(error),
        Err(_) => Failure::Late("the server did not answer in time"),
    };
    if failure.is_outage() {
        drop(Object::take(connection));
    }
    Err(failure)
}
