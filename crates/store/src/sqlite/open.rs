//! Opening a store.
//!
//! Opening never rewrites what is stored. A file that does not exist is created, one of an older version is brought up by
//! migrations, and only one process at a time does either. What is opened for reading only is not changed at all, unless a
//! process was killed while it created the store and left something to undo.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use backstitch_core::crash_point;
use rusqlite::{Connection, OpenFlags};

use super::error::{Failure, OpenError};
use super::leases::Locks;
use super::options::SqliteOptions;
use super::schema::{self, SchemaState, VERSION};
use super::watch::WatchedFiles;
use super::{now, private, writer};

/// A connection for writing to a store, which is created if there is none, and the files that it writes to.
pub(super) fn for_writing(
    path: &Path,
    locks: &Locks,
    options: &SqliteOptions,
) -> Result<(Connection, WatchedFiles), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        private::create_directories(parent).map_err(io)?;
    }
    let is_new = !path.exists();
    if is_new {
        create(path, locks).map_err(io)?;
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
        .map_err(|error| explain(path, error))?;
    if is_new {
        // Where the file could not be prepared SQLite has created it, in its own way.
        private::set_mode(path, 0o600).map_err(io)?;
    }
    connection.busy_timeout(options.busy_timeout)?;
    if schema::inspect(&connection)? != SchemaState::Version(VERSION) {
        let opening = locks.for_opening().map_err(io)?;
        bring_up(&connection)?;
        crash_point!("store.create.done");
        drop(opening);
    }
    write_ahead(&connection)?;
    // One sync for each commit, before it is acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Checkpoints are made when whoever waits for a commit has been told of it.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    if let Some(most) = options.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(most).unwrap_or(i64::MAX) / page.max(1);
        // The file's header counts pages in 32 bits. SQLite gives back what it set.
        let pages = pages.clamp(1, 0xffff_fffe);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    let files = WatchedFiles::new(path).map_err(io)?;
    Ok((connection, files))
}

/// Creates an empty database that only its owner may read.
///
/// The file is prepared elsewhere and then gets its name: nobody has it open when it is closed here, so no locks are dropped,
/// and nobody finds it with other rights. Where that is not possible, it is left to SQLite.
fn create(path: &Path, locks: &Locks) -> io::Result<()> {
    let opening = locks.for_opening()?;
    let prepared = locks.new_database();
    // Left behind by a process that was killed.
    let _ = fs::remove_file(&prepared);
    drop(private::create_file(&prepared)?);
    crash_point!("store.create.prepared");
    let _ = fs::hard_link(&prepared, path);
    let _ = fs::remove_file(&prepared);
    crash_point!("store.create.named");
    drop(opening);
    Ok(())
}

/// Has what is written go to a log first. New stores are made so; copies that SQLite wrote are not.
fn write_ahead(connection: &Connection) -> Result<(), OpenError> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        // The log exists from the first transaction on.
        schema::inspect(connection)?;
    }
    Ok(())
}

/// A connection for reading.
pub(super) struct Reading {
    pub(super) connection: Connection,
    /// Whether it stands in for a store that is not created yet, and is empty whatever becomes of that one.
    pub(super) is_stand_in: bool,
}

/// A connection for reading a store that exists. One that is not created yet, as a process that was killed may leave it, is
/// empty.
pub(super) fn read_only(path: &Path) -> Result<Reading, OpenError> {
    if !path.exists() {
        return Err(OpenError::NotFound { path: path.to_owned() });
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    match schema::inspect(&connection) {
        Ok(found) => known(found, connection),
        // Whoever chose the log was killed meanwhile, and only one who may write can undo its half.
        Err(OpenError::Store(_)) if beside(path, "-journal").exists() => {
            drop(connection);
            let recovered = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            recovered.busy_timeout(Duration::from_secs(10))?;
            let found = schema::inspect(&recovered)?;
            drop(recovered);
            known(found, connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
        }
        // Beside a store that nobody writes, in a directory that cannot be written, SQLite cannot put what readers share.
        Err(OpenError::Store(_)) if !beside(path, "-wal").exists() => {
            let connection = immutable(path)?;
            known(schema::inspect(&connection)?, connection)
        }
        Err(error) => Err(error),
    }
}

/// A connection for reading what can be read of a store that may be damaged.
pub(super) fn for_salvage(path: &Path) -> Result<Connection, OpenError> {
    match read_only(path) {
        // What tells the version may be what is damaged.
        Err(OpenError::Store(_) | OpenError::ChangedMigration { .. }) => {
            Ok(connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
        }
        result => result.map(|reading| reading.connection),
    }
}

fn known(found: SchemaState, connection: Connection) -> Result<Reading, OpenError> {
    match found {
        SchemaState::Version(VERSION) => Ok(Reading { connection, is_stand_in: false }),
        SchemaState::Version(found) => Err(OpenError::Older { found, known: VERSION }),
        SchemaState::Empty => Ok(Reading { connection: empty()?, is_stand_in: true }),
    }
}

/// An empty store in memory.
fn empty() -> Result<Connection, OpenError> {
    let connection = Connection::open_in_memory()?;
    bring_up(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn immutable(path: &Path) -> Result<Connection, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let path = fs::canonicalize(path).map_err(io)?;
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                address.push(char::from(*byte));
            }
            _ => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Ok(connect(Path::new(&address), flags)?)
}

/// The name of a file that SQLite keeps beside a store.
pub(super) fn beside(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Says why a file could not be opened, where the system knows it better than SQLite does. The file is not opened for that:
/// closing it would drop the locks of others in this process.
fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    let reason = match fs::metadata(path) {
        Err(source) => Some(source),
        Ok(metadata) if metadata.is_dir() => Some(io::ErrorKind::IsADirectory.into()),
        Ok(_) => may_write(path).err(),
    };
    match reason {
        Some(source) => OpenError::Io { path: path.to_owned(), source },
        None => error.into(),
    }
}

#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(path, Access::READ_OK | Access::WRITE_OK)?)
}

#[cfg(not(unix))]
fn may_write(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates the tables, or brings them to the newest version. Whoever calls this holds the lock for opening.
fn bring_up(connection: &Connection) -> Result<(), OpenError> {
    if schema::inspect(connection)? == SchemaState::Empty {
        // Both have to be chosen before the first table exists. Space that garbage leaves can then be given back.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        crash_point!("store.create.log");
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    let mut refused = None;
    let result = writer::transaction(connection, || {
        let brought = schema::inspect(connection).and_then(|found| match found {
            SchemaState::Version(VERSION) => Ok(()),
            found => schema::migrate(connection, found, now()),
        });
        brought.map_err(|error| match error {
            OpenError::Store(error) => Failure(error),
            other => {
                refused = Some(other);
                rusqlite::Error::InvalidQuery.into()
            }
        })
    });
    match refused {
        Some(refused) => Err(refused),
        None => Ok(result?),
    }
}
