//! Objects: packed, stored once, and checked when they are read.
//!
//! Content is compressed by zstd where that makes it smaller. An object that is read is hashed, and one that does not have
//! its name is an error. An object that retention threw away leaves its row behind when a record names it, without content:
//! whoever asks for it learns that it was there. Bringing it along again brings it back.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Failure;

/// The most bytes that SQLite holds in one value, with some room for the rest of the row.
const MOST: u64 = 999_000_000;

/// Below this many bytes compressing gains nothing worth its time.
const WORTH_PACKING: usize = 96;

/// zstd's own default: about as fast as the disk is.
const LEVEL: i32 = 3;

pub(super) const PLAIN: i64 = 0;
pub(super) const ZSTD: i64 = 1;
pub(super) const PRUNED: i64 = 2;
pub(super) const LOST: i64 = 3;

/// Compresses. Contexts are large, so they are kept.
#[derive(Default)]
pub(super) struct Packer {
    idle: Mutex<Vec<zstd::bulk::Compressor<'static>>>,
}

impl Packer {
    /// The bytes as zstd.
    pub(super) fn pack(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let backend = |error: std::io::Error| StoreError::Backend(error.into());
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut compressor = match kept {
            Some(compressor) => compressor,
            None => zstd::bulk::Compressor::new(LEVEL).map_err(backend)?,
        };
        let packed = compressor.compress(bytes).map_err(backend)?;
        let mut idle = idle();
        if idle.len() < 2 {
            idle.push(compressor);
        }
        Ok(packed)
    }
}

/// An object as it is stored.
pub(super) struct CompressedObject {
    pub(super) object: Object,
    /// The compressed content, where that is smaller.
    zstd: Option<Vec<u8>>,
}

impl CompressedObject {
    pub(super) fn new(packer: &Packer, object: Object) -> Result<Self, Failure> {
        let bytes = object.bytes();
        let zstd = match bytes.len() < WORTH_PACKING {
            true => None,
            false => Some(packer.pack(bytes)?).filter(|packed| packed.len() < bytes.len()),
        };
        let packed = Self { object, zstd };
        let bytes = packed.stored_bytes();
        match bytes > MOST {
            true => {
                let what = format!("object {}", packed.object.id());
                Err(StoreError::TooLarge { what, bytes, limit: MOST }.into())
            }
            false => Ok(packed),
        }
    }

    /// How many bytes are stored.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.content().1.len() as u64
    }

    fn content(&self) -> (i64, &[u8]) {
        match &self.zstd {
            Some(packed) => (ZSTD, packed),
            None => (PLAIN, self.object.bytes()),
        }
    }

    /// Stores the object, unless it is stored.
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
        connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}

/// The number that stands for a kind.
pub(super) fn word_of(kind: ObjectKind) -> i64 {
    match kind {
        ObjectKind::Tree => 2,
        ObjectKind::Commit => 3,
        _ => 1,
    }
}

pub(super) fn kind_of(word: i64) -> Option<ObjectKind> {
    [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit].into_iter().find(|kind| word_of(*kind) == word)
}

/// What is known of an object without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Stored,
    Absent,
    Pruned,
    Lost,
}

impl Presence {
    /// Refuses to refer to what is not there.
    pub(super) fn required(self, object: ObjectId) -> Result<(), Failure> {
        match self {
            Self::Stored => Ok(()),
            Self::Absent => Err(StoreError::MissingObject { object }.into()),
            Self::Pruned => Err(StoreError::Pruned { object }.into()),
            Self::Lost => Err(StoreError::LostObject { object }.into()),
        }
    }
}

/// Whether an object is stored.
pub(super) fn presence(connection: &Connection, id: ObjectId) -> Result<Presence, Failure> {
    let mut sql = connection.prepare_cached("SELECT encoding FROM objects WHERE id = ?1")?;
    let encoding: Option<i64> = sql.query_row([&id.as_bytes()[..]], |row| row.get(0)).optional()?;
    Ok(match encoding {
        None => Presence::Absent,
        Some(PRUNED) => Presence::Pruned,
        Some(LOST) => Presence::Lost,
        Some(_) => Presence::Stored,
    })
}

/// The kind of an object, if it is stored.
pub(super) fn stored_kind(connection: &Connection, id: ObjectId) -> Result<Option<ObjectKind>, Failure> {
    let sql = "SELECT kind FROM objects WHERE id = ?1 AND content IS NOT NULL";
    let mut sql = connection.prepare_cached(sql)?;
    let word: Option<i64> = sql.query_row([&id.as_bytes()[..]], |row| row.get(0)).optional()?;
    let unknown = || StoreError::DamagedObject { object: id, reason: "its kind is not known".to_owned() };
    Ok(word.map(|word| kind_of(word).ok_or_else(unknown)).transpose()?)
}

/// Leaves the name of an object and the reason why it is no longer there.
pub(super) fn leave_mark(connection: &Connection, id: ObjectId, reason: i64) -> Result<(), Failure> {
    let sql = "INSERT INTO objects (id, kind, length, encoding, content) VALUES (?1, 1, 0, ?2, NULL)
        ON CONFLICT (id) DO UPDATE SET encoding = excluded.encoding, content = NULL";
    let values = params![&id.as_bytes()[..], reason];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Reads an object, and checks that it is the one that was asked for.
pub(super) fn get(connection: &Connection, id: ObjectId) -> Result<Option<Object>, Failure> {
    let mut sql =
        connection.prepare_cached("SELECT kind, length, encoding, content FROM objects WHERE id = ?1")?;
    let mut rows = sql.query([&id.as_bytes()[..]])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let number = |index| row.get::<_, i64>(index);
    let (kind, length, encoding) = (number(0)?, number(1)?, number(2)?);
    let damaged = |reason: &str| StoreError::DamagedObject { object: id, reason: reason.to_owned() };
    match encoding {
        PRUNED => return Err(StoreError::Pruned { object: id }.into()),
        LOST => return Err(StoreError::LostObject { object: id }.into()),
        _ => {}
    }
    let kind = kind_of(kind).ok_or_else(|| damaged("its kind is not known"))?;
    let content = row.get_ref(3)?;
    let content = content.as_blob().map_err(|_| damaged("it has no content"))?;
    let length = u64::try_from(length).map_err(|_| damaged("its length is none"))?;
    let bytes = match encoding {
        PLAIN => content.to_vec(),
        ZSTD => unpack(content, length).ok_or_else(|| damaged("it does not decompress to its length"))?,
        _ => return Err(damaged("its encoding is not known").into()),
    };
    let object = Object::new(kind, bytes);
    match object.id() == id {
        true => Ok(Some(object)),
        false => Err(damaged("its content is that of another object").into()),
    }
}

/// Decompresses to exactly so many bytes. What claims to be larger than it is costs no memory.
pub(super) fn unpack(packed: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(16 << 20)).ok()?);
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    decoder.take(length.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length).then_some(bytes)
}
