//! Bare PostgreSQL: unnamed INSERTs of the bytes that appends write, each a transaction of its own, and nothing else.

use std::sync::Arc;
use std::time::Instant;

use backstitch_testkit::postgres::{TestServer, USER};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls};

use super::appends::Workload;
use crate::agent::Failed;

const TABLE: &str = "CREATE SCHEMA IF NOT EXISTS bare;
    DROP TABLE IF EXISTS bare.rows;
    CREATE TABLE bare.rows (session bigint, position bigint, record text COLLATE \"C\" NOT NULL, checksum bytea NOT NULL,
        PRIMARY KEY (session, position));";

const INSERT: &str = "INSERT INTO bare.rows SELECT $1, $2 + r.o, r.t, r.c
    FROM unnest($3, $4) WITH ORDINALITY AS r(t, c, o)";

/// A connection that inserts the rows of one session.
pub(super) struct BareWriter {
    client: Client,
    session: i64,
    next: i64,
    turn: usize,
}

impl BareWriter {
    /// Opens connections to an empty table.
    pub(super) async fn open(server: &TestServer, port: u16, count: usize) -> Result<Vec<Self>, Failed> {
        server.sql(TABLE);
        let mut writers = Vec::with_capacity(count);
        for session in (0..).take(count) {
            let mut config = Config::new();
            config.host_path(&server.directory).port(port).user(USER).dbname("postgres");
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            writers.push(Self { client, session, next: 0, turn: 0 });
        }
        Ok(writers)
    }

    /// Inserts until a moment. Returns the number of INSERTs.
    pub(super) async fn work(
        mut self,
        workload: Arc<Workload>,
        end: Instant,
    ) -> Result<(Self, usize), Failed> {
        let mut inserts = 0;
        while Instant::now() < end {
            let texts = workload.texts(self.turn);
            let sums = vec![&[7_u8; 16][..]; texts.len()];
            self.client
                .query_typed(
                    INSERT,
                    &[
                        (&self.session, Type::INT8),
                        (&self.next, Type::INT8),
                        (&texts, Type::TEXT_ARRAY),
                        (&sums, Type::BYTEA_ARRAY),
                    ],
                )
                .await?;
            self.next += i64::try_from(texts.len())?;
            self.turn += 1;
            inserts += 1;
        }
        Ok((self, inserts))
    }
}
