//! Opening a store.
//!
//! Opening never rewrites what is stored. A file that does not exist is created, one of an older version is brought up by
//! migrations, and only one process at a time does either. What is opened for reading only is not changed at all.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::{OpenError, failed};
use super::leases::Locks;
use super::options::SqliteOptions;
use super::schema::{self, Found, VERSION};
use super::{now, writer};

/// A connection for writing to a store, which is created if there is none.
pub(super) fn for_writing(
    path: &Path,
    locks: &Locks,
    options: &SqliteOptions,
) -> Result<Connection, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(io)?;
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
        .map_err(|error| explain(path, error))?;
    connection.busy_timeout(options.busy_timeout)?;
    if schema::inspect(&connection)? != Found::Version(VERSION) {
        let opening = locks.for_opening().map_err(io)?;
        bring_up(&connection)?;
        drop(opening);
    }
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
    Ok(connection)
}

/// A connection for reading a store that exists.
pub(super) fn read_only(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::NotFound { path: path.to_owned() });
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    match schema::inspect(&connection) {
        Ok(found) => known(found).map(|()| connection),
        // Beside a store that nobody writes, in a directory that cannot be written, SQLite cannot put what readers share.
        Err(OpenError::Store(_)) if !beside(path, "-wal").exists() => {
            let connection = immutable(path)?;
            known(schema::inspect(&connection)?).map(|()| connection)
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
        result => result,
    }
}

fn known(found: Found) -> Result<(), OpenError> {
    match found {
        Found::Version(VERSION) => Ok(()),
        Found::Version(found) => Err(OpenError::Older { found, known: VERSION }),
        Found::Empty => Err(OpenError::NotAStore),
    }
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

/// Says why a file could not be opened, where the system knows it better than SQLite does.
fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    let attempt = fs::File::options().read(true).write(true).create(true).truncate(false).open(path);
    match attempt {
        Err(source) => OpenError::Io { path: path.to_owned(), source },
        Ok(_) => error.into(),
    }
}

/// Creates the tables, or brings them to the newest version. Whoever calls this holds the lock for opening.
fn bring_up(connection: &Connection) -> Result<(), OpenError> {
    if schema::inspect(connection)? == Found::Empty {
        // Both have to be chosen before the first table exists. Space that garbage leaves can then be given back.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    let mut refused = None;
    let result = writer::transaction(connection, || {
        let brought = schema::inspect(connection).and_then(|found| match found {
            Found::Version(VERSION) => Ok(()),
            found => schema::migrate(connection, found, now()),
        });
        brought.map_err(|error| match error {
            OpenError::Store(error) => error,
            other => {
                refused = Some(other);
                failed(rusqlite::Error::InvalidQuery)
            }
        })
    });
    match refused {
        Some(refused) => Err(refused),
        None => Ok(result?),
    }
}
