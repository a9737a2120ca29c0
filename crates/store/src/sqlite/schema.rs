//! Tables and migrations.
//!
//! Migrations are numbered, applied in order and never edited. Each leaves its number and the checksum of its
//! text in the file, and `user_version` is the number of the last. A file of a later version is refused,
//! because its meaning is not known. A file with other checksums is refused, because it was modified.

use backstitch_core::ports::OpenError;
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::open_error;

/// Identifies the file as a store in SQLite's header field for this: "BSTC".
const APPLICATION_ID: i32 = 0x4253_5443;

struct Migration {
    number: u32,
    name: &'static str,
    sql: &'static str,
}

/// All migrations. One is added when the tables change, or when journals may hold records of a new kind. None
/// is ever changed or removed.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "journals", sql: include_str!("schema/0001_journals.sql") },
    Migration { number: 2, name: "resources", sql: include_str!("schema/0002_resources.sql") },
    Migration { number: 3, name: "requests", sql: include_str!("schema/0003_requests.sql") },
    Migration { number: 4, name: "index", sql: include_str!("schema/0004_index.sql") },
    Migration { number: 5, name: "isolation", sql: include_str!("schema/0005_isolation.sql") },
    Migration { number: 6, name: "changes", sql: include_str!("schema/0006_changes.sql") },
    Migration { number: 7, name: "queue", sql: include_str!("schema/0007_queue.sql") },
];

/// Number of the newest migration.
pub(super) const VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

impl Migration {
    fn checksum(&self) -> String {
        blake3::hash(self.sql.as_bytes()).to_hex().to_string()
    }
}

/// Schema of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// An empty database.
    Empty,
    /// A store of this version.
    Version(u32),
}

/// Determines a file's schema without changing it. Fails for files that are not a known version of a store.
pub(super) fn inspect(connection: &Connection) -> Result<SchemaState, OpenError> {
    if !connection.is_autocommit() {
        return read_state(connection);
    }
    // One snapshot for all queries: another process may be creating the store.
    connection.execute_batch("BEGIN").map_err(open_error)?;
    let found = read_state(connection);
    connection.execute_batch("ROLLBACK").map_err(open_error)?;
    found
}

fn read_state(connection: &Connection) -> Result<SchemaState, OpenError> {
    let pragma = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(open_error)
    };
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(open_error)?;
    match (application, u32::try_from(version)) {
        (0, Ok(0)) if tables == 0 => Ok(SchemaState::Empty),
        (APPLICATION_ID, Ok(found)) if found > VERSION => Err(OpenError::Newer { found, known: VERSION }),
        (APPLICATION_ID, Ok(found)) if found > 0 => {
            check(connection, found)?;
            Ok(SchemaState::Version(found))
        }
        _ => Err(OpenError::NotAStore),
    }
}

/// Compares the checksums of the applied migrations with those of this program.
fn check(connection: &Connection, version: u32) -> Result<(), OpenError> {
    let sql = "SELECT checksum FROM migrations WHERE number = ?1";
    let mut applied = connection.prepare(sql).map_err(open_error)?;
    for migration in MIGRATIONS.iter().take_while(|migration| migration.number <= version) {
        let found = applied.query_row([migration.number], |row| row.get::<_, String>(0)).optional();
        let found = found.map_err(open_error)?;
        if found != Some(migration.checksum()) {
            return Err(OpenError::ChangedMigration { number: migration.number });
        }
    }
    Ok(())
}

/// Lets a connection read an older store by the tables of the newest version, without changing the store: temporary views and
/// tables stand for what it does not have.
pub(super) fn read_as_newest(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT count(*) FROM pragma_table_info('records') WHERE name IN ('kind', 'at')";
    let columns: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if columns == 0 {
        connection.execute_batch(
            "CREATE TEMP VIEW records AS
                SELECT id, checksum, record, NULL AS kind, NULL AS at FROM main.records;
            CREATE TEMP TABLE redactions (record INTEGER PRIMARY KEY, checksum BLOB, at TEXT);
            CREATE TEMP TABLE removals (session TEXT PRIMARY KEY, at TEXT, records INTEGER, number INTEGER);",
        )?;
    }
    Ok(())
}

/// Applies missing migrations up to a version. The caller has begun a transaction.
pub(super) fn migrate(
    connection: &Connection,
    found: SchemaState,
    version: u32,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let from = match found {
        SchemaState::Empty => {
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            connection.execute_batch(
                "CREATE TABLE migrations (
                    number INTEGER PRIMARY KEY,
                    name TEXT NOT NULL,
                    checksum TEXT NOT NULL,
                    applied_at TEXT NOT NULL
                ) STRICT;",
            )?;
            0
        }
        SchemaState::Version(version) => version,
    };
    let missing =
        MIGRATIONS.iter().filter(|migration| migration.number > from && migration.number <= version);
    for migration in missing {
        connection.execute_batch(migration.sql)?;
        connection.execute(
            "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)",
            params![migration.number, migration.name, migration.checksum(), now.to_string()],
        )?;
        connection.pragma_update(None, "user_version", migration.number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_without_gaps() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(migration.number as usize, index + 1);
        }
    }

    /// Stores hold the checksums of released migrations.
    #[test]
    fn migrations_are_never_edited() {
        let checksums: Vec<String> = MIGRATIONS.iter().map(|m| m.checksum()[..16].to_owned()).collect();
        let released = [
            "5078c4362508c7cc",
            "96ea9b4dbcab60d4",
            "bb220a49b7ba4b4d",
            "9ed1500f791d0861",
            "81f1a4758023850d",
            "977e7755577ead88",
            "d59c7c22b9c4c8b0",
        ];
        assert_eq!(checksums, released);
    }
}
