//! Text with the marks of Markdown, written from left to right.
//!
//! White space is joined, breaks between blocks are collected until the next text, and each line begins with the prefixes
//! of the quotations and lists around it. A part of the text can be removed again while it is written, for links and code.

/// How deep quotations and lists are shown. Deeper ones continue at this depth.
const DEEPEST: usize = 12;

/// Most bytes of a text. Prefixes make it longer than its source.
const MOST: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct MarkdownWriter {
    text: String,
    line: Line,
    /// What is due before the next text.
    due: DueSpace,
    /// What each line begins with.
    prefixes: Vec<&'static str>,
    /// Prefixes that are too deep to be shown.
    hidden: usize,
    /// The mark of a list item, in place of the last prefix of the next line.
    marker: Option<String>,
    /// How many prefixes the last line has in common with the next one.
    shared: usize,
    /// Whether the text is too long, so that the rest is left out.
    pub(super) is_full: bool,
}

/// White space that is due before the next text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DueSpace {
    /// Line ends: 1 for a line, 2 for a block.
    breaks: usize,
    /// Whether there is a space.
    pub(super) space: bool,
}

/// The current line, and how it was begun.
#[derive(Debug, Default)]
struct Line {
    /// Length of the text before it.
    before: usize,
    /// Where its text begins, after the prefixes.
    start: usize,
    breaks: usize,
    shared: usize,
    marker: Option<String>,
}

impl MarkdownWriter {
    /// Adds text in which white space is joined.
    pub(super) fn flow(&mut self, text: &str) {
        for (index, word) in text.split(is_space).enumerate() {
            self.due.space |= index > 0;
            if !word.is_empty() {
                self.put(word);
            }
        }
    }

    /// Adds text as it is, after what is due before it.
    pub(super) fn put(&mut self, text: &str) {
        if self.text.len() > MOST {
            self.is_full = true;
            return;
        }
        if self.due.breaks > 0 || self.text.is_empty() {
            self.begin_line();
        } else if self.due.space && !self.is_fresh() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        self.due.space = false;
        self.text.push_str(text);
    }

    /// Adds lines as they are, each behind the prefixes.
    pub(super) fn lines(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.due.breaks = 1;
            }
            self.put(line);
        }
    }

    /// Ends the line: the next text begins after so many line ends. A line without text is not kept.
    pub(super) fn end(&mut self, breaks: usize) {
        if self.due.breaks == 0 && self.is_fresh() {
            self.text.truncate(self.line.before);
            self.due.breaks = self.line.breaks;
            self.shared = self.line.shared.min(self.prefixes.len());
            self.marker = self.line.marker.take();
        }
        self.due = DueSpace { breaks: self.due.breaks.max(breaks), space: false };
    }

    /// Adds a space if text follows.
    pub(super) fn space(&mut self) {
        self.due.space = true;
    }

    /// Begins a quotation or a list item.
    pub(super) fn indent(&mut self, prefix: &'static str, marker: Option<String>) {
        if self.prefixes.len() >= DEEPEST {
            self.hidden += 1;
            return;
        }
        self.prefixes.push(prefix);
        self.marker = marker;
    }

    /// Ends it.
    pub(super) fn outdent(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
            return;
        }
        self.prefixes.pop();
        self.shared = self.shared.min(self.prefixes.len());
        self.marker = None;
    }

    /// Whether the current line has no text yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.text.len() == self.line.start
    }

    /// Writes what is due, and returns where the next text begins.
    pub(super) fn mark(&mut self) -> usize {
        self.put("");
        self.text.len()
    }

    /// Removes the text since a mark, and returns it with what is due after it.
    pub(super) fn take_since(&mut self, mark: usize) -> (String, DueSpace) {
        let at = self.text.floor_char_boundary(mark.min(self.text.len()));
        (self.text.split_off(at), std::mem::take(&mut self.due))
    }

    /// Adds white space before the next text.
    pub(super) fn add_due(&mut self, due: DueSpace) {
        self.due = DueSpace { breaks: self.due.breaks.max(due.breaks), space: self.due.space | due.space };
    }

    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    fn begin_line(&mut self) {
        let (before, breaks, shared) = (self.text.len(), self.due.breaks, self.shared);
        if !self.text.is_empty() {
            self.text.push('\n');
            if breaks > 1 {
                // An empty line inside of a quotation belongs to it.
                let prefix = self.prefixes[..shared.min(self.prefixes.len())].concat();
                self.text.push_str(prefix.trim_end());
                self.text.push('\n');
            }
        }
        let marker = self.marker.take();
        let shown = self.prefixes.len() - usize::from(marker.is_some());
        self.prefixes[..shown].iter().for_each(|prefix| self.text.push_str(prefix));
        self.text.push_str(marker.as_deref().unwrap_or_default());
        self.line = Line { before, start: self.text.len(), breaks, shared, marker };
        (self.due.breaks, self.shared) = (0, self.prefixes.len());
    }
}

/// Whether HTML joins this character with others to one space.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}
