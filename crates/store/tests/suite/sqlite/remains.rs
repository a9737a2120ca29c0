//! Searches the files of a store for remains of a value.

use std::fs;
use std::path::Path;

use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Store as _, StoreError};
use backstitch_store::SqliteStore;
use backstitch_testkit::block_on;
use rusqlite::Connection;
use serde_json::Value;

/// The value, and the value as JSON text once and twice.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = escaped(value);
    let twice = escaped(&once);
    [value.to_owned(), once, twice].map(String::into_bytes).into()
}

fn holds(bytes: &[u8], value: &str) -> bool {
    forms(value).iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

/// Names of the files in the directory of a store that hold a value.
pub(crate) fn files_with(directory: &Path, value: &str) -> Vec<String> {
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

/// Ids of stored objects whose content holds a value.
pub(crate) fn objects_with(store: &SqliteStore, value: &str) -> Vec<ObjectId> {
    let raw = Connection::open(store.path()).unwrap();
    let mut sql = raw.prepare("SELECT id FROM objects").unwrap();
    let ids: Vec<[u8; 20]> = sql.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let is_held = |id: &ObjectId| match block_on(store.object(*id)) {
        Ok(object) => object.is_some_and(|object| holds(object.bytes(), value)),
        Err(StoreError::Redacted { .. } | StoreError::Pruned { .. }) => false,
        Err(error) => panic!("{error:?}"),
    };
    ids.into_iter().map(ObjectId::from_bytes).filter(is_held).collect()
}

/// Fails if anything of a value is left in the store at all.
pub(crate) fn assert_gone(store: &SqliteStore, value: &str) {
    let directory = store.path().parent().unwrap();
    assert_eq!(files_with(directory, value), Vec::<String>::new(), "{value:?}");
    assert_eq!(objects_with(store, value), [], "{value:?}");
}
