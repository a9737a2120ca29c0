//! Bare SQLite: the same rows with the same durability, and nothing else.

use backstitch_core::object::Object;
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// A table of rows.
pub(super) struct Bare {
    connection: Connection,
    _directory: TempDir,
}

impl Bare {
    pub(super) fn new() -> Self {
        let directory = super::temporary();
        let connection = Connection::open(directory.path().join("bare.db")).expect("a file can be made");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 PRAGMA synchronous = FULL;
                 CREATE TABLE records (id INTEGER PRIMARY KEY, checksum BLOB NOT NULL, record TEXT NOT NULL);
                 CREATE TABLE objects (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, content BLOB NOT NULL);",
            )
            .expect("a table can be made");
        Self { connection, _directory: directory }
    }

    /// Writes rows in one commit.
    pub(super) fn commit(&self, first: i64, texts: &[String], objects: &[Object]) {
        let run = |sql: &str| {
            self.connection.prepare_cached(sql).and_then(|mut sql| sql.execute([])).expect("SQLite works")
        };
        run("BEGIN IMMEDIATE");
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO objects (id, content) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING")
            .expect("SQLite works");
        for object in objects {
            let id = object.id();
            insert.execute(params![&id.as_bytes()[..], &object.bytes()[..]]).expect("SQLite works");
        }
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO records (id, checksum, record) VALUES (?1, ?2, ?3)")
            .expect("SQLite works");
        for (key, text) in (first..).zip(texts) {
            insert.execute(params![key, [7_u8; 16], text]).expect("SQLite works");
        }
        drop(insert);
        run("COMMIT");
    }

    /// Reads all rows, and parses each as JSON.
    pub(super) fn read_and_parse(&self) -> Vec<serde_json::Value> {
        let mut sql =
            self.connection.prepare_cached("SELECT record FROM records ORDER BY id").expect("SQLite works");
        let mut rows = sql.query([]).expect("SQLite works");
        let mut values = Vec::new();
        while let Some(row) = rows.next().expect("SQLite works") {
            let text = row.get_ref(0).ok().and_then(|text| text.as_str().ok()).expect("it is a text");
            values.push(serde_json::from_str(text).expect("it is JSON"));
        }
        values
    }
}
