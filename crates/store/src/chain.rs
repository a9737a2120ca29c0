//! Checksums of records, each chained to its predecessor.
//!
//! The first checksum derives from the session's id, so a journal under another session's name is detected.
//! Each further one derives from its predecessor and the record's text. Changing, swapping or removing a
//! record in the middle breaks the chain there.

use backstitch_core::id::SessionId;

/// Length of a checksum in bytes. Half a BLAKE3 digest is enough to detect damage.
const LENGTH: usize = 16;

/// Checksum of a record, of the records before it, and of the session's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum([u8; LENGTH]);

impl Checksum {
    /// Start of a session's chain, before its first record.
    pub(crate) fn start(session: SessionId) -> Self {
        Self::of(&[b"backstitch session ", session.as_uuid().as_bytes()])
    }

    /// Checksum of the next record in the chain.
    pub(crate) fn next(self, text: &[u8]) -> Self {
        Self::of(&[&self.0, text])
    }

    /// Checksum of bytes that belong to no chain.
    pub(crate) fn alone(bytes: &[u8]) -> Self {
        Self::of(&[bytes])
    }

    /// Reads a stored checksum, or returns `None` if its length is wrong.
    pub(crate) fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        let mut short = [0; LENGTH];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..LENGTH]);
        Self(short)
    }
}
