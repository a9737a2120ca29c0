//! Searches the lines of files.
//!
//! Lines are matched one by one, without their terminators, so `^` and `$` match the ends of a line. Files
//! need not be UTF-8, but a zero byte near the start marks a file as binary, and it is skipped. Long lines
//! are cut to an excerpt around the match.

use backstitch_core::ports::{FileKind, Filesystem, FilesystemError};
use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FilePath;
use super::pattern::{PathPattern, line_regex};
use super::search::{SearchLimits, Walk, seen_from};

/// Maximum number of context lines on each side of a match.
const MOST_CONTEXT: usize = 20;

/// Maximum size in bytes of an excerpt, and of its part before the match.
const SHOWN_BYTES: usize = 1_000;
const SHOWN_BEFORE: usize = 200;

/// A zero byte within this many bytes marks a file as binary.
const BINARY_BYTES: usize = 8 * 1024;

/// Scope and options of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrepOptions {
    /// Directory to search, or a single file.
    pub below: FilePath,
    /// Pattern that selects files: for paths relative to `below`, or for names if it contains no `/`.
    pub glob: Option<String>,
    /// Matches without regard to case if true.
    pub ignore_case: bool,
    /// Number of lines to return before and after each match; at most 20.
    pub context_lines: usize,
    /// Treatment of binary files.
    pub binary: BinaryFiles,
    /// Limits of the search.
    pub limits: SearchLimits,
}

impl Default for GrepOptions {
    fn default() -> Self {
        Self {
            below: FilePath::root(),
            glob: None,
            ignore_case: false,
            context_lines: 0,
            binary: BinaryFiles::Skip,
            limits: SearchLimits::default(),
        }
    }
}

/// Treatment of files that look binary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryFiles {
    /// Skip them.
    #[default]
    Skip,
    /// Search them like text.
    Search,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grep {
    /// Matching lines in the order of the walk.
    pub matches: Vec<GrepMatch>,
    /// Number of searched files.
    pub searched: usize,
    /// Number of files and directories that were skipped because they are binary, too large or unreadable.
    pub skipped: usize,
    /// True if a limit ended the search.
    pub truncated: bool,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrepMatch {
    /// File that contains the line.
    #[schemars(with = "String")]
    pub path: FilePath,
    /// Line number, from 1.
    pub line: usize,
    /// The line without its terminator, cut if it is long. Invalid UTF-8 is replaced by replacement
    /// characters.
    pub text: String,
    /// Context lines before the match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Context lines after the match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

pub(super) fn grep<F: Filesystem + ?Sized>(
    filesystem: &F,
    regex: &str,
    options: &GrepOptions,
) -> Result<Grep, FilesystemError> {
    let regex = line_regex(regex, options.ignore_case)?;
    let glob = options.glob.as_deref().map(PathPattern::new).transpose()?;
    let mut search =
        Search { filesystem, regex, options, bytes_left: options.limits.bytes, found: Grep::default() };
    let below = filesystem.stat(&options.below)?;
    match below.kind {
        FileKind::File => {
            search.file(&options.below, below.bytes);
            return Ok(search.found);
        }
        FileKind::Directory => {}
        FileKind::Link | FileKind::Other => {
            return Err(FilesystemError::Special { path: options.below.to_string() });
        }
    }
    let mut walk = Walk::new(filesystem, &options.below, options.limits)?;
    for (path, entry) in walk.by_ref() {
        let selected = glob.as_ref().is_none_or(|glob| glob.selects(seen_from(&path, &options.below)));
        if entry.kind == FileKind::File && selected {
            search.file(&path, entry.bytes);
            if search.found.truncated {
                break;
            }
        }
    }
    search.found.skipped += walk.skipped;
    search.found.truncated |= walk.truncated;
    Ok(search.found)
}

struct Search<'a, F: ?Sized> {
    filesystem: &'a F,
    regex: Regex,
    options: &'a GrepOptions,
    bytes_left: u64,
    found: Grep,
}

impl<F: Filesystem + ?Sized> Search<'_, F> {
    fn file(&mut self, path: &FilePath, bytes: u64) {
        if bytes > self.filesystem.limits().file_bytes {
            self.found.skipped += 1;
            return;
        }
        if bytes > self.bytes_left {
            self.found.truncated = true;
            return;
        }
        let Ok(content) = self.filesystem.read_bytes(path) else {
            self.found.skipped += 1;
            return;
        };
        self.bytes_left = self.bytes_left.saturating_sub(content.len() as u64);
        let start = &content[..content.len().min(BINARY_BYTES)];
        if self.options.binary == BinaryFiles::Skip && start.contains(&0) {
            self.found.skipped += 1;
            return;
        }
        self.found.searched += 1;
        self.lines(path, &content);
    }

    fn lines(&mut self, path: &FilePath, content: &[u8]) {
        let context = self.options.context_lines.min(MOST_CONTEXT);
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').map(without_end).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(place) = self.regex.find(line) else { continue };
            if self.found.matches.len() == self.options.limits.matches {
                self.found.truncated = true;
                return;
            }
            let around = |range: &[&[u8]]| range.iter().map(|line| shown(line, 0)).collect();
            let after = index + 1..lines.len().min(index + 1 + context);
            self.found.matches.push(GrepMatch {
                path: path.clone(),
                line: index + 1,
                text: shown(line, place.start()),
                before: around(&lines[index.saturating_sub(context)..index]),
                after: around(&lines[after]),
            });
        }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Cuts a line to an excerpt around a byte offset.
fn shown(line: &[u8], place: usize) -> String {
    if line.len() <= SHOWN_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = place.saturating_sub(SHOWN_BEFORE).min(line.len() - SHOWN_BYTES);
    let end = start + SHOWN_BYTES;
    let text = String::from_utf8_lossy(&line[start..end]);
    // The cut may have split characters.
    let text = text.trim_matches(char::REPLACEMENT_CHARACTER);
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{text}{after}")
}
