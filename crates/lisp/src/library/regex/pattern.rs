//! Compiled regular expressions and their size limits.

use std::fmt;
use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};

use super::metering::Meter;
use super::translate::translate;
use crate::effort::{self, touch};
use crate::error::{Error, ErrorKind, Result};

/// The longest pattern, in bytes.
const LONGEST: usize = 4_096;
/// Elementary operations for each byte that a compiled pattern may have.
const OPERATIONS_PER_BYTE: usize = 4;
/// The size limits of a compiled pattern. They are tried in turn, so that the first that fits determines the
/// cost.
const SIZES: [usize; 3] = [16 << 10, 64 << 10, 256 << 10];

pub(crate) struct CompiledPattern {
    regex: Regex,
    /// The pattern in the notation of the engine.
    translated: Box<str>,
    /// The pattern that matches only a whole text, compiled on first use.
    whole: OnceLock<Option<Regex>>,
    /// The cost of searches, computed on first use.
    meter: OnceLock<Meter>,
    size: usize,
}

impl fmt::Debug for CompiledPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:?}", self.translated)
    }
}

/// Compiles a pattern in Java's notation.
pub(crate) fn compile_pattern(source: &str) -> Result<CompiledPattern> {
    if source.len() > LONGEST {
        let length = source.len();
        let message = format!("a regular expression of {length} bytes is longer than the {LONGEST} allowed");
        return Err(Error::new(ErrorKind::InvalidRegex, message));
    }
    let translated = translate(source)?;
    for size in SIZES {
        // The time to compile grows with the compiled size, even if it exceeds the limit.
        effort::check(touch(size * OPERATIONS_PER_BYTE))?;
        match build(&translated, size) {
            Ok(regex) => {
                return Ok(CompiledPattern {
                    regex,
                    translated: translated.into(),
                    whole: OnceLock::new(),
                    meter: OnceLock::new(),
                    size,
                });
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => return Err(refusal(&error)),
        }
    }
    let message = "a regular expression is too large once its repetitions are written out";
    Err(Error::new(ErrorKind::InvalidRegex, message).hint("use smaller counts in `{n,m}`"))
}

fn build(translated: &str, size: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated).size_limit(size).dfa_size_limit(size.max(64 << 10)).nest_limit(100).build()
}

/// Extracts the reason from an engine error: its last line. The lines before quote the translated pattern.
fn refusal(error: &regex::Error) -> Error {
    let report = error.to_string();
    let reason = report.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    Error::new(ErrorKind::InvalidRegex, format!("not a regular expression: {reason}"))
}

impl CompiledPattern {
    /// Returns the memory of the pattern, including the caches for matching and the table that counts steps.
    pub(crate) fn bytes(&self) -> usize {
        self.size * 4 + self.translated.len() + (64 << 10)
    }

    /// Returns the fuel for a search that begins at `from`.
    pub(super) fn search_cost(&self, text: &str, from: usize) -> usize {
        if from > text.len() { 1 } else { self.meter().search(text, from) }
    }

    /// Returns the fuel for finding the groups of a match of `bytes` bytes.
    pub(super) fn groups_cost(&self, bytes: usize) -> usize {
        if self.groups() > 1 { self.meter().simulation(bytes) } else { 0 }
    }

    fn meter(&self) -> &Meter {
        self.meter.get_or_init(|| Meter::new(&self.translated, self.size))
    }

    /// Returns the number of groups, including the whole match.
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len()
    }

    /// Returns whether the pattern has a group of this name.
    pub(super) fn has_group(&self, name: &str) -> bool {
        self.regex.capture_names().any(|known| known == Some(name))
    }

    /// Returns the fuel for following all states of the pattern over `bytes` bytes.
    pub(super) fn simulation_cost(&self, bytes: usize) -> usize {
        self.meter().simulation(bytes)
    }

    /// Returns the groups of a match of the whole text, as Java's `matches` finds it: alternatives that match
    /// less are skipped.
    pub(super) fn captures_whole<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let whole = self.whole.get_or_init(|| {
            let translated = &self.translated;
            // A comment of the mode `x` swallows the bracket; a newline, which that mode ignores, ends the
            // comment.
            build(&format!("\\A(?:{translated})\\z"), self.size * 2)
                .or_else(|_| build(&format!("\\A(?:{translated}\n)\\z"), self.size * 2))
                .ok()
        });
        whole.as_ref()?.captures(text)
    }

    /// Returns the next match at or after `from`, and the position from which to search for the one after it.
    /// After an empty match that is the next character, as in Java.
    pub(super) fn captures_at<'t>(&self, text: &'t str, from: usize) -> Option<(Captures<'t>, usize)> {
        if from > text.len() {
            return None;
        }
        let found = self.regex.captures_at(text, from)?;
        let range = found.get_match().range();
        let next = if range.is_empty() {
            range.end + text[range.end..].chars().next().map_or(1, char::len_utf8)
        } else {
            range.end
        };
        Some((found, next))
    }
}
