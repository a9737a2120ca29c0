//! A block of Markdown as lines.
//!
//! The source is read by `pulldown-cmark`. Lines of a paragraph stay lines: models put names, values and verses on lines of their own. Items of lists hang,
//! quotes have a bar, code stands as it is, and the address of a link follows its text.

mod code;
mod frame;
mod inline;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::super::style::{Role, Text};
use super::super::wrap::Wrapper;
use super::Look;
use super::grid::{Grid, GridCell};
use super::mark::{is_without_marks, loose_mark, options, with_own_marks};
pub(super) use code::{closing_line, opening_line};
use frame::Container;
use inline::address_of;

/// The most columns of a rule.
const LONGEST_RULE: usize = 40;

/// A paragraph whose beginning is printed already.
#[derive(Debug, Clone)]
pub(super) struct Continuation {
    pub(super) column: usize,
    pub(super) indent: usize,
    pub(super) has_space: bool,
}

/// How a block is rendered.
pub(super) struct Setting<'a> {
    pub(super) look: Look,
    pub(super) columns: usize,
    pub(super) continued: Option<&'a Continuation>,
    /// The number of the item before it, if that was of the same list.
    pub(super) number: Option<u64>,
    /// Whether the source is complete.
    pub(super) is_whole: bool,
}

/// The lines of a block.
#[derive(Debug, Default)]
pub(super) struct RenderedBlock {
    pub(super) lines: Vec<Text>,
    /// Whether a mark waits for what follows the source.
    pub(super) is_waiting: bool,
    /// Where a paragraph that continues would continue.
    pub(super) column: usize,
    pub(super) indent: usize,
    /// The number of the last item of the outermost list.
    pub(super) number: Option<u64>,
}

/// Renders a block.
pub(super) fn render(source: &str, setting: &Setting<'_>) -> RenderedBlock {
    if is_without_marks(source) && setting.continued.is_none() {
        let mut wrapper = Wrapper::new(setting.columns, Text::new(), Text::new());
        wrapper.push(Role::Plain, source.trim_end());
        if source.ends_with(char::is_whitespace) {
            wrapper.push(Role::Plain, " ");
        }
        let column = wrapper.column();
        let lines = if setting.is_whole { wrapper.finish() } else { wrapper.certain() };
        return RenderedBlock { lines, column, ..RenderedBlock::default() };
    }
    // A letter before a continued paragraph keeps it from being read as the start of something else.
    let guard = match setting.continued {
        Some(Continuation { has_space: true, .. }) => "x ",
        Some(_) => "x",
        None => "",
    };
    let source = format!("{guard}{source}");
    let source = with_own_marks(&source);
    let mut renderer = Renderer::new(&source, guard.len(), setting);
    for (event, range) in Parser::new_ext(&source, options()).into_offset_iter() {
        renderer.handle(event, range);
        if renderer.block.is_waiting {
            break;
        }
    }
    renderer.finish()
}

/// A list, with the number of its next item.
struct List(Option<u64>);

struct Renderer<'a> {
    source: &'a str,
    setting: &'a Setting<'a>,
    /// Bytes at the start that are not printed.
    skipped: usize,
    /// Where something begins that what follows may take apart.
    loose: Option<usize>,
    block: RenderedBlock,
    wrapper: Option<Wrapper>,
    containers: Vec<Container>,
    lists: Vec<List>,
    roles: Vec<Role>,
    /// The language and the text of a code block that is open. Code without a fence has no language.
    code: Option<(Option<String>, String)>,
    grid: Option<Grid>,
    /// The addresses of the links that are open, and their texts.
    links: Vec<(String, String)>,
    /// The end of what was rendered.
    end: usize,
}

impl<'a> Renderer<'a> {
    fn new(source: &'a str, skipped: usize, setting: &'a Setting<'a>) -> Self {
        let wrapper = setting.continued.map(|at| {
            Wrapper::continued(setting.columns, at.column, Text::new().spaces(at.indent), at.has_space)
        });
        Self {
            source,
            setting,
            skipped,
            loose: if setting.is_whole { None } else { loose_mark(source) },
            block: RenderedBlock::default(),
            wrapper,
            containers: Vec::new(),
            lists: Vec::new(),
            roles: Vec::new(),
            code: None,
            grid: None,
            links: Vec::new(),
            end: 0,
        }
    }

    fn handle(&mut self, event: Event<'_>, range: Range<usize>) {
        let is_content = match &event {
            Event::Start(_) => false,
            Event::End(tag) => matches!(tag, TagEnd::CodeBlock | TagEnd::Table),
            _ => true,
        };
        if !self.setting.is_whole && self.may_change(&event, &range) {
            self.block.is_waiting = true;
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, &range),
            // What the end of the source closes may continue.
            Event::End(tag) if self.is_at_end(&range) && is_block(tag) => {}
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => self.text(&text, range.clone()),
            Event::Code(code) => match self.setting.look {
                // Spaces at its ends could not be told from those of the line.
                Look::Colors => self.push(Role::Code, code.trim(), true),
                _ => self.push(Role::Plain, &format!("`{code}`"), true),
            },
            Event::Html(html) => {
                for line in html.split_inclusive('\n') {
                    self.push(Role::Plain, line.trim_end_matches('\n'), false);
                    if line.ends_with('\n') {
                        self.end_paragraph();
                    }
                }
            }
            Event::InlineHtml(html) => self.push(self.role(), &html.replace('\n', " "), false),
            Event::SoftBreak | Event::HardBreak => match (&mut self.wrapper, &self.grid) {
                (Some(wrapper), None) => wrapper.break_line(),
                _ => self.push(Role::Plain, " ", false),
            },
            Event::Rule => {
                self.begin_block(range.start);
                let columns = self.room().min(LONGEST_RULE);
                let rule =
                    if self.setting.look == Look::Colors { "─".repeat(columns) } else { "---".to_owned() };
                let (first, _) = self.prefixes();
                self.block.lines.push(first.add(Role::Dim, rule));
            }
            Event::TaskListMarker(is_done) => {
                self.push(Role::Plain, if is_done { "[x] " } else { "[ ] " }, false)
            }
            // Extensions that are not read.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(Role::Plain, &text, false);
            }
        }
        if is_content {
            self.end = self.end.max(self.source[..range.end].trim_end().len());
        }
    }

    /// Whether what follows the source may take apart what an event begins.
    fn may_change(&self, event: &Event<'_>, range: &Range<usize>) -> bool {
        let rest = self.source.get(range.end..).unwrap_or_default();
        let is_loose = self.loose == Some(range.start);
        match event {
            // The character that follows decides whether marks at the end close anything.
            Event::Start(Tag::Emphasis | Tag::Strong) => {
                is_loose || rest.trim_start_matches(['*', '_']).is_empty()
            }
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => is_loose,
            Event::Code(_) => rest.is_empty(),
            _ => false,
        }
    }

    /// Whether something ends where a source that is not complete ends.
    fn is_at_end(&self, range: &Range<usize>) -> bool {
        !self.setting.is_whole && range.end >= self.source.trim_end().len()
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => {
                if self.setting.continued.is_none() || self.end > 0 {
                    self.begin_block(range.start);
                }
                self.open_paragraph();
            }
            Tag::Heading { level, .. } => {
                self.begin_block(range.start);
                self.open_paragraph();
                self.roles.push(Role::Heading);
                match self.setting.look {
                    Look::Colors => {}
                    Look::Marks => self.push(Role::Heading, &format!("{} ", "#".repeat(depth(level))), false),
                    Look::Words => self.push(Role::Heading, &format!("Heading {}: ", depth(level)), false),
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block(range.start);
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(range.start);
                let language = match kind {
                    CodeBlockKind::Fenced(language) => Some(language.to_string()),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.begin_block(range.start);
                let next = match (first, self.setting.number.filter(|_| self.lists.is_empty())) {
                    (Some(first), Some(before)) if first <= before => Some(before.saturating_add(1)),
                    (first, _) => first,
                };
                self.lists.push(List(next));
            }
            Tag::Item => self.start_item(range),
            // Its columns are not known yet.
            Tag::Table(_) if self.is_at_end(range) => self.block.is_waiting = true,
            Tag::Table(alignments) => {
                self.begin_block(range.start);
                self.grid = Some(Grid { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(grid) = &mut self.grid {
                    grid.rows.push(Vec::new());
                }
                if tag == Tag::TableHead {
                    self.roles.push(Role::Heading);
                }
            }
            Tag::TableCell => {
                if let Some(row) = self.grid.as_mut().and_then(|grid| grid.rows.last_mut()) {
                    row.push(GridCell::default());
                }
            }
            Tag::Emphasis => self.start_emphasis(Role::Italic, "*"),
            Tag::Strong => self.start_emphasis(Role::Emphasis, "**"),
            Tag::Link { dest_url, title, .. } => {
                self.roles.push(Role::Link);
                self.links.push((address_of(&dest_url, &title), String::new()));
            }
            Tag::Image { dest_url, title, .. } => {
                self.links.push((address_of(&dest_url, &title), String::new()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.roles.pop();
                self.end_paragraph();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(range),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_paragraph();
                // An item without text.
                if let Some(Container::Item { marker: Some(_), .. }) = self.containers.last() {
                    let (first, _) = self.prefixes();
                    self.block.lines.push(first.trimmed());
                }
                self.containers.pop();
            }
            TagEnd::TableHead => {
                self.roles.pop();
            }
            TagEnd::Table => {
                let Some(grid) = self.grid.take() else { return };
                for line in grid.lines(self.room(), self.setting.look) {
                    let (first, _) = self.prefixes();
                    self.block.lines.push(first.join(line).trimmed());
                }
            }
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Link => {
                self.roles.pop();
                self.end_link();
            }
            TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn start_item(&mut self, range: &Range<usize>) {
        self.end_paragraph();
        self.begin_block(range.start);
        let is_outermost = self.lists.len() == 1;
        let Some(List(next)) = self.lists.last_mut() else { return };
        let marker = match next {
            Some(number) => {
                let marker = format!("{number}. ");
                if is_outermost {
                    self.block.number = Some(*number);
                }
                *number = number.saturating_add(1);
                marker
            }
            None => "- ".to_owned(),
        };
        let width = marker.len();
        self.containers.push(Container::Item { marker: Some(marker), width });
    }

    fn finish(mut self) -> RenderedBlock {
        match self.wrapper.take() {
            Some(mut wrapper) if !self.setting.is_whole => {
                if self.source.ends_with(char::is_whitespace) && !self.block.is_waiting {
                    wrapper.push(Role::Plain, " ");
                }
                self.block.column = wrapper.column();
                self.block.lines.extend(wrapper.certain());
            }
            wrapper => {
                self.wrapper = wrapper;
                self.end_paragraph();
            }
        }
        self.block
    }
}

/// Whether the end of a block could only be that of the source.
fn is_block(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::List(_) | TagEnd::BlockQuote(_)
    )
}

fn depth(level: HeadingLevel) -> usize {
    level as usize
}
