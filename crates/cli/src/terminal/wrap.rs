//! Lines that are broken between words.
//!
//! A line is broken at spaces, and between wide characters such as Chinese ones, but not before a closing mark. A word that is wider than a
//! line, such as an address or a path, gets a line of its own and stays whole: the terminal wraps it, so it can be copied. What is not broken
//! is as it was, with all its spaces.
//!
//! Where a word goes depends on the words before it only, so a text that grows keeps the lines that it has.

use unicode_segmentation::UnicodeSegmentation as _;

use super::escape::safe_line;
use super::layout::width;
use super::style::{Role, Text};

/// The fewest columns of a line.
const LEAST: usize = 8;

/// Marks that stay with the wide character before them.
const CLOSING: &str = "、。，．・：；？！）］｝〉》」』】〕ーゝ々…,.;:!?)]}\"'”’%";

/// Marks that stay with the wide character after them.
const OPENING: &str = "（［｛〈《「『【〔([{“‘\"'";

/// Breaks spans into lines as they are added.
#[derive(Debug, Clone)]
pub(super) struct Wrapper {
    columns: usize,
    /// What lines after the first one begin with.
    indent: Text,
    lines: Vec<Text>,
    line: Text,
    column: usize,
    /// Whether the line has a word.
    has_word: bool,
    /// Spaces between the line and the word.
    spaces: usize,
    /// The word that may continue.
    word: Text,
    word_width: usize,
    last: Option<LastUnit>,
}

impl Wrapper {
    /// Starts a line that begins with `first`. All others begin with `indent`.
    pub(super) fn new(columns: usize, first: Text, indent: Text) -> Self {
        let column = first.width();
        Self {
            columns: columns.max(LEAST),
            indent,
            lines: Vec::new(),
            line: first,
            column,
            has_word: false,
            spaces: 0,
            word: Text::new(),
            word_width: 0,
            last: None,
        }
    }

    /// Continues a line of which this many columns are printed, after a space or inside of a word.
    pub(super) fn continued(columns: usize, column: usize, indent: Text, has_space: bool) -> Self {
        let mut wrapper = Self::new(columns, Text::new(), indent);
        (wrapper.column, wrapper.has_word) = (column, true);
        wrapper.spaces = usize::from(has_space);
        wrapper
    }

    /// Adds text, which may be broken at its spaces.
    pub(super) fn push(&mut self, role: Role, text: &str) {
        let text = safe_line(text);
        let mut rest = &*text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(rest.find(is_gap).unwrap_or(rest.len()));
            self.push_word(role, word);
            let spaces = after.find(|character| !is_gap(character)).unwrap_or(after.len());
            if spaces > 0 {
                self.place_word();
                self.spaces += after[..spaces].chars().count();
                self.last = None;
            }
            rest = &after[spaces..];
        }
    }

    fn push_word(&mut self, role: Role, word: &str) {
        if word.is_ascii() {
            return self.push_unit(role, word, word.len());
        }
        for grapheme in word.graphemes(true) {
            self.push_unit(role, grapheme, width(grapheme));
        }
    }

    /// Adds characters between which no line is broken.
    fn push_unit(&mut self, role: Role, unit: &str, columns: usize) {
        let Some(first) = unit.chars().next() else { return };
        let is_wide = columns == 2 && !unit.is_ascii();
        if self.last.is_some_and(|last| last.can_part(is_wide, first)) {
            self.place_word();
        }
        self.word.extend_last(role, unit);
        self.word_width += columns;
        self.last = Some(LastUnit { is_wide, is_opening: OPENING.contains(first) });
    }

    /// Adds text that is broken only if no line has room for it.
    pub(super) fn push_whole(&mut self, role: Role, text: &str) {
        let columns = width(text);
        if columns + self.indent.width() > self.columns {
            return self.push(role, text);
        }
        self.push_unit(role, text, columns);
    }

    /// Ends the line.
    pub(super) fn break_line(&mut self) {
        self.place_word();
        self.start_line();
        self.last = None;
    }

    /// Returns all lines.
    pub(super) fn finish(mut self) -> Vec<Text> {
        self.place_word();
        self.lines.push(self.line.trimmed());
        self.lines
    }

    /// Returns the lines so far, without the word that may continue, and without a line that has no word yet.
    pub(super) fn certain(mut self) -> Vec<Text> {
        if self.has_word {
            self.lines.push(self.line);
        }
        self.lines
    }

    /// The column after the last word.
    pub(super) fn column(&self) -> usize {
        match self.word_width {
            0 => self.column,
            word if self.is_fitting() => self.column + self.spaces + word,
            word => self.indent.width() + word,
        }
    }

    fn is_fitting(&self) -> bool {
        !self.has_word || self.column + self.spaces + self.word_width <= self.columns
    }

    fn place_word(&mut self) {
        if self.word_width == 0 && self.word.is_empty() {
            return;
        }
        if !self.is_fitting() {
            self.start_line();
        }
        let spaces = if self.has_word { std::mem::take(&mut self.spaces) } else { 0 };
        let line = std::mem::take(&mut self.line).spaces(spaces);
        self.line = line.join(std::mem::take(&mut self.word));
        self.column += spaces + std::mem::take(&mut self.word_width);
        (self.has_word, self.spaces) = (true, 0);
    }

    fn start_line(&mut self) {
        let line = std::mem::replace(&mut self.line, self.indent.clone());
        self.lines.push(line.trimmed());
        (self.column, self.has_word, self.spaces) = (self.indent.width(), false, 0);
    }
}

/// What was added last to a word.
#[derive(Debug, Clone, Copy)]
struct LastUnit {
    is_wide: bool,
    is_opening: bool,
}

impl LastUnit {
    /// Whether a line may be broken between this and a character without a space.
    fn can_part(self, is_next_wide: bool, next: char) -> bool {
        (self.is_wide || is_next_wide) && !self.is_opening && !CLOSING.contains(next)
    }
}

/// Whether a line may be broken at the character.
fn is_gap(character: char) -> bool {
    character.is_whitespace() && character != '\u{a0}'
}

/// Breaks a text into lines that fit into the columns, between words. The lines of a paragraph that is indented are indented alike.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let paragraphs = text.split('\n').flat_map(|paragraph| wrapped_text(&paragraph.into(), columns));
    paragraphs.map(|line| line.text()).collect()
}

/// Breaks a text into lines that fit into the columns, also inside of words that are wider. For texts in a column, which a long word would leave.
pub(crate) fn wrapped_within(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in wrapped(text, columns) {
        let mut part = String::new();
        for grapheme in line.graphemes(true) {
            if width(&part) + width(grapheme) > columns && !part.is_empty() {
                lines.push(std::mem::take(&mut part));
            }
            part.push_str(grapheme);
        }
        lines.push(part);
    }
    lines
}

/// Breaks a line of prose into lines that fit into the columns. A command between backticks stays whole. The second column of
/// a list, which stands behind two spaces, stays a column.
pub(super) fn wrapped_text(text: &Text, columns: usize) -> Vec<Text> {
    let plain = text.text();
    if width(&plain) <= columns {
        return vec![text.clone().trimmed()];
    }
    let spaces = plain.len() - plain.trim_start_matches(' ').len();
    // A deep indentation would leave no room for words.
    let start = if spaces > columns / 2 { 0 } else { spaces };
    let hang = second_column(&plain).filter(|column| *column <= columns / 2).unwrap_or(start);
    let mut wrapper = Wrapper::new(columns, Text::new().spaces(start), Text::new().spaces(hang));
    let mut code = String::new();
    for (role, span) in text.spans() {
        let mut rest = span;
        while let Some((before, after)) = rest.split_once('`') {
            let Some((inner, after)) = after.split_once('`') else { break };
            wrapper.push(role, before);
            code.clear();
            code.extend(["`", inner, "`"]);
            wrapper.push_unit(role, &code, width(&code));
            rest = after;
        }
        wrapper.push(role, rest);
    }
    wrapper.finish()
}

/// Breaks a text that follows the beginning of a line. Its other lines are indented.
pub(crate) fn hanging(first: Text, indent: usize, role: Role, text: &str, columns: usize) -> Vec<Text> {
    let mut wrapper = Wrapper::new(columns, first, Text::new().spaces(indent));
    wrapper.push(role, text);
    wrapper.finish()
}

/// The column behind the first gap of two spaces inside of a line.
fn second_column(line: &str) -> Option<usize> {
    let start = line.len() - line.trim_start_matches(' ').len();
    let gap = start + line[start..].find("  ")?;
    let text = gap + line[gap..].find(|character| character != ' ')?;
    Some(width(&line[..text]))
}

#[cfg(test)]
mod tests;
