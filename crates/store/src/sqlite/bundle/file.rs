//! Bundle files: writing them, and opening them without trust.
//!
//! A bundle is a store of the newest version with one table more, `bundle`, which names the version of that
//! table and the session. It has no write-ahead log and no files beside it.
//!
//! A bundle may come from anywhere. Before anything else is read, its tables are compared with those of a
//! store that this program creates: a file with other tables, views, triggers or indexes is refused, so SQL
//! that a bundle brings is never executed. A bundle of an older version is migrated in a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstitch_core::id::SessionId;
use backstitch_core::ports::{BundleError, OpenError};
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::error::{invalid, of_bundle};
use crate::sqlite::error::Failure;
use crate::sqlite::schema::{self, SchemaState, VERSION};
use crate::sqlite::sql::rows;
use crate::sqlite::unfinished::{self, COPY};
use crate::sqlite::writer::transaction;
use crate::sqlite::{open, private};
use crate::time::now;

/// Version of the table `bundle`.
const BUNDLE_VERSION: i64 = 1;

const TABLE: &str = "CREATE TABLE bundle (
    version INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    at TEXT NOT NULL,
    program TEXT NOT NULL
) STRICT";

/// Creates the tables of a bundle in an empty file, which nothing else uses.
pub(super) fn create(path: &Path, session: SessionId) -> Result<Connection, Failure> {
    let connection = open::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // The file has no name yet: an incomplete one is deleted, and a complete one is synced before it gets its
    // name.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    tables(&connection, SchemaState::Empty, VERSION)?;
    connection.execute_batch(TABLE)?;
    let sql = "INSERT INTO bundle (version, session, at, program) VALUES (?1, ?2, ?3, ?4)";
    let program = env!("CARGO_PKG_VERSION");
    connection.execute(sql, params![BUNDLE_VERSION, session.to_string(), now().to_string(), program])?;
    Ok(connection)
}

fn tables(connection: &Connection, found: SchemaState, version: u32) -> Result<(), Failure> {
    transaction(connection, || Ok(schema::migrate(connection, found, version, now())?))
}

/// A bundle file that can be read as a store.
pub(super) struct BundleFile {
    /// Path of the file, or of its migrated copy.
    pub(super) path: PathBuf,
    pub(super) session: SessionId,
    pub(super) at: Option<Timestamp>,
    /// Size of the file in bytes.
    pub(super) bytes: u64,
    /// Deletes the copy with this value.
    _copy: Option<TemporaryCopy>,
}

/// A copy among the temporary files of the system, which is locked as long as it is used.
pub(super) struct TemporaryCopy(PathBuf, fs::File);

impl TemporaryCopy {
    /// Creates an empty file.
    pub(super) fn new() -> Result<Self, OpenError> {
        unfinished::remove_left_copies();
        let name = std::env::temp_dir().join(COPY);
        let created = unfinished::create_numbered(&name, COPY.as_ref());
        let (name, file) = created.map_err(|source| OpenError::Io { path: name, source })?;
        // Some file systems have no locks. Then the age of the file protects it.
        let _ = file.try_lock();
        Ok(Self(name, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryCopy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl BundleFile {
    /// Opens a bundle, and checks that its tables are those of a store.
    pub(super) fn open(path: &Path) -> Result<Self, BundleError> {
        let failed = |source| OpenError::Io { path: path.to_owned(), source };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::NotFound { path: path.to_owned() }.into());
            }
            found => found.map_err(failed)?,
        };
        if !metadata.is_file() {
            return Err(failed(io::ErrorKind::InvalidInput.into()).into());
        }
        for suffix in ["-wal", "-journal"] {
            if fs::metadata(private::beside(path, suffix)).is_ok_and(|file| file.len() > 0) {
                return Err(invalid("it was changed as a store, and those changes are not complete"));
            }
        }
        let connection = open::immutable(path)?;
        distrust(&connection)?;
        let found = inspect(&connection)?;
        let SchemaState::Version(version) = found else {
            return Err(BundleError::NotABundle { path: path.to_owned() });
        };
        let (session, at) = check_tables(&connection, path, version)?;
        drop(connection);
        let (path, copy) = if version == VERSION {
            (path.to_owned(), None)
        } else {
            let copy = migrate_copy(path, found)?;
            (copy.0.clone(), Some(copy))
        };
        Ok(Self { path, session, at, bytes: metadata.len(), _copy: copy })
    }
}

/// Sets what SQLite recommends for files of unknown origin.
fn distrust(connection: &Connection) -> Result<(), Failure> {
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(())
}

fn inspect(connection: &Connection) -> Result<SchemaState, BundleError> {
    schema::inspect(connection).map_err(|error| match error {
        OpenError::Store(error) => of_bundle(error.into()),
        other => other.into(),
    })
}

/// Compares tables, indexes, views and triggers with those of a store of the same version, and reads the
/// table `bundle`.
fn check_tables(
    connection: &Connection,
    path: &Path,
    version: u32,
) -> Result<(SessionId, Option<Timestamp>), BundleError> {
    let expected = Connection::open_in_memory().map_err(Failure::from)?;
    tables(&expected, SchemaState::Empty, version)?;
    let plain = entries(&expected)?;
    expected.execute_batch(TABLE).map_err(Failure::from)?;
    let found = entries(connection).map_err(|error| of_bundle(error.into()))?;
    if found == plain {
        return Err(BundleError::NotABundle { path: path.to_owned() });
    }
    if found != entries(&expected)? {
        return Err(invalid("its tables are not those of a bundle"));
    }
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    };
    let sql = "SELECT version, session, at FROM bundle ORDER BY version DESC LIMIT 1";
    let entry = connection.query_row(sql, [], row).optional();
    let entry = entry.map_err(|error| of_bundle(Failure::from(error).into()))?;
    match entry {
        Some((BUNDLE_VERSION, session, at)) => {
            let session = session.parse();
            let session = session.map_err(|_| invalid("its session has an invalid id"))?;
            Ok((session, at.parse().ok()))
        }
        Some((version, ..)) => {
            let reason = format!("it has version {version}, but this program supports {BUNDLE_VERSION}");
            Err(invalid(reason))
        }
        None => Err(invalid("it names no session")),
    }
}

/// Type, name, table and SQL of everything in a schema.
fn entries(connection: &Connection) -> Result<Vec<[Option<String>; 4]>, Failure> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name, tbl_name, sql";
    rows(connection, sql, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
}

/// Copies a bundle of an older version and migrates the copy.
fn migrate_copy(path: &Path, found: SchemaState) -> Result<TemporaryCopy, BundleError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let mut original = fs::File::open(path).map_err(failed)?;
    let mut copy = TemporaryCopy::new()?;
    io::copy(&mut original, &mut copy.1).map_err(failed)?;
    let connection = open_copy(&copy.0)?;
    tables(&connection, found, VERSION).map_err(|error| of_bundle(error.into()))?;
    Ok(copy)
}

/// Opens a copy, which nothing else uses, for its migration.
fn open_copy(path: &Path) -> Result<Connection, Failure> {
    let connection = open::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
