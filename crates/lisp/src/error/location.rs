//! The location of an error for display: line, column, and the line itself with a caret below.

use std::fmt;

/// The number of characters of a line that are shown around the caret.
const SHOWN: usize = 100;
/// The most characters that are shown before the caret.
const SHOWN_BEFORE: usize = 60;

/// A range of the source in byte offsets, the end exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// Creates the span from `start` up to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the text of this span, or `None` if the span is not within `source`.
    pub fn text(self, source: &str) -> Option<&str> {
        source.get(self.start as usize..self.end as usize)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A position in a text, with the excerpt needed to show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in Unicode scalars, counted from 1.
    pub column: u32,
    /// The line, cut to a window around the position; control characters are shown as spaces.
    text: String,
    /// Characters of `text` before the position.
    indent: usize,
    /// Characters of `text` that belong to the span, at least 1.
    width: usize,
}

impl Location {
    /// Locates a span in its text. A span that does not fit the text is moved to its end.
    pub fn find(source: &str, span: Span) -> Self {
        let start = floor_boundary(source, span.start as usize);
        let end = floor_boundary(source, span.end as usize).max(start);
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = source[line_start..start].chars().count();

        let width = source[start..end.min(line_end).max(start)].chars().count().max(1);
        let skipped = column.saturating_sub(SHOWN_BEFORE);
        let mut text: String = source[line_start..line_end]
            .chars()
            .skip(skipped)
            .take(SHOWN)
            .map(|character| if character.is_control() { ' ' } else { character })
            .collect();
        text.truncate(text.trim_end().len());
        let mut indent = column - skipped;
        if skipped > 0 {
            text.insert_str(0, "...");
            indent += 3;
        }
        let width = width.min((SHOWN + 3).saturating_sub(indent)).max(1);
        Self { line: saturating(line), column: saturating(column + 1), text, indent, width }
    }
}

fn saturating(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn floor_boundary(source: &str, offset: usize) -> usize {
    source.floor_char_boundary(offset.min(source.len()))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "  at line {}, column {}", self.line, self.column)?;
        writeln!(f, "  {number} | {}", self.text)?;
        write!(f, "  {gutter} | {}{}", " ".repeat(self.indent), "^".repeat(self.width))
    }
}
