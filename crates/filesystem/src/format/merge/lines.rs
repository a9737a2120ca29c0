//! Merges of texts by lines.
//!
//! A text is a file without a zero byte that is not too long to be compared by lines. It need not be UTF-8, and its line
//! ends are kept.

use diffy::{ConflictStyle, IncompleteHunkStyle, MergeOptions};

/// Maximum size of a file that is merged by lines.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of lines of such a file. Comparing texts costs time in proportion to their lines and differences.
const MOST_LINES: usize = 100_000;

/// A text that was merged by lines.
pub(super) enum MergedText {
    /// No line was changed on both sides.
    Clean(Vec<u8>),
    /// Some lines were changed on both sides, and stand between markers.
    Marked(Vec<u8>),
}

/// Merges two texts that were made from `base`. Returns `None` if one of them is not a text.
///
/// Lines that repeat can be matched in more than one way, and each match merges to another text. A merge is clean only if
/// comparing the texts from their first line and from their last line comes to the same result.
pub(super) fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<MergedText> {
    if ![base, ours, theirs].into_iter().all(is_text) {
        return None;
    }
    let mut options = MergeOptions::new();
    options.set_conflict_style(ConflictStyle::Merge).set_incomplete_hunk_style(IncompleteHunkStyle::Git);
    let text = match options.merge_bytes(base, ours, theirs) {
        Ok(text) => text,
        Err(marked) => return Some(MergedText::Marked(marked)),
    };
    let from_last = options.merge_bytes(&reversed(base), &reversed(ours), &reversed(theirs));
    let is_certain = from_last.is_ok_and(|from_last| from_last == reversed(&text));
    Some(if is_certain { MergedText::Clean(text) } else { MergedText::Marked(marked(ours, theirs)) })
}

/// Returns the lines of a text in reverse order. A last line without a line end is marked by a zero byte, which no text has.
fn reversed(text: &[u8]) -> Vec<u8> {
    let mut reversed = Vec::with_capacity(text.len() + 2);
    for line in text.split_inclusive(|byte| *byte == b'\n').rev() {
        reversed.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            reversed.extend_from_slice(b"\0\n");
        }
    }
    reversed
}

/// Returns both texts between markers, but for the lines at their beginning and end that they share.
fn marked(ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect() };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let start = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
    let (ours_left, theirs_left) = (&ours[start..], &theirs[start..]);
    let end = ours_left
        .iter()
        .rev()
        .zip(theirs_left.iter().rev())
        .take_while(|(ours, theirs)| ours == theirs)
        .count();
    let (ours_only, shared_end) = ours_left.split_at(ours_left.len() - end);
    let theirs_only = &theirs_left[..theirs_left.len() - end];
    let mut marked = ours[..start].concat();
    for (marker, lines) in [("<<<<<<< ours\n", ours_only), ("=======\n", theirs_only)] {
        marked.extend_from_slice(marker.as_bytes());
        marked.extend(lines.concat());
        if !marked.ends_with(b"\n") {
            marked.push(b'\n');
        }
    }
    marked.extend_from_slice(b">>>>>>> theirs\n");
    marked.extend(shared_end.concat());
    marked
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.len() <= MOST_BYTES
        && !bytes.contains(&0)
        && bytes.iter().filter(|byte| **byte == b'\n').count() <= MOST_LINES
}
