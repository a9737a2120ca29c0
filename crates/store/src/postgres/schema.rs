//! Tables and migrations.
//!
//! Migrations are numbered, applied in order and never edited. Each leaves its number and the checksum of its text in the schema. They run in one transaction,
//! under a lock of that transaction, so that programs which open a new store at the same time create it once. A migration keeps the functions that programs of
//! the version before it call: `append_2` does not replace `append_1`.

use backstitch_core::ports::{OpenError, StoreError};

use super::error::{Failure, corrupt};
use super::link::Link;
use super::server::parameters;
use crate::time::now;

struct Migration {
    number: u32,
    sql: &'static str,
}

/// All migrations. None is ever changed or removed.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("schema/0001_store.sql") },
    Migration { number: 2, sql: include_str!("schema/0002_views.sql") },
    Migration { number: 3, sql: include_str!("schema/0003_queue.sql") },
    Migration { number: 4, sql: include_str!("schema/0004_hosts.sql") },
    Migration { number: 5, sql: include_str!("schema/0005_objects.sql") },
];

/// Number of the newest migration.
pub(super) const VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

/// The oldest version of PostgreSQL, as a number.
const OLDEST: i32 = 140_000;

impl Migration {
    fn checksum(&self) -> String {
        blake3::hash(self.sql.as_bytes()).to_hex().to_string()
    }
}

/// Creates or migrates the tables.
pub(super) fn migrate(link: &Link<'_>) -> Result<(), OpenError> {
    check_server(link)?;
    // Most openings find nothing to do, and take no lock.
    if version(link)? == VERSION {
        return Ok(());
    }
    link.transact(|| {
        // Operators and functions of views are found now, and not in schemas of others.
        link.batch("SET LOCAL search_path = pg_catalog, pg_temp")?;
        let lock = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, 0))";
        link.query(lock, parameters![format!("backstitch migrations of {}", link.names().schema()) => TEXT])?;
        let found = version(link)?;
        if found == 0 {
            create_schema(link)?;
        }
        for migration in MIGRATIONS.iter().filter(|migration| migration.number > found) {
            link.batch(&link.names().fill(migration.sql))?;
            let sql = "INSERT INTO {schema}.migrations (number, checksum, at) VALUES ($1, $2, $3)";
            let number = i64::from(migration.number);
            let values = parameters![number => INT8, migration.checksum() => TEXT, now().to_string() => TEXT];
            link.query(sql, values)?;
        }
        Ok(())
    })
}

fn create_schema(link: &Link<'_>) -> Result<(), Failure> {
    let found = link.query(
        "SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1",
        parameters![link.names().schema() => TEXT],
    )?;
    if found.is_empty() {
        link.batch(&link.names().fill("CREATE SCHEMA {schema}"))?;
    }
    let sql = "CREATE TABLE {schema}.migrations (number bigint PRIMARY KEY, checksum text NOT NULL, at text NOT NULL)";
    link.batch(&link.names().fill(sql))
}

/// Checks that the store can be read by this program.
pub(super) fn check(link: &Link<'_>) -> Result<(), OpenError> {
    check_server(link)?;
    match version(link)? {
        0 => Err(OpenError::NotFound { path: format!("schema {}", link.names().schema()).into() }),
        found if found < VERSION => Err(OpenError::Older { found, known: VERSION }),
        _ => Ok(()),
    }
}

fn check_server(link: &Link<'_>) -> Result<(), OpenError> {
    let rows = link.query(
        "SELECT pg_catalog.current_setting('server_version_num')::integer, pg_catalog.current_setting('server_version'),
            pg_catalog.current_setting('transaction_isolation')",
        &[],
    )?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("the server has no version".into()))?;
    let (number, name): (i32, String) = (get(row, 0)?, get(row, 1)?);
    if number < OLDEST {
        let reason = format!("the server has version {name} of PostgreSQL, and 14 is the oldest that works");
        return Err(StoreError::Denied { reason }.into());
    }
    let isolation: String = get(row, 2)?;
    if isolation != "read committed" {
        let reason = format!(
            "the isolation level is `{isolation}`, and the store needs `read committed`: set default_transaction_isolation for its user"
        );
        return Err(StoreError::Denied { reason }.into());
    }
    Ok(())
}

/// Returns the version of the tables, or 0 if there are none. Fails if another program wrote or changed them.
fn version(link: &Link<'_>) -> Result<u32, OpenError> {
    // A look into the catalog itself: `to_regclass` may still answer what was true before this transaction waited for its lock.
    let sql = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'migrations'";
    if link.query(sql, parameters![link.names().schema() => TEXT])?.is_empty() {
        return Ok(0);
    }
    let mut latest = 0;
    for row in link.query("SELECT number, checksum FROM {schema}.migrations ORDER BY number", &[])? {
        let (number, checksum): (i64, String) = (get(&row, 0)?, get(&row, 1)?);
        let number = u32::try_from(number).map_err(|_| corrupt("a migration has an invalid number"))?;
        latest = number;
        match MIGRATIONS.iter().find(|migration| migration.number == number) {
            Some(known) if known.checksum() != checksum => {
                return Err(OpenError::ChangedMigration { number });
            }
            _ => {}
        }
    }
    match latest {
        found if found > VERSION => Err(OpenError::Newer { found, known: VERSION }),
        found => Ok(found),
    }
}

/// Reads a column.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a tokio_postgres::Row,
    index: usize,
) -> Result<T, Failure> {
    // Only damage explains a column of another type.
    row.try_get(index).map_err(|error| StoreError::Corrupt { source: error.into() }.into())
}
