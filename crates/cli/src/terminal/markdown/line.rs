//! What a line of Markdown begins.

/// What a line begins, by its first characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Fence(Fence),
    Table,
    Item,
    Quote,
    Heading,
    Rule,
    /// So far to the right that it is code, or belongs to an item.
    Indented,
    Text,
}

/// The line that opens or closes a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

/// Spaces before a line that make it belong to the item above it.
const INSIDE: usize = 2;

/// Spaces before a line of code.
const CODE: usize = 4;

impl LineKind {
    /// Returns what a line begins. It has to be complete, or to be [certain](is_certain).
    pub(super) fn of(line: &str) -> Self {
        let text = line.trim_start_matches(' ');
        if text.trim().is_empty() {
            return Self::Blank;
        }
        if indentation(line) >= CODE || text.starts_with('\t') {
            return Self::Indented;
        }
        if let Some(fence) = Fence::of(text) {
            return Self::Fence(fence);
        }
        let is_separate = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        let hashes = text.len() - text.trim_start_matches('#').len();
        if (1..=6).contains(&hashes) && is_separate(&text[hashes..]) {
            return Self::Heading;
        }
        if is_rule(text) {
            return Self::Rule;
        }
        let digits = text.len() - text.trim_start_matches(|one: char| one.is_ascii_digit()).len();
        match text.as_bytes() {
            [b'>', ..] => Self::Quote,
            [b'|', ..] => Self::Table,
            [b'-' | b'*' | b'+', ..] if is_separate(&text[1..]) => Self::Item,
            bytes if (1..=9).contains(&digits) && matches!(bytes.get(digits), Some(b'.' | b')')) => {
                if is_separate(&text[digits + 1..]) {
                    Self::Item
                } else {
                    Self::Text
                }
            }
            _ => Self::Text,
        }
    }

    /// Whether a line continues the list or the quote before it.
    pub(super) fn is_continuing(self, chunk: &str, line: &str) -> bool {
        if chunk.trim_start().starts_with('>') {
            return self == Self::Quote;
        }
        match self {
            Self::Blank | Self::Indented => true,
            _ if indentation(line) >= INSIDE => true,
            Self::Text => chunk.lines().next_back().is_some_and(|last| !last.trim().is_empty()),
            _ => false,
        }
    }
}

impl Fence {
    fn of(text: &str) -> Option<Self> {
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    /// Whether a line ends the code that this line begins.
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let is_end = |end: Self| end.mark == self.mark && end.length >= self.length;
        let text = line.trim();
        indentation(line) < CODE
            && Self::of(text).is_some_and(is_end)
            && text.trim_start_matches(self.mark).is_empty()
    }
}

/// The language that the line before code names.
pub(super) fn language_of(line: &str) -> &str {
    line.trim().trim_start_matches(['`', '~']).trim()
}

/// Whether the part of a line that has arrived says what the line begins.
pub(super) fn is_certain(line: &str) -> bool {
    let text = line.trim_start();
    let is_mark = |one: char| "#>*+-=_~`|.) \t".contains(one) || one.is_ascii_digit();
    !text.chars().all(is_mark)
        && !text.starts_with("```")
        && !text.starts_with("~~~")
        && !text.starts_with('|')
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_rule(text: &str) -> bool {
    let marks: Vec<char> = text.chars().filter(|one| !one.is_whitespace()).collect();
    marks.len() >= 3
        && matches!(marks.first(), Some('-' | '*' | '_'))
        && marks.iter().all(|one| Some(one) == marks.first())
}
