//! Objects: compressed, stored once, and verified on reading.
//!
//! Content is compressed with zstd where that makes it smaller. Reading hashes an object and fails if the
//! hash differs from its id. When retention prunes an object that a record names, the row stays without
//! content, so that reading it fails with `Pruned`. A redacted object stays in the same way, and reading it
//! fails with `Redacted`. Storing either again restores it.

use std::borrow::Cow;

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{ObjectFacts, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::error::Failure;
use super::sql::{execute, first, rows};
pub(super) use crate::packed::{CompressedObject, Packer, Presence, kind_of, unpack};
use crate::packed::{PLAIN, ZSTD, word_of};

impl CompressedObject {
    /// Stores the object unless it is stored already.
    pub(super) fn insert(&self, connection: &Connection) -> Result<(), Failure> {
        let (encoding, content) = self.content();
        let sql = "INSERT INTO objects (id, kind, length, encoding, content) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, length = excluded.length,
                encoding = excluded.encoding, content = excluded.content
            WHERE content IS NULL";
        let id = self.object.id();
        let length = self.object.bytes().len() as u64;
        let values =
            params![&id.as_bytes()[..], word_of(self.object.kind()), length.cast_signed(), encoding, content];
        execute(connection, sql, values)
    }
}

/// Looks up the state of an object.
pub(super) fn presence(connection: &Connection, id: ObjectId) -> Result<Presence, Failure> {
    let sql = "SELECT encoding FROM objects WHERE id = ?1";
    let encoding: Option<i64> = first(connection, sql, [&id.as_bytes()[..]], |row| row.get(0))?;
    Ok(encoding.map_or(Presence::Absent, Presence::of))
}

/// Looks up what is known about objects, with one statement.
pub(super) fn find_many(connection: &Connection, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, Failure> {
    let sql = "SELECT id, encoding, length FROM objects WHERE id IN (SELECT unhex(value) FROM json_each(?1))";
    let found: Vec<(ObjectId, Presence, i64)> = rows(connection, sql, [json!(ids).to_string()], |row| {
        Ok((id_in(row.get_ref(0)?)?, Presence::of(row.get(1)?), row.get(2)?))
    })?;
    let facts = found.into_iter().filter_map(|(id, presence, length)| match presence {
        Presence::Stored => Some(ObjectFacts { id, length: Some(u64::try_from(length).unwrap_or_default()) }),
        Presence::Redacted => Some(ObjectFacts { id, length: None }),
        _ => None,
    });
    Ok(facts.collect())
}

/// Reads those of some objects that are stored.
pub(super) fn get_many(connection: &Connection, ids: &[ObjectId]) -> Result<Vec<Object>, Failure> {
    let stored = find_many(connection, ids)?.into_iter().filter(|known| known.length.is_some());
    stored.filter_map(|known| get(connection, known.id).transpose()).collect()
}

fn damaged(object: ObjectId, reason: &str) -> StoreError {
    StoreError::DamagedObject { object, reason: reason.to_owned() }
}

/// Kind of an object, or `None` if it has no stored content.
pub(super) fn stored_kind(connection: &Connection, id: ObjectId) -> Result<Option<ObjectKind>, Failure> {
    let sql = "SELECT kind FROM objects WHERE id = ?1 AND content IS NOT NULL";
    let word: Option<i64> = first(connection, sql, [&id.as_bytes()[..]], |row| row.get(0))?;
    let unknown = || damaged(id, "its kind is unknown");
    Ok(word.map(|word| kind_of(word).ok_or_else(unknown)).transpose()?)
}

/// Replaces an object by a mark that says why its content is gone.
pub(super) fn leave_mark(connection: &Connection, id: ObjectId, reason: Presence) -> Result<(), Failure> {
    let sql = "INSERT INTO objects (id, kind, length, encoding, content) VALUES (?1, 1, 0, ?2, NULL)
        ON CONFLICT (id) DO UPDATE SET encoding = excluded.encoding, content = NULL";
    execute(connection, sql, params![&id.as_bytes()[..], reason as i64])
}

/// Reads an object and verifies its hash.
pub(super) fn get(connection: &Connection, id: ObjectId) -> Result<Option<Object>, Failure> {
    let mut sql =
        connection.prepare_cached("SELECT kind, length, encoding, content FROM objects WHERE id = ?1")?;
    let mut rows = sql.query([&id.as_bytes()[..]])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match Presence::of(row.get(2)?) {
        Presence::Redacted => return Err(StoreError::Redacted { object: id }.into()),
        presence => presence.require(id)?,
    }
    let kind = kind_of(row.get(0)?).ok_or_else(|| damaged(id, "its kind is unknown"))?;
    let object = Object::new(kind, content_in(row, 1, id)?.into_owned());
    if object.id() == id {
        Ok(Some(object))
    } else {
        Err(damaged(id, "its content does not match its id").into())
    }
}

/// Content of an object from the columns `length`, `encoding` and `content`, the first of which is given.
pub(super) fn content_in<'a>(row: &'a Row<'_>, first: usize, id: ObjectId) -> Result<Cow<'a, [u8]>, Failure> {
    let (length, encoding): (i64, i64) = (row.get(first)?, row.get(first + 1)?);
    let content = row.get_ref(first + 2)?;
    let content = content.as_blob().map_err(|_| damaged(id, "it has no content"))?;
    let length = u64::try_from(length).map_err(|_| damaged(id, "its length is invalid"))?;
    match encoding {
        PLAIN => Ok(Cow::Borrowed(content)),
        ZSTD => {
            let bytes = unpack(content, length);
            Ok(Cow::Owned(bytes.ok_or_else(|| damaged(id, "it does not decompress to its length"))?))
        }
        _ => Err(damaged(id, "its encoding is unknown").into()),
    }
}

/// Size of a stored object, known without reading its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSize {
    pub(super) kind: ObjectKind,
    /// Length of the content before compression, in bytes.
    pub(super) length: u64,
}

/// Looks up the size of an object, or returns `None` if it has no stored content.
pub(super) fn stored_size(connection: &Connection, id: ObjectId) -> Result<Option<StoredSize>, Failure> {
    let sql = "SELECT kind, length, length(content) FROM objects WHERE id = ?1 AND content IS NOT NULL";
    let found: Option<(i64, i64, i64)> =
        first(connection, sql, [&id.as_bytes()[..]], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let Some((kind, length, stored)) = found else { return Ok(None) };
    let kind = kind_of(kind).ok_or_else(|| damaged(id, "its kind is unknown"))?;
    let length = u64::try_from(length).map_err(|_| damaged(id, "its length is invalid"))?;
    Ok(Some(StoredSize { kind, length: length.max(stored.cast_unsigned()) }))
}

/// Lists all objects with content: id, kind and stored size.
pub(super) fn all_stored(connection: &Connection) -> Result<Vec<(ObjectId, ObjectKind, u64)>, Failure> {
    let sql = "SELECT id, kind, length(content) FROM objects WHERE content IS NOT NULL ORDER BY number";
    rows(connection, sql, [], |row| {
        let (kind, bytes): (i64, i64) = (row.get(1)?, row.get(2)?);
        let kind = kind_of(kind).unwrap_or(ObjectKind::Blob);
        Ok((id_in(row.get_ref(0)?)?, kind, bytes.cast_unsigned()))
    })
}

/// Decodes an object id that is stored as bytes.
pub(super) fn id_in(value: ValueRef<'_>) -> Result<ObjectId, Failure> {
    let bytes = value.as_blob().ok().and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or_else(|| StoreError::Corrupt { source: "an object has an invalid id".into() })?;
    Ok(ObjectId::from_bytes(bytes))
}
