//! Disk usage of a store.

use backstitch_core::object::ObjectKind;
use backstitch_core::ports::{ObjectsSize, SessionSize, StoreError, StoreSize};
use rusqlite::Connection;

use super::error::Failure;
use super::keys::{first_key, last_key};
use super::objects;
use super::private::beside;
use super::read::numbered_sessions;
use super::sql::rows;
use super::store::SqliteStore;

impl SqliteStore {
    /// Measures the disk usage by session and by kind of object.
    pub fn size(&self) -> Result<StoreSize, StoreError> {
        let length = |path| std::fs::metadata(path).map_or(0, |file| file.len());
        let (file, log) = match self.is_in_memory() {
            true => (0, 0),
            false => (length(self.path.clone()), length(beside(&self.path, "-wal"))),
        };
        self.readers.at_once(|connection| {
            let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let free = (pragma("freelist_count")? * pragma("page_size")?).cast_unsigned();
            Ok(StoreSize { file, log, free, sessions: sessions(connection)?, objects: by_kind(connection)? })
        })
    }
}

fn sessions(connection: &Connection) -> Result<Vec<SessionSize>, Failure> {
    let mut sizes = Vec::new();
    let mut records = connection.prepare(
        "SELECT count(*), coalesce(sum(octet_length(record)), 0) FROM records WHERE id BETWEEN ?1 AND ?2",
    )?;
    let mut snapshot =
        connection.prepare("SELECT coalesce(sum(length(content)), 0) FROM snapshots WHERE session = ?1")?;
    for (number, session) in numbered_sessions(connection)? {
        let (count, text): (i64, i64) =
            records.query_row([first_key(number), last_key(number)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let snapshot: i64 = snapshot.query_row([number], |row| row.get(0))?;
        sizes.push(SessionSize {
            session,
            records: count.cast_unsigned(),
            text: text.cast_unsigned(),
            snapshot: snapshot.cast_unsigned(),
        });
    }
    Ok(sizes)
}

fn by_kind(connection: &Connection) -> Result<Vec<ObjectsSize>, Failure> {
    let sql = "SELECT kind, count(*), sum(length), sum(length(content)) FROM objects
        WHERE content IS NOT NULL GROUP BY kind ORDER BY kind";
    rows(connection, sql, [], |row| {
        let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
        let kind = objects::kind_of(row.get(0)?).unwrap_or(ObjectKind::Blob);
        Ok(ObjectsSize { kind, objects: number(1)?, content: number(2)?, stored: number(3)? })
    })
}
