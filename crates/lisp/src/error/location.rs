//! Where in a text an error is, for eyes: line, column, and the line itself with a caret below.

use std::fmt;

/// How many characters of a line are shown around the caret.
const SHOWN: usize = 100;
/// How many of them stand before it at most.
const SHOWN_BEFORE: usize = 60;

/// A piece of the source: byte offsets, the end exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Where the piece begins.
    pub start: u32,
    /// Where it has ended.
    pub end: u32,
}

impl Span {
    /// The piece from `start` up to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest piece that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The text of this piece, or nothing if the piece does not lie in `source`.
    pub fn text(self, source: &str) -> Option<&str> {
        source.get(self.start as usize..self.end as usize)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A place in a text, with as much of the text as is needed to show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in Unicode scalars, counted from 1.
    pub column: u32,
    /// The line, cut to a window around the place; control characters shown as spaces.
    text: String,
    /// How many characters of `text` stand before the place.
    indent: usize,
    /// How many characters of `text` belong to it, at least 1.
    width: usize,
}

impl Location {
    /// Finds a span in the text it refers to. A span that does not fit the text is moved to its end.
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
