//! Checksums of records, each chained to the one before.
//!
//! The first follows from the session's id, so that a journal under the name of another session is found out; each further
//! one from the one before and the record's text. Whoever changes, swaps or takes out a record in the middle breaks the
//! chain there.

use backstitch_core::id::SessionId;

/// How many bytes a checksum has. Half a BLAKE3 digest is enough to find damage.
const LENGTH: usize = 16;

/// The checksum of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checksum([u8; LENGTH]);

impl Checksum {
    /// What the first record of a session is chained to.
    pub(super) fn start(session: SessionId) -> Self {
        Self::of(&[b"backstitch session ", session.as_uuid().as_bytes()])
    }

    /// The checksum of the record with this text after the record with this checksum.
    pub(super) fn next(self, text: &[u8]) -> Self {
        Self::of(&[&self.0, text])
    }

    /// The checksum of something that stands alone.
    pub(super) fn alone(bytes: &[u8]) -> Self {
        Self::of(&[bytes])
    }

    /// One that was stored.
    pub(super) fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
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
