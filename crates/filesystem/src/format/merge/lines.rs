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
pub(super) fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<MergedText> {
    if ![base, ours, theirs].into_iter().all(is_text) {
        return None;
    }
    let mut options = MergeOptions::new();
    options.set_conflict_style(ConflictStyle::Merge).set_incomplete_hunk_style(IncompleteHunkStyle::Git);
    Some(match options.merge_bytes(base, ours, theirs) {
        Ok(text) => MergedText::Clean(text),
        Err(text) => MergedText::Marked(text),
    })
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.len() <= MOST_BYTES
        && !bytes.contains(&0)
        && bytes.iter().filter(|byte| **byte == b'\n').count() <= MOST_LINES
}
