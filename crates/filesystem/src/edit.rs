//! Replaces text in a file.
//!
//! An edit gives the exact text to replace. If it does not match, the error says why, so that the next
//! attempt can succeed: the line that is most similar, or the lines on which a text that should be unique
//! occurs.

use backstitch_core::ports::FilesystemError;
use serde::{Deserialize, Serialize};

use super::text::TextFile;

/// Maximum number of occurrences to count; beyond it the report says "more than".
const COUNTED: usize = 100;

/// Maximum number of lines to compare, and of characters in each, in the search for the most similar line.
const COMPARED_LINES: usize = 20_000;
const COMPARED_CHARACTERS: usize = 200;

/// Selects the occurrences to replace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditTarget {
    /// The only occurrence; several are an error.
    #[default]
    Once,
    /// All occurrences.
    All,
}

/// Result of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditReport {
    /// Number of replaced occurrences.
    pub replacements: usize,
    /// Line number of the first replacement, from 1.
    pub first_line: usize,
}

/// Returns the text after an edit.
pub(super) fn replaced(
    file: &TextFile<'_>,
    old: &str,
    new: &str,
    occurrence: EditTarget,
    limit: u64,
) -> Result<(String, EditReport), FilesystemError> {
    let TextFile { path, text } = *file;
    let refuse = |reason: String| FilesystemError::Edit { path: path.to_string(), reason };
    if old.is_empty() {
        return Err(refuse("the text to replace is empty; to fill a file, write it".to_owned()));
    }
    if old == new {
        return Err(refuse(
            "the text to replace and the new text are identical, so nothing would change".to_owned(),
        ));
    }
    let Some(first) = text.find(old) else { return Err(refuse(not_found(text, old))) };
    let replacements = match occurrence {
        EditTarget::All => text.matches(old).count(),
        EditTarget::Once => {
            let places = places(text, old, first);
            if places.len() > 1 {
                return Err(refuse(found_often(text, &places)));
            }
            1
        }
    };
    // Replacing a short text by a long one can need more memory than there is.
    let wanted = text.len() as u128 + replacements as u128 * new.len() as u128
        - replacements as u128 * old.len() as u128;
    if wanted > u128::from(limit) {
        let bytes = u64::try_from(wanted).unwrap_or(u64::MAX);
        return Err(FilesystemError::TooLarge { path: path.to_string(), bytes, limit });
    }
    let edited = EditReport { replacements, first_line: line_at(text, first) };
    Ok((text.replacen(old, new, replacements), edited))
}

/// Offsets of all occurrences, including those that overlap: either could be meant.
fn places(text: &str, old: &str, first: usize) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut places = vec![first];
    while places.len() <= COUNTED {
        let from = places.last().map_or(0, |last| last + step);
        match text[from..].find(old) {
            Some(at) => places.push(from + at),
            None => break,
        }
    }
    places
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn found_often(text: &str, places: &[usize]) -> String {
    let count = match places.len() {
        many if many > COUNTED => format!("more than {COUNTED}"),
        few => few.to_string(),
    };
    let mut lines: Vec<String> = places.iter().map(|at| line_at(text, *at).to_string()).collect();
    lines.dedup();
    let more = if lines.len() > 5 { " and more" } else { "" };
    lines.truncate(5);
    format!(
        "the text to replace occurs {count} times (line {}{more}); include more of the surrounding text to make it unique, or replace all",
        lines.join(", ")
    )
}

fn not_found(text: &str, old: &str) -> String {
    const AGAIN: &str = "read the file again and copy the text exactly";
    if text.is_empty() {
        return "the text to replace was not found: the file is empty; write it instead".to_owned();
    }
    if text.contains("\r\n") && text.replace("\r\n", "\n").contains(&old.replace("\r\n", "\n")) {
        return r"the text to replace was not found: the file's lines end in \r\n, but not all given lines do"
            .to_owned();
    }
    let wanted = old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old);
    match nearest(text, wanted) {
        Some(NearbyLine { number, line }) if line.trim() == wanted.trim() && line != wanted => {
            format!(
                "the text to replace was not found: line {number} differs only in leading or trailing spaces; {AGAIN}"
            )
        }
        Some(NearbyLine { number, line }) if line.trim() == wanted.trim() => {
            format!(
                "the text to replace was not found: line {number} matches its first line, but the lines around it differ; {AGAIN}"
            )
        }
        Some(NearbyLine { number, line }) => {
            let line: String = line.trim().chars().take(COMPARED_CHARACTERS).collect();
            format!("the text to replace was not found; the line most like it is {number}: {line:?}; {AGAIN}")
        }
        None => format!("the text to replace was not found, nor a similar line; {AGAIN}"),
    }
}

struct NearbyLine<'a> {
    number: usize,
    line: &'a str,
}

/// Finds the line that has most in common with the wanted one, or `None` if that is less than half.
fn nearest<'a>(text: &'a str, wanted: &str) -> Option<NearbyLine<'a>> {
    let pairs_of_wanted = pairs(wanted);
    let mut best: Option<(usize, usize, NearbyLine<'a>)> = None;
    for (index, line) in text.lines().take(COMPARED_LINES).enumerate() {
        let found = NearbyLine { number: index + 1, line };
        if line.trim() == wanted.trim() {
            return Some(found);
        }
        let pairs = pairs(line);
        let (common, of) = (2 * in_common(&pairs_of_wanted, &pairs), pairs_of_wanted.len() + pairs.len());
        let better = best.as_ref().is_none_or(|(best, best_of, _)| common * best_of > best * of);
        if 2 * common >= of && of > 0 && better {
            best = Some((common, of, found));
        }
    }
    best.map(|(_, _, near)| near)
}

/// Pairs of neighbouring characters of a line, sorted.
fn pairs(line: &str) -> Vec<(char, char)> {
    let characters = line.trim().chars().take(COMPARED_CHARACTERS);
    let mut pairs: Vec<_> = characters.clone().zip(characters.skip(1)).collect();
    pairs.sort_unstable();
    pairs
}

fn in_common(left: &[(char, char)], right: &[(char, char)]) -> usize {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut count = 0;
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        match one.cmp(other) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                count += 1;
                left.next();
                right.next();
            }
        }
    }
    count
}
