//! Opens stores.
//!
//! Opening never rewrites stored data. It creates a missing file and migrates one of an older version; only
//! one process at a time does either. Opening read-only changes nothing, except that it rolls back the
//! incomplete creation of a killed process.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use backstitch_core::crash_point;
use backstitch_core::ports::OpenError;
use rusqlite::{Connection, OpenFlags};

use super::claims::Locks;
use super::error::open_error;
use super::options::SqliteOptions;
use super::schema::{self, SchemaState, VERSION};
use super::watch::WatchedFiles;
use super::{private, writer};
use crate::time::now;

/// Size of the pages of new stores. Rows do not fill pages exactly: with 4 KiB, a tenth of a journal was unused space.
const PAGE_BYTES: u32 = 8192;

/// Size of the pages of stores in memory. A transaction copies each page that it changes, so small pages cost less.
const MEMORY_PAGE_BYTES: u32 = 2048;

/// Number of prepared statements that a connection keeps.
const STATEMENTS: usize = 64;

/// Makes a path absolute, so that a later change of the working directory does not affect it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

/// Opens a connection for writing, creating the store if it does not exist, and returns it with the files
/// that it writes to.
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
    check_kind(path)?;
    if is_new {
        create(path, locks).map_err(io)?;
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
        .map_err(|error| explain(path, error))?;
    if is_new {
        // If the file could not be prepared, SQLite has created it with its own mode.
        private::set_mode(path, 0o600).map_err(io)?;
    }
    connection.busy_timeout(options.busy_timeout).map_err(open_error)?;
    if schema::inspect(&connection)? != SchemaState::Version(VERSION) {
        let opening = locks.for_opening().map_err(io)?;
        bring_up(&connection, PAGE_BYTES)?;
        crash_point!("store.create.done");
        drop(opening);
    }
    write_ahead(&connection)?;
    set_up(&connection, options).map_err(open_error)?;
    let files = WatchedFiles::new(path).map_err(io)?;
    Ok((connection, files))
}

/// Sets up a connection for writing.
fn set_up(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    // One sync per commit, before the commit is acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // The writer checkpoints explicitly, after it has notified the waiting callers.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    if let Some(most) = options.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(most).unwrap_or(i64::MAX) / page.max(1);
        // The file header counts pages in 32 bits. SQLite returns the value that it set.
        let pages = pages.clamp(1, 0xffff_fffe);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// Creates an empty database that only its owner may read.
///
/// The file is prepared under another name and then linked to its path. No other process has it open when it
/// is closed here, so no locks are released, and none sees it with other permissions. If linking is not
/// possible, SQLite creates the file.
fn create(path: &Path, locks: &Locks) -> io::Result<()> {
    let opening = locks.for_opening()?;
    let prepared = locks.new_database()?;
    // Left behind by a killed process.
    let _ = fs::remove_file(&prepared);
    drop(private::create_file(&prepared)?);
    crash_point!("store.create.prepared");
    let _ = fs::hard_link(&prepared, path);
    let _ = fs::remove_file(&prepared);
    crash_point!("store.create.named");
    drop(opening);
    Ok(())
}

/// Switches to the write-ahead log. New stores have it; copies that SQLite wrote do not.
fn write_ahead(connection: &Connection) -> Result<(), OpenError> {
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    if mode.map_err(open_error)? != "wal" {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(open_error)?;
        // The log exists from the first transaction on.
        schema::inspect(connection)?;
    }
    Ok(())
}

/// A connection for reading.
pub(super) struct Reading {
    pub(super) connection: Connection,
    /// True if the connection is an empty stand-in for a store that does not exist yet. It stays empty when
    /// the real store is created.
    pub(super) is_stand_in: bool,
}

/// Opens a connection for reading an existing store. A file whose creation was interrupted counts as empty.
pub(super) fn read_only(path: &Path) -> Result<Reading, OpenError> {
    if !path.exists() {
        return Err(OpenError::NotFound { path: path.to_owned() });
    }
    check_kind(path)?;
    may_access(path, Purpose::Read).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let connection = patient(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match schema::inspect(&connection) {
        Ok(found) => known(found, connection),
        // A process was killed while it switched to the write-ahead log. Only a connection that may write can
        // roll that back.
        Err(OpenError::Store(_)) if private::beside(path, "-journal").exists() => {
            drop(connection);
            let recovered = patient(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            let found = schema::inspect(&recovered)?;
            drop(recovered);
            known(found, connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(open_error)?)
        }
        // The store is not being written and its directory is read-only, so SQLite cannot create the shared
        // memory file for readers.
        Err(OpenError::Store(_)) if !private::beside(path, "-wal").exists() => {
            let connection = immutable(path)?;
            known(schema::inspect(&connection)?, connection)
        }
        Err(error) => Err(error),
    }
}

/// Opens a connection for reading a store of any version that this program knows.
pub(super) fn any_version(path: &Path) -> Result<Connection, OpenError> {
    match read_only(path) {
        Err(OpenError::Older { .. }) => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(open_error),
        result => Ok(result?.connection),
    }
}

/// Opens a connection for reading a store that may be damaged.
pub(super) fn for_salvage(path: &Path) -> Result<Connection, OpenError> {
    let connection = match read_only(path) {
        // The version information itself may be damaged, and an older store cannot be migrated first.
        Err(OpenError::Store(_) | OpenError::ChangedMigration { .. } | OpenError::Older { .. }) => {
            connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(open_error)?
        }
        result => result?.connection,
    };
    schema::read_as_newest(&connection).map_err(open_error)?;
    Ok(connection)
}

fn known(found: SchemaState, connection: Connection) -> Result<Reading, OpenError> {
    match found {
        SchemaState::Version(VERSION) => Ok(Reading { connection, is_stand_in: false }),
        SchemaState::Version(found) => Err(OpenError::Older { found, known: VERSION }),
        SchemaState::Empty => Ok(Reading { connection: empty()?, is_stand_in: true }),
    }
}

/// Creates an empty store in memory.
pub(super) fn in_memory() -> Result<Connection, OpenError> {
    let connection = Connection::open_in_memory().map_err(open_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    bring_up(&connection, MEMORY_PAGE_BYTES)?;
    Ok(connection)
}

/// Creates an empty store in memory for reading.
fn empty() -> Result<Connection, OpenError> {
    let connection = in_memory()?;
    connection.pragma_update(None, "query_only", true).map_err(open_error)?;
    Ok(connection)
}

pub(super) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Opens a connection that waits while another process writes.
fn patient(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let connection = connect(path, flags).map_err(open_error)?;
    connection.busy_timeout(Duration::from_secs(10)).map_err(open_error)?;
    Ok(connection)
}

pub(super) fn immutable(path: &Path) -> Result<Connection, OpenError> {
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
    connect(Path::new(&address), flags).map_err(open_error)
}

/// Refuses a directory, a device and anything else that SQLite would fail on without saying why.
fn check_kind(path: &Path) -> Result<(), OpenError> {
    let io = |kind: io::ErrorKind, reason: &'static str| OpenError::Io {
        path: path.to_owned(),
        source: io::Error::new(kind, reason),
    };
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            Err(io(io::ErrorKind::IsADirectory, "is a directory: name the file in it, such as store.db"))
        }
        Ok(metadata) if !metadata.is_file() => {
            Err(io(io::ErrorKind::InvalidInput, "is not a regular file, and cannot be a store"))
        }
        _ => Ok(()),
    }
}

/// Replaces an error of SQLite by the operating system's reason, if there is one. The file is not opened for
/// that: closing it would release the locks of other connections of this process.
fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    let reason = match fs::metadata(path) {
        Err(source) => Some(source),
        Ok(_) => may_access(path, Purpose::Write).err(),
    };
    match reason {
        Some(source) => OpenError::Io { path: path.to_owned(), source },
        None => open_error(error),
    }
}

/// What a file is opened for.
enum Purpose {
    Read,
    Write,
}

#[cfg(unix)]
fn may_access(path: &Path, purpose: Purpose) -> io::Result<()> {
    use rustix::fs::{Access, access};
    let wanted = match purpose {
        Purpose::Read => Access::READ_OK,
        Purpose::Write => Access::READ_OK | Access::WRITE_OK,
    };
    Ok(access(path, wanted)?)
}

#[cfg(not(unix))]
fn may_access(_: &Path, _: Purpose) -> io::Result<()> {
    Ok(())
}

/// Creates the tables or migrates them to the newest version. The caller holds the opening lock.
fn bring_up(connection: &Connection, page_bytes: u32) -> Result<(), OpenError> {
    if schema::inspect(connection)? == SchemaState::Empty {
        lay_out(connection, page_bytes).map_err(open_error)?;
        crash_point!("store.create.log");
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(open_error)?;
    writer::transaction(connection, || match schema::inspect(connection)? {
        SchemaState::Version(VERSION) => Ok(()),
        found => schema::migrate(connection, found, VERSION, now()).map_err(open_error),
    })
}

/// Sets what has to be set before the first table exists. Incremental vacuum makes it possible to return free space to the disk.
fn lay_out(connection: &Connection, page_bytes: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", page_bytes)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
}
