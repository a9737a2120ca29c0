//! Objects in the form in which stores keep them: compressed with zstd where that makes them smaller.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;

/// Maximum size of a stored object in bytes: SQLite's limit for a value, less some room for the rest of the
/// row.
const MOST: u64 = 999_000_000;

/// Minimum size in bytes for which compression is worth its time.
const WORTH_PACKING: usize = 96;

/// Default level of zstd, about as fast as the disk.
const LEVEL: i32 = 3;

/// Largest stored form that a server keeps in one row, in bytes.
#[cfg(feature = "postgres")]
pub(crate) const INLINE: u64 = 256 << 10;

/// About what a row costs a server beside its content: in tables, indexes and the log, in bytes.
#[cfg(feature = "postgres")]
const ROW: u64 = 1 << 10;

/// Encodings of content. Rows without content have a [`Presence`] as their encoding.
pub(crate) const PLAIN: i64 = 0;
pub(crate) const ZSTD: i64 = 1;

/// Compressor. Contexts are large, so they are reused.
#[derive(Default)]
pub(crate) struct Packer {
    idle: Mutex<Vec<zstd::bulk::Compressor<'static>>>,
}

impl Packer {
    /// Compresses with zstd.
    pub(crate) fn pack(&self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
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

/// An object in its stored form.
pub(crate) struct CompressedObject {
    pub(crate) object: Object,
    /// Compressed content, if it is smaller than the object.
    zstd: Option<Vec<u8>>,
}

impl CompressedObject {
    pub(crate) fn new(packer: &Packer, object: Object) -> Result<Self, StoreError> {
        let bytes = object.bytes();
        let zstd = if bytes.len() < WORTH_PACKING {
            None
        } else {
            Some(packer.pack(bytes)?).filter(|packed| packed.len() < bytes.len())
        };
        let packed = Self { object, zstd };
        let bytes = packed.stored_bytes();
        if bytes > MOST {
            let what = format!("object {}", packed.object.id());
            return Err(StoreError::TooLarge { what, bytes, limit: MOST });
        }
        Ok(packed)
    }

    /// Stored size in bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.content().1.len() as u64
    }

    /// Whether a store in a server divides the object into parts.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_large(&self) -> bool {
        self.stored_bytes() > INLINE
    }

    /// What a transaction of a server writes for the object, in bytes. Parts are written before it.
    #[cfg(feature = "postgres")]
    pub(crate) fn row_bytes(&self) -> u64 {
        ROW + if self.is_large() { 0 } else { self.stored_bytes() }
    }

    /// Encoding and stored form.
    pub(crate) fn content(&self) -> (i64, &[u8]) {
        match &self.zstd {
            Some(packed) => (ZSTD, packed),
            None => (PLAIN, self.object.bytes()),
        }
    }
}

/// Stored number of a kind.
pub(crate) fn word_of(kind: ObjectKind) -> i64 {
    match kind {
        ObjectKind::Tree => 2,
        ObjectKind::Commit => 3,
        _ => 1,
    }
}

pub(crate) fn kind_of(word: i64) -> Option<ObjectKind> {
    [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit].into_iter().find(|kind| word_of(*kind) == word)
}

/// State of an object in the store, known without reading its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Stored,
    Absent,
    Pruned = 2,
    Lost = 3,
    Redacted = 4,
}

impl Presence {
    /// State of an object that has a row with this encoding.
    pub(crate) fn of(encoding: i64) -> Self {
        let marks = [Self::Pruned, Self::Lost, Self::Redacted];
        marks.into_iter().find(|mark| *mark as i64 == encoding).unwrap_or(Self::Stored)
    }

    /// Fails unless the object is stored. A redacted one counts as stored: what remains of it is known.
    pub(crate) fn require(self, object: ObjectId) -> Result<(), StoreError> {
        match self {
            Self::Stored | Self::Redacted => Ok(()),
            Self::Absent => Err(StoreError::MissingObject { object }),
            Self::Pruned => Err(StoreError::Pruned { object }),
            Self::Lost => Err(StoreError::LostObject { object }),
        }
    }
}

/// Decompresses to exactly `length` bytes. A false length reserves at most 16 MiB.
pub(crate) fn unpack(packed: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(16 << 20)).ok()?);
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    decoder.take(length.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length).then_some(bytes)
}
