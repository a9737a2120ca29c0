//! Snapshots of views: all data that is derived from a journal up to a cut, as bytes.
//!
//! A session is opened from a snapshot and the records after its cut, instead of all records. A snapshot is
//! only a cache of the journal: [`JournalView::decode_snapshot`] refuses snapshots of other versions of the
//! program, and the session is then opened from its records. So no older format has to be read, and the format
//! can be changed at any time by raising [`FORMAT`].
//!
//! The bytes are a header, the view without the items of its slices, and the items as texts in pages
//! (`session/pages.rs`), of which only the last page of the transcript is decoded at once. There is no
//! checksum; stores have one.

mod records;
mod slices;
mod visible;

use std::sync::Arc;

use super::fold::JournalView;
use super::lineage::Lineage;
use super::visible::VisibleState;
use crate::digest::Digest;
use crate::journal::{Position, RecordBody};
use crate::pack::{Pack, Packer, UnpackError, Unpacker};
use crate::session::{Cell, SessionError};

/// Version of the format.
const FORMAT: u32 = 6;

/// First bytes of every snapshot.
const BEGINNING: &[u8; 8] = b"bs-view\n";

/// An error for a view that cannot be encoded, or for bytes that cannot be decoded to a view. The journal is
/// not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewSnapshotError {
    /// The bytes are not a snapshot of a view.
    #[error("the bytes are not a snapshot of a view")]
    NotASnapshot,
    /// The snapshot was written by another version of the program.
    #[error("the snapshot was written by another version of the program")]
    OtherVersion,
    /// The snapshot cannot be decoded.
    #[error("the snapshot does not parse")]
    Malformed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The items of a slice cannot be encoded or decoded.
    #[error("the slices of the snapshot cannot be used")]
    Slice(#[from] SessionError),
    /// Stored items of a slice have fields that their type does not know.
    #[error("slice {slice:?} has stored fields that its type does not know, and that a snapshot would lose")]
    UnknownFields {
        /// Stored name of the slice.
        slice: String,
    },
    /// A value cannot be encoded as JSON.
    #[error("the view cannot be encoded")]
    Json(#[from] serde_json::Error),
}

impl From<UnpackError> for ViewSnapshotError {
    fn from(error: UnpackError) -> Self {
        Self::Malformed(Box::new(error))
    }
}

impl JournalView {
    /// Encodes the view.
    pub fn encode_snapshot(&self) -> Result<Vec<u8>, ViewSnapshotError> {
        let Self { created, head, lineage, ledger, stops, isolation, facts, visible } = self;
        let mut texts = Vec::new();
        let mut body = Packer::default();
        head.pack(&mut body);
        created.pack(&mut body);
        lineage.pack(&mut body);
        ledger.pack(&mut body);
        stops.pack(&mut body);
        isolation.pack(&mut body);
        facts.pack(&mut body);
        visible.pack(&mut body, &mut texts)?;
        let body = body.finish()?;
        let mut bytes = Vec::with_capacity(BEGINNING.len() + 32 + 8 + body.len() + texts.len());
        bytes.extend_from_slice(BEGINNING);
        bytes.extend_from_slice(fingerprint().as_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&texts);
        Ok(bytes)
    }

    /// Decodes a view. Of the transcript, only the last page is decoded.
    pub fn decode_snapshot(bytes: Vec<u8>) -> Result<Self, ViewSnapshotError> {
        let bytes = Arc::new(bytes);
        let mut header = Unpacker::new(&bytes);
        if header.array()? != *BEGINNING {
            return Err(ViewSnapshotError::NotASnapshot);
        }
        if header.array()? != *fingerprint().as_bytes() {
            return Err(ViewSnapshotError::OtherVersion);
        }
        let length = usize::try_from(u64::from_le_bytes(header.array()?)).unwrap_or(usize::MAX);
        let mut body = Unpacker::new(header.raw(length)?);
        let texts = bytes.len() - header.rest().len();
        let (head, created) = <(Position, _)>::unpack(&mut body)?;
        let (lineage, ledger) = <(Lineage, _)>::unpack(&mut body)?;
        let (stops, isolation) = Pack::unpack(&mut body)?;
        let facts = Pack::unpack(&mut body)?;
        let visible = VisibleState::unpack(&mut body, &bytes, texts)?;
        if !body.rest().is_empty() || !lineage.fits(head) {
            return Err(ViewSnapshotError::Malformed("the view does not agree with itself".into()));
        }
        let view = Self { created, head, lineage, ledger, stops, isolation, facts, visible };
        // An error that concerns all messages is found here, before the session is used.
        let messages = view.message_count();
        view.messages(messages.saturating_sub(1)..messages)?;
        Ok(view)
    }
}

/// Returns a digest of the format, the version of the program, and the kinds of records with their versions.
fn fingerprint() -> Digest {
    let kinds = RecordBody::KINDS.iter().map(|(kind, version)| format!(" {kind}={version}"));
    let text: String = [format!("{FORMAT} {}", env!("CARGO_PKG_VERSION"))].into_iter().chain(kinds).collect();
    Digest::of(text.as_bytes())
}

impl JournalView {
    /// Returns the name of the first part in which two views differ, or `None` if they agree. Items of slices
    /// are compared as plain data. Items of different versions are only counted.
    pub fn difference(&self, other: &Self) -> Result<Option<&'static str>, SessionError> {
        let (one, two) = (&self.visible, &other.visible);
        let parts = [
            ("head", self.head == other.head),
            ("creation", self.created == other.created),
            ("lineage", self.lineage == other.lineage),
            ("ledger", self.ledger == other.ledger),
            ("stops", self.stops == other.stops),
            ("isolation", self.isolation == other.isolation),
            ("summary", self.summary() == other.summary()),
            ("evaluations", one.evaluations == two.evaluations),
            ("calls", one.calls == two.calls),
            ("pauses", one.pauses == two.pauses),
            ("time", (one.last_at, one.is_driven) == (two.last_at, two.is_driven)),
            (
                "files",
                (one.files, one.writer, one.files_are_owed) == (two.files, two.writer, two.files_are_owed),
            ),
            ("resources", one.resources == two.resources),
            ("ancestors", one.ancestors == two.ancestors),
        ];
        if let Some((part, _)) = parts.into_iter().find(|(_, agree)| !agree) {
            return Ok(Some(part));
        }
        let mut others = two.state.cells();
        for (name, cell) in one.state.cells() {
            match others.next() {
                Some((other_name, other)) if name == other_name && agree(cell, other)? => {}
                _ => return Ok(Some("slices")),
            }
        }
        Ok(others.next().map(|_| "slices"))
    }
}

fn agree(one: &Cell, other: &Cell) -> Result<bool, SessionError> {
    if one.policy() != other.policy() || one.extra() != other.extra() || one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.plain_items().zip(other.plain_items()) {
        let (one, other) = (one?, other?);
        if one.version == other.version && one.value != other.value {
            return Ok(false);
        }
    }
    Ok(true)
}
