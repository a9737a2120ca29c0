//! Tags of HTML, by what they mean for the text.

/// The meaning of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Its content is not text for readers.
    Skipped,
    Title,
    Base,
    Link,
    Image,
    /// Its text stands between two marks.
    Marked(&'static str),
    LineBreak,
    Rule,
    Block(Block),
    Other,
}

/// A tag that begins a line or a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    Paragraph,
    Line,
    Heading(usize),
    Preformatted,
    Quotation,
    List { is_ordered: bool },
    Item,
    Table,
    Row,
    Cell,
}

impl Tag {
    /// Returns the meaning of a tag by its name, in lower case.
    pub(super) fn of(name: &str) -> Self {
        let block = match name {
            "script" | "style" | "template" | "svg" | "math" | "iframe" | "object" | "canvas" | "audio"
            | "video" | "select" | "textarea" | "noscript" | "noframes" => return Self::Skipped,
            "title" => return Self::Title,
            "base" => return Self::Base,
            "a" => return Self::Link,
            "img" => return Self::Image,
            "strong" | "b" => return Self::Marked("**"),
            "em" | "i" | "cite" => return Self::Marked("*"),
            "code" | "kbd" | "samp" | "tt" => return Self::Marked("`"),
            "del" | "s" => return Self::Marked("~~"),
            "br" => return Self::LineBreak,
            "hr" => return Self::Rule,
            "h1" => Block::Heading(1),
            "h2" => Block::Heading(2),
            "h3" => Block::Heading(3),
            "h4" => Block::Heading(4),
            "h5" => Block::Heading(5),
            "h6" => Block::Heading(6),
            "pre" => Block::Preformatted,
            "blockquote" => Block::Quotation,
            "ul" | "menu" => Block::List { is_ordered: false },
            "ol" => Block::List { is_ordered: true },
            "li" => Block::Item,
            "table" => Block::Table,
            "tr" => Block::Row,
            "td" | "th" => Block::Cell,
            "dt" | "dd" | "option" | "legend" | "caption" | "summary" => Block::Line,
            "p" | "div" | "section" | "article" | "header" | "footer" | "main" | "aside" | "nav"
            | "figure" | "figcaption" | "address" | "details" | "dl" | "fieldset" | "form" | "body"
            | "hgroup" => Block::Paragraph,
            _ => return Self::Other,
        };
        Self::Block(block)
    }
}
