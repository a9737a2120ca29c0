//! The state of a page that is read: what is open, and what is written so far.

use html5gum::StartTag;
use url::Url;

use super::MarkdownPage;
use super::tags::{Block, Tag};
use super::writer::MarkdownWriter;

/// Most parts of a text that are open at once, such as a link inside of emphasis.
const MOST_SPANS: usize = 32;

/// Most cells of a row.
const MOST_CELLS: usize = 64;

/// Longest address of a link that is shown, in bytes.
const LONGEST_LINK: usize = 1024;

/// A part of the text that gets its form when it ends.
struct Span {
    kind: SpanKind,
    /// Where it begins in the text.
    mark: usize,
}

#[derive(Clone, PartialEq)]
enum SpanKind {
    Link(Option<String>),
    /// Emphasis or code in a line, with the mark around it.
    Marked(&'static str),
    Preformatted(String),
    Cell,
}

struct List {
    /// The number of the next item of an ordered list.
    number: Option<u32>,
    has_item: bool,
}

/// A page that is being read.
pub(super) struct Converter {
    writer: MarkdownWriter,
    base: Url,
    title: Option<String>,
    /// The tag whose content is left out, and how often it is open.
    skipped: Option<(String, usize)>,
    is_title: bool,
    spans: Vec<Span>,
    lists: Vec<List>,
    /// The cells of the current row, and the number of rows, of the outermost table.
    cells: Vec<String>,
    rows: usize,
    tables: usize,
}

impl Converter {
    pub(super) fn new(address: &Url) -> Self {
        Self {
            writer: MarkdownWriter::default(),
            base: address.clone(),
            title: None,
            skipped: None,
            is_title: false,
            spans: Vec::new(),
            lists: Vec::new(),
            cells: Vec::new(),
            rows: 0,
            tables: 0,
        }
    }

    /// Whether the text is too long, so that the rest of the page is left out.
    pub(super) fn is_full(&self) -> bool {
        self.writer.is_full
    }

    pub(super) fn finish(mut self) -> MarkdownPage {
        // Tables that have not ended are one.
        self.tables = self.tables.min(1);
        self.end_row();
        while let Some(span) = self.spans.pop() {
            self.end_span(span);
        }
        let title = self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        MarkdownPage {
            is_cut: self.writer.is_full,
            text: self.writer.finish(),
            title: title.filter(|title| !title.is_empty()),
        }
    }

    /// Whether text stands in one line, so that blocks are only spaces.
    fn is_inline(&self) -> bool {
        let in_line = |span: &Span| matches!(span.kind, SpanKind::Link(_) | SpanKind::Cell);
        self.spans.iter().any(in_line)
    }

    fn is_preformatted(&self) -> bool {
        self.spans.iter().any(|span| matches!(span.kind, SpanKind::Preformatted(_)))
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.is_title {
            let title = self.title.get_or_insert_default();
            if title.len() < LONGEST_LINK {
                title.push_str(text);
            }
            return;
        }
        match (&self.skipped, self.is_preformatted()) {
            (Some(_), _) => {}
            (None, true) => self.writer.put(text),
            (None, false) => self.writer.flow(text),
        }
    }

    pub(super) fn open(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == name && !tag.self_closing);
            return;
        }
        let attribute = |name: &str| {
            let value = tag.attributes.get(name.as_bytes())?;
            Some(String::from_utf8_lossy(&value.value).into_owned())
        };
        match Tag::of(&name) {
            // Only the two foreign languages have tags that end themselves.
            Tag::Skipped if !(tag.self_closing && matches!(&*name, "svg" | "math")) => {
                self.skipped = Some((name.into_owned(), 1))
            }
            Tag::Title => self.is_title = true,
            Tag::Base => {
                let base = attribute("href").and_then(|href| self.base.join(&href).ok());
                self.base = base.unwrap_or_else(|| self.base.clone());
            }
            Tag::Link => {
                self.end_open(|kind| matches!(kind, SpanKind::Link(_)));
                self.begin_span(SpanKind::Link(attribute("href").and_then(|href| self.target(&href))));
            }
            Tag::Image => self.image(attribute("alt"), attribute("src")),
            Tag::Marked(mark) if !self.is_preformatted() => self.begin_span(SpanKind::Marked(mark)),
            Tag::LineBreak if self.is_preformatted() => self.writer.put("\n"),
            Tag::LineBreak => self.block(1),
            Tag::Rule => {
                self.block(2);
                if !self.is_inline() {
                    self.writer.put("---");
                }
                self.block(2);
            }
            Tag::Block(block) => self.open_block(block, attribute("class")),
            Tag::Skipped | Tag::Marked(_) | Tag::Other => {}
        }
    }

    fn open_block(&mut self, block: Block, class: Option<String>) {
        if self.is_preformatted() {
            return;
        }
        match block {
            Block::Paragraph => self.block(2),
            Block::Line => self.block(1),
            Block::Heading(level) => {
                self.block(2);
                if !self.is_inline() {
                    self.writer.put(&"#".repeat(level));
                    self.writer.space();
                }
            }
            Block::Preformatted => {
                self.block(2);
                let language = class.as_deref().and_then(language_of).unwrap_or_default();
                self.begin_span(SpanKind::Preformatted(language));
            }
            Block::Quotation => {
                self.block(2);
                self.writer.indent("> ", None);
            }
            Block::List { is_ordered } => {
                self.block(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(List { number: is_ordered.then_some(1), has_item: false });
            }
            Block::Item => self.open_item(),
            Block::Table => {
                self.tables += 1;
                if self.tables == 1 {
                    self.block(2);
                    self.rows = 0;
                }
            }
            Block::Row => self.end_row(),
            Block::Cell => self.open_cell(),
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match Tag::of(name) {
            Tag::Title => self.is_title = false,
            Tag::Link => self.end_open(|kind| matches!(kind, SpanKind::Link(_))),
            Tag::Marked(mark) => self.end_open(|kind| *kind == SpanKind::Marked(mark)),
            Tag::Block(block) => self.close_block(block),
            _ => {}
        }
    }

    fn close_block(&mut self, block: Block) {
        match block {
            Block::Preformatted => {
                self.end_open(|kind| matches!(kind, SpanKind::Preformatted(_)));
                self.block(2);
            }
            _ if self.is_preformatted() => {}
            Block::Paragraph | Block::Heading(_) => self.block(2),
            Block::Line => self.block(1),
            Block::Quotation => {
                self.block(2);
                self.writer.outdent();
            }
            Block::List { .. } => {
                self.close_item();
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            Block::Item => self.close_item(),
            Block::Table => {
                self.end_row();
                self.tables = self.tables.saturating_sub(1);
                self.block(2);
            }
            Block::Row => self.end_row(),
            Block::Cell => self.end_cell(),
        }
    }

    /// Begins a new line or a new block, or only a space where the text stands in one line.
    fn block(&mut self, breaks: usize) {
        if self.is_inline() {
            self.writer.space();
            return;
        }
        if breaks == 1 && !self.spans.is_empty() && self.writer.is_fresh() {
            return;
        }
        if breaks > 1 {
            // Marks do not reach into another block: their text stays without them.
            self.spans.retain(|span| !matches!(span.kind, SpanKind::Marked(_)));
        }
        self.writer.end(breaks);
    }

    fn open_item(&mut self) {
        self.close_item();
        if self.is_inline() {
            self.writer.space();
            return;
        }
        self.block(1);
        let Some(list) = self.lists.last_mut() else {
            return self.writer.put("- ");
        };
        list.has_item = true;
        let (prefix, marker) = match &mut list.number {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                ("   ", marker)
            }
            None => ("  ", "- ".to_owned()),
        };
        self.writer.indent(prefix, Some(marker));
    }

    fn close_item(&mut self) {
        if let Some(list) = self.lists.last_mut().filter(|list| list.has_item) {
            list.has_item = false;
            self.block(1);
            self.writer.outdent();
        }
    }

    fn open_cell(&mut self) {
        if self.tables != 1 {
            return self.writer.space();
        }
        self.end_cell();
        self.begin_span(SpanKind::Cell);
    }

    fn end_cell(&mut self) {
        if self.tables == 1 {
            self.end_open(|kind| *kind == SpanKind::Cell);
        }
    }

    /// Writes the cells of a row. A row with one cell is a part of a layout.
    fn end_row(&mut self) {
        if self.tables > 1 {
            return self.writer.space();
        }
        self.end_cell();
        let cells = std::mem::take(&mut self.cells);
        let is_empty = cells.iter().all(String::is_empty);
        match &cells[..] {
            _ if is_empty => {}
            [text] => {
                self.block(2);
                self.writer.put(text);
                self.block(2);
            }
            cells => {
                self.block(1);
                self.writer.put(&format!("| {} |", cells.join(" | ")));
                self.block(1);
                if self.rows == 0 {
                    self.writer.put(&format!("|{}", " --- |".repeat(cells.len())));
                    self.block(1);
                }
                self.rows += 1;
            }
        }
    }

    fn begin_span(&mut self, kind: SpanKind) {
        if self.spans.len() < MOST_SPANS {
            let mark = self.writer.mark();
            self.spans.push(Span { kind, mark });
        }
    }

    /// Ends the innermost span of a kind, and those inside of it.
    fn end_open(&mut self, is_kind: impl Fn(&SpanKind) -> bool) {
        let Some(at) = self.spans.iter().rposition(|span| is_kind(&span.kind)) else { return };
        while self.spans.len() > at {
            if let Some(span) = self.spans.pop() {
                self.end_span(span);
            }
        }
    }

    fn end_span(&mut self, span: Span) {
        let (text, due) = self.writer.take_since(span.mark);
        if let SpanKind::Preformatted(language) = &span.kind {
            return self.code(&text, language);
        }
        let plain = text.trim();
        if text.starts_with(' ') {
            self.writer.space();
        }
        match span.kind {
            SpanKind::Cell => {
                if self.cells.len() < MOST_CELLS {
                    self.cells.push(plain.replace('\n', " ").replace('|', "\\|"));
                }
                return;
            }
            _ if plain.is_empty() => {}
            SpanKind::Link(Some(target))
                if self.spans.iter().all(|span| !matches!(span.kind, SpanKind::Link(_))) =>
            {
                self.writer.put(&format!("[{plain}]({target})"));
            }
            SpanKind::Marked("`") => {
                let fence = "`".repeat(longest_run(plain) + 1);
                let pad = if plain.starts_with('`') || plain.ends_with('`') { " " } else { "" };
                self.writer.put(&format!("{fence}{pad}{plain}{pad}{fence}"));
            }
            SpanKind::Marked(mark) => self.writer.put(&format!("{mark}{plain}{mark}")),
            SpanKind::Link(_) | SpanKind::Preformatted(_) => self.writer.put(plain),
        }
        self.writer.add_due(due);
    }

    /// Writes code between fences that it does not hold.
    fn code(&mut self, text: &str, language: &str) {
        let text = text.trim_matches('\n').trim_end();
        if text.is_empty() {
            return;
        }
        if self.is_inline() {
            return self.writer.flow(text);
        }
        let fence = "`".repeat(longest_run(text).max(2) + 1);
        self.writer.lines(&format!("{fence}{language}\n{text}\n{fence}"));
    }

    fn image(&mut self, description: Option<String>, source: Option<String>) {
        let description = description.unwrap_or_default();
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if description.is_empty() || self.is_preformatted() {
            return;
        }
        match source.and_then(|source| self.target(&source)) {
            Some(target) if !self.is_inline() => self.writer.put(&format!("![{description}]({target})")),
            _ => self.writer.put(&description),
        }
    }

    /// Completes the address of a link. Those that only a browser can follow are left out.
    fn target(&self, address: &str) -> Option<String> {
        let address = address.trim();
        if address.is_empty() || address.starts_with('#') {
            return None;
        }
        let url = self.base.join(address).ok()?;
        let is_shown =
            matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= LONGEST_LINK;
        is_shown.then(|| url.as_str().replace('(', "%28").replace(')', "%29"))
    }
}

/// Returns the language of code by the class of its tag, as highlighters name it.
fn language_of(class: &str) -> Option<String> {
    let is_word = |name: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+#-_".contains(&byte);
        (1..=20).contains(&name.len()) && name.bytes().all(is_letter)
    };
    let names = class
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("language-").or(name.strip_prefix("lang-")));
    names.filter(is_word).map(str::to_owned).next()
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}
