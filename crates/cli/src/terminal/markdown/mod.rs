//! Markdown of answers, rendered while it streams.
//!
//! Text is shown word by word as it arrives, and nothing that was shown is drawn again. So only what cannot change any more is shown: a word once it has ended, a mark
//! such as `**` once it is closed, a line of code once it is complete, and a table once it has ended. The blocks at the top level, with each item of a list as
//! one, are rendered one after the other, so that the work does not grow with the length of an answer. What is shown does not depend on the pieces in which a
//! text arrives.
//!
//! All text is escaped, as everywhere. Without colours the marks stay, because nothing else would show what they meant. For screen readers there
//! are words in their place, and tables are records.

mod grid;
mod highlight;
mod line;
mod mark;
mod render;

use super::escape::safe;
use super::style::Text;
use highlight::Highlighter;
use line::{Fence, LineKind, is_certain, language_of};
use render::{Continuation, RenderedBlock, Setting, closing_line, opening_line, render};

/// Bytes after which a line is rendered in parts.
const LONG_LINE: usize = 1024;

/// Bytes after which a line without a space, or a line of code, is rendered in parts.
const LONGEST_LINE: usize = 4096;

/// The most bytes of a list item or a quote that are rendered together.
const LARGEST_BLOCK: usize = 8 * 1024;

/// The most bytes of a table.
const LARGEST_TABLE: usize = 64 * 1024;

/// How marks are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Look {
    /// By colours.
    Colors,
    /// As they are.
    #[default]
    Marks,
    /// By words, for screen readers.
    Words,
}

/// What the source that is not complete yet is.
#[derive(Debug, Default)]
enum Block {
    /// Lines of text, or nothing.
    #[default]
    Text,
    /// An item of a list, or a quote.
    Container,
    Table,
    Code(Fence, Highlighter),
}

/// Markdown that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    look: Look,
    columns: usize,
    block: Block,
    /// The complete lines of the block.
    chunk: String,
    /// The line that is not complete yet.
    line: String,
    /// What was printed of the block, without colours.
    printed: String,
    /// Where the block continues a paragraph.
    continued: Option<Continuation>,
    /// The number of the last item, if its list may continue.
    number: Option<u64>,
    /// Whether an empty line stands before the next block.
    has_gap: bool,
    has_output: bool,
    is_inside_line: bool,
}

impl MarkdownStream {
    /// Starts a text for lines of so many columns.
    pub(crate) fn new(look: Look, columns: usize) -> Self {
        Self { look, columns, ..Self::default() }
    }

    /// Adds text, and returns what can be printed now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for piece in safe(text).split_inclusive('\n') {
            self.line.push_str(piece);
            self.print_long_line(&mut out);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.end_line(&line, &mut out);
            }
        }
        self.preview(&mut out);
        out
    }

    /// Ends the text, or interrupts it, and returns the rest of it. The last line has ended then.
    pub(crate) fn flush(&mut self) -> String {
        let mut out = String::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line) + "\n";
            self.end_line(&line, &mut out);
        }
        self.finish_block(&mut out);
        if std::mem::take(&mut self.is_inside_line) {
            out.push('\n');
        }
        out
    }

    /// Whether something was not printed, or the last line has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.is_inside_line || !self.line.is_empty() || !self.chunk.is_empty()
    }

    /// Whether the cursor stands behind text.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.is_inside_line
    }

    /// Adds a complete line.
    fn end_line(&mut self, line: &str, out: &mut String) {
        if let Block::Code(fence, highlighter) = &mut self.block {
            if !self.is_inside_line && fence.is_closed_by(line) {
                let line = closing_line(self.look);
                self.block = Block::Text;
                self.print_line(&line, out);
            } else {
                let line = highlighter.line(line.trim_end_matches('\n'));
                self.print_line(&line, out);
            }
            return;
        }
        if self.can_continue(line) {
            self.chunk.push_str(line);
            let is_large = match self.block {
                Block::Table => self.chunk.len() > LARGEST_TABLE,
                Block::Container => self.chunk.len() > LARGEST_BLOCK,
                _ => self.chunk.len() > LONG_LINE || !self.render("", false).is_waiting,
            };
            if is_large {
                self.finish_block(out);
            }
            return;
        }
        // Without a block, what was printed is the beginning of this line.
        if !self.chunk.is_empty() {
            self.finish_block(out);
        }
        self.start_block(line, out);
    }

    /// Whether a line belongs to the block that is open.
    fn can_continue(&self, line: &str) -> bool {
        let kind = LineKind::of(line);
        match &self.block {
            _ if self.chunk.is_empty() => self.continued.is_some(),
            Block::Table => kind == LineKind::Table,
            Block::Container => kind.is_continuing(&self.chunk, line),
            _ => matches!(kind, LineKind::Text | LineKind::Indented),
        }
    }

    fn start_block(&mut self, line: &str, out: &mut String) {
        let kind = LineKind::of(line);
        if !matches!(kind, LineKind::Item | LineKind::Blank) {
            self.number = None;
        }
        match kind {
            LineKind::Blank => self.has_gap = true,
            LineKind::Fence(fence) => {
                let language = language_of(line);
                self.block = Block::Code(fence, Highlighter::new(language));
                self.begin_output(out);
                self.print_line(&opening_line(language, self.look), out);
            }
            LineKind::Table => {
                self.block = Block::Table;
                self.chunk.push_str(line);
            }
            LineKind::Item | LineKind::Quote => {
                self.block = Block::Container;
                self.chunk.push_str(line);
            }
            _ => {
                self.chunk.push_str(line);
                if kind != LineKind::Text || !self.render("", false).is_waiting {
                    self.finish_block(out);
                }
            }
        }
    }

    /// Prints the whole block, and starts another.
    fn finish_block(&mut self, out: &mut String) {
        if !self.chunk.is_empty() {
            let rendered = self.render("", true);
            if matches!(self.block, Block::Container) {
                self.number = rendered.number;
            }
            self.print_block(&rendered.lines, true, out);
            self.has_gap |= is_blank_at_end(&self.chunk);
        } else if self.continued.is_some() && std::mem::take(&mut self.is_inside_line) {
            out.push('\n');
        }
        if !matches!(self.block, Block::Code(..)) {
            self.block = Block::Text;
        }
        self.continued = None;
        self.chunk.clear();
        self.printed.clear();
    }

    /// Prints what is certain of a block that is not complete.
    fn preview(&mut self, out: &mut String) {
        if matches!(self.block, Block::Table | Block::Code(..)) {
            return;
        }
        if !(self.line.is_empty() || self.continued.is_some() && self.chunk.is_empty()) {
            if !is_certain(&self.line) {
                return;
            }
            if !self.chunk.is_empty() && !self.can_continue(&self.line) {
                self.finish_block(out);
            }
        }
        if self.line.is_empty() && self.chunk.is_empty() {
            return;
        }
        let rendered = self.render(&self.line, false);
        self.print_block(&rendered.lines, false, out);
    }

    /// Prints the beginning of a line that is so long that it is not worth waiting for its end.
    fn print_long_line(&mut self, out: &mut String) {
        loop {
            let is_code = matches!(self.block, Block::Code(..));
            if matches!(self.block, Block::Table)
                || self.line.len() <= if is_code { LONGEST_LINE } else { LONG_LINE }
            {
                return;
            }
            let (long, longest) = (self.boundary(LONG_LINE), self.boundary(LONGEST_LINE));
            let space = self.line[long..longest].find(char::is_whitespace).map(|at| long + at);
            let end = match space.filter(|_| !is_code) {
                Some(space) if self.line[space..].starts_with('\n') => return,
                Some(space) => space,
                None if self.line.len() > longest && self.line[longest..] != *"\n" => longest,
                None => return,
            };
            let rest = self.line.split_off(end);
            let head = std::mem::replace(&mut self.line, rest);
            if let Block::Code(_, highlighter) = &mut self.block {
                let text = highlighter.line(&head);
                text.render(self.look == Look::Colors, out);
                self.is_inside_line = true;
                continue;
            }
            if !self.chunk.is_empty() && !self.can_continue(&head) {
                self.finish_block(out);
            }
            let is_new = self.chunk.is_empty() && self.continued.is_none();
            if is_new && matches!(LineKind::of(&head), LineKind::Table | LineKind::Fence(_)) {
                self.line.insert_str(0, &head);
                return;
            }
            let rendered = self.render(&head, true);
            self.print_block(&rendered.lines, false, out);
            let has_space = space.is_some();
            let (column, indent) = (rendered.column, rendered.indent);
            self.continued = Some(Continuation { column, indent, has_space });
            self.block = Block::Text;
            self.chunk.clear();
            self.printed.clear();
            if has_space {
                self.line.remove(0);
            }
        }
    }

    /// The end of the last character of the line before a place.
    fn boundary(&self, place: usize) -> usize {
        let place = place.min(self.line.len());
        (0..=place).rev().find(|place| self.line.is_char_boundary(*place)).unwrap_or_default()
    }

    fn render(&self, line: &str, is_whole: bool) -> RenderedBlock {
        let (look, columns, continued, number) =
            (self.look, self.columns, self.continued.as_ref(), self.number);
        let setting = Setting { look, columns, continued, number, is_whole };
        match line {
            "" => render(&self.chunk, &setting),
            line if self.chunk.is_empty() => render(line, &setting),
            line => render(&format!("{}{line}", self.chunk), &setting),
        }
    }

    /// Prints what was not printed of a block.
    fn print_block(&mut self, lines: &[Text], is_whole: bool, out: &mut String) {
        let mut plain = lines.iter().map(Text::text).collect::<Vec<_>>().join("\n");
        if is_whole {
            plain.push('\n');
        }
        if lines.is_empty() || self.printed.starts_with(&plain) {
            return;
        }
        if self.printed.is_empty() && self.continued.is_none() {
            self.begin_output(out);
        }
        let mut skipped = self.printed.len();
        if !plain.starts_with(&self.printed) {
            // The beginning of a line means something else than it seemed: the line is printed again.
            let same = plain.bytes().zip(self.printed.bytes()).take_while(|(new, old)| new == old).count();
            skipped =
                plain.as_bytes()[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            out.push('\n');
        }
        let mut place = 0;
        for (number, line) in lines.iter().enumerate() {
            for (role, span) in line.spans() {
                let start = skipped.saturating_sub(place);
                if let Some(rest) = span.get(start..).filter(|rest| !rest.is_empty()) {
                    Text::new().add(role, rest).render(self.look == Look::Colors, out);
                }
                place += span.len();
            }
            if is_whole || number + 1 < lines.len() {
                if place >= skipped {
                    out.push('\n');
                }
                place += 1;
            }
        }
        self.is_inside_line = !plain.ends_with('\n');
        self.printed = plain;
    }

    fn print_line(&mut self, line: &Text, out: &mut String) {
        line.render(self.look == Look::Colors, out);
        out.push('\n');
        self.is_inside_line = false;
    }

    /// Prints the empty line before a block, if there is one.
    fn begin_output(&mut self, out: &mut String) {
        if std::mem::take(&mut self.has_gap) && self.has_output {
            out.push('\n');
        }
        self.has_output = true;
    }
}

/// Whether the last line of a block is empty.
fn is_blank_at_end(chunk: &str) -> bool {
    chunk.lines().next_back().is_some_and(|last| last.trim().is_empty())
}

#[cfg(test)]
mod tests;
