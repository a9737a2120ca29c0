//! Searches the files of a store for remains of a value.

use std::fs;
use std::path::Path;

use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Objects as _, StoreError};
use backstitch_store::SqliteStore;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Whether bytes hold a value: as it is, and as JSON text once and twice.
pub(crate) fn holds(bytes: &[u8], value: &str) -> bool {
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = escaped(value);
    let twice = escaped(&once);
    [value, &once, &twice].iter().any(|form| {
        let form = form.as_bytes();
        bytes.windows(form.len()).any(|window| window == form)
    })
}

fn files_with(directory: &Path, value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_with(&path, value)),
            false if holds(&fs::read(&path).unwrap(), value) => found.push(path.display().to_string()),
            false => {}
        }
    }
    found
}

/// Fails if anything of a value is left: in a file of the store, or in an object, which may be compressed.
pub(crate) fn assert_gone(store: &SqliteStore, value: &str) {
    let found = files_with(store.path().parent().unwrap(), value);
    assert_eq!(found, Vec::<String>::new(), "{value:?}");
    let raw = Connection::open_with_flags(store.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut sql = raw.prepare("SELECT id FROM objects").unwrap();
    let ids: Vec<[u8; 20]> = sql.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    for id in ids.into_iter().map(ObjectId::from_bytes) {
        match store.get(id) {
            Ok(object) => assert!(!holds(object.unwrap().bytes(), value), "{id} holds {value:?}"),
            Err(error) => {
                let error = error.downcast_ref::<StoreError>();
                assert!(matches!(error, Some(StoreError::Redacted { .. })), "{error:?}");
            }
        }
    }
}
