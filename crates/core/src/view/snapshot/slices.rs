//! The slices of a snapshot: a directory of pages, and the texts of the pages after the view.

use std::sync::Arc;

use super::ViewSnapshotError;
use crate::extra::Extra;
use crate::journal::InnerMessage;
use crate::pack::{Pack, Packer, Unpacker, packed_structs};
use crate::session::{Cell, PageHeader, Slice, SliceMap, SlicePolicy};

/// A slice without its items.
struct SliceEntry {
    name: Arc<str>,
    policy: SlicePolicy,
    extra: Extra,
    pages: Vec<PageHeader>,
}

packed_structs! {
    SliceEntry { name, policy, extra, pages }
}

/// Encodes the directory, and appends the texts to `texts`.
pub(super) fn pack(slices: &SliceMap, to: &mut Packer, texts: &mut Vec<u8>) -> Result<(), ViewSnapshotError> {
    let mut entries = Vec::new();
    for (name, cell) in slices.cells() {
        if cell.is_partial() {
            return Err(ViewSnapshotError::UnknownFields { slice: name.to_string() });
        }
        let (policy, extra) = (cell.policy(), cell.extra().clone());
        entries.push(SliceEntry { name: name.clone(), policy, extra, pages: cell.write_pages(texts)? });
    }
    entries.pack(to);
    Ok(())
}

/// Decodes the directory. The texts of all slices follow each other from `start` to the end.
pub(super) fn unpack(
    from: &mut Unpacker<'_>,
    bytes: &Arc<Vec<u8>>,
    start: usize,
) -> Result<SliceMap, ViewSnapshotError> {
    let malformed = |what: &str| ViewSnapshotError::Malformed(what.into());
    let mut slices = SliceMap::default();
    let mut start = start;
    for entry in Vec::<SliceEntry>::unpack(from)? {
        let SliceEntry { name, policy, extra, pages } = entry;
        let length = PageHeader::total(&pages).ok_or_else(|| malformed("pages are too long"))?;
        let end = start.checked_add(length).filter(|end| *end <= bytes.len());
        let text =
            end.and_then(|end| bytes.get(start..end)).ok_or_else(|| malformed("a slice ends too early"))?;
        // The transcript is by far the longest slice. It alone keeps the buffer, so that the buffer is dropped
        // with its pages.
        let cell = match &*name == InnerMessage::NAME {
            true => Cell::paged(&name, policy, extra, &pages, (bytes, start)),
            false => Cell::paged(&name, policy, extra, &pages, (&Arc::new(text.to_vec()), 0)),
        };
        let cell = cell.ok_or_else(|| malformed("a slice has too many items"))?;
        if slices.cell(&name).is_some() {
            return Err(malformed("a slice stands there twice"));
        }
        slices.put(name, Arc::new(cell));
        start += length;
    }
    match start == bytes.len() {
        true => Ok(slices),
        false => Err(malformed("the slices are followed by something else")),
    }
}
