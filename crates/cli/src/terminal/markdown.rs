//! Markdown of answers, rendered lightly while it streams.
//!
//! Headings and strong text are bold, code has a colour, and the marks around them are left out. Everything else is
//! printed as it is. Nothing is laid out again, so a line appears as soon as its characters arrive: only the start of a line
//! and an open `**` or backtick are held back, until it is clear what they mean. A mark that is never closed in its line
//! is printed as it is.
//!
//! All text is escaped, as everywhere. Without colours nothing is rendered, because nothing would show what a mark meant.

use super::style::{Role, Text};

/// How many bytes are held back at most.
const MOST_HELD: usize = 400;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    /// Not known yet: the characters so far are held back.
    #[default]
    Start,
    Text,
    Heading,
    /// A line of a code block.
    Code,
    /// The line that starts or ends a code block.
    Fence,
}

/// Markdown that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    line: Line,
    is_in_block: bool,
    held: String,
    /// The last character that was not held back.
    previous: Option<char>,
    /// What can be printed, with the role of its end.
    ready: Text,
}

impl MarkdownStream {
    /// Adds text, and returns what can be printed now, with colours.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut printed = String::new();
        for character in text.chars() {
            if character == '\n' {
                self.end_line();
                printed.push_str(&self.take_ready());
                printed.push('\n');
            } else {
                self.add(character);
            }
        }
        printed.push_str(&self.take_ready());
        printed
    }

    /// Ends the text, or its current line, and returns what was held back.
    pub(crate) fn flush(&mut self) -> String {
        self.end_line();
        self.take_ready()
    }

    fn take_ready(&mut self) -> String {
        std::mem::take(&mut self.ready).rendered(true)
    }

    fn end_line(&mut self) {
        let held = std::mem::take(&mut self.held);
        match self.line {
            // Too short to be a mark: it is text.
            Line::Start if self.is_in_block => self.emit(Role::Code, &held),
            Line::Start | Line::Text => self.emit(Role::Plain, &held),
            Line::Heading => self.emit(Role::Heading, &held),
            Line::Code => self.emit(Role::Code, &held),
            Line::Fence => self.emit(Role::Dim, &held),
        }
        (self.line, self.previous) = (Line::Start, None);
    }

    fn add(&mut self, character: char) {
        match self.line {
            Line::Start => self.start(character),
            Line::Text => self.inline(Role::Plain, character),
            Line::Heading => self.inline(Role::Heading, character),
            Line::Code => self.emit_one(Role::Code, character),
            Line::Fence => self.emit_one(Role::Dim, character),
        }
    }

    /// Adds a character to the start of a line.
    fn start(&mut self, character: char) {
        self.held.push(character);
        let mark = self.held.trim_start_matches(' ');
        if mark == "```" {
            self.is_in_block = !self.is_in_block;
            self.line = Line::Fence;
        } else if mark.is_empty() || "```".starts_with(mark) {
            return;
        } else if self.is_in_block {
            self.line = Line::Code;
        } else if is_heading(mark) {
            (self.line, self.held) = (Line::Heading, String::new());
        } else if mark.bytes().all(|byte| byte == b'#') && mark.len() <= 6 {
            return;
        } else {
            self.line = Line::Text;
        }
        for held in std::mem::take(&mut self.held).chars() {
            self.add(held);
        }
    }

    /// Adds a character inside of a line. What is held back begins with a mark.
    fn inline(&mut self, role: Role, character: char) {
        if self.held.is_empty() && !matches!(character, '*' | '`') {
            return self.emit_one(role, character);
        }
        self.held.push(character);
        let strong = self.held.strip_prefix("**");
        let code = self.held.strip_prefix('`').filter(|rest| !rest.starts_with('`'));
        if let Some(inner) = code.and_then(|rest| rest.strip_suffix('`')).filter(|inner| !inner.is_empty()) {
            let inner = inner.to_owned();
            self.held.clear();
            return self.emit(Role::Code, &inner);
        }
        if let Some(inner) = strong.and_then(|rest| rest.strip_suffix("**"))
            && inner.ends_with(|last: char| !last.is_whitespace() && last != '*')
        {
            let inner = inner.to_owned();
            self.held.clear();
            return self.emit(Role::Emphasis, &inner);
        }
        let can_open = match (strong, code) {
            // Inside of a word, as in `2**8`, it marks nothing.
            (Some(inner), _) => {
                !self.previous.is_some_and(char::is_alphanumeric)
                    && !inner.starts_with(|first: char| first.is_whitespace() || first == '*')
            }
            (None, Some(_)) => true,
            (None, None) => self.held == "*",
        };
        if !can_open || self.held.len() > MOST_HELD {
            self.release(role);
        }
    }

    /// Prints the mark that is held back, and examines what follows it.
    fn release(&mut self, role: Role) {
        let held = std::mem::take(&mut self.held);
        let marks = held.len() - held.trim_start_matches(['*', '`']).len();
        let (mark, rest) = held.split_at(marks);
        self.emit(role, mark);
        for character in rest.chars() {
            self.inline(role, character);
        }
    }

    fn emit_one(&mut self, role: Role, character: char) {
        self.emit(role, character.encode_utf8(&mut [0; 4]));
    }

    fn emit(&mut self, role: Role, text: &str) {
        self.previous = text.chars().next_back().or(self.previous);
        self.ready.extend_last(role, text);
    }
}

/// Whether a line begins with the mark of a heading.
fn is_heading(mark: &str) -> bool {
    mark.strip_suffix(' ')
        .is_some_and(|marks| (1..=6).contains(&marks.len()) && marks.bytes().all(|byte| byte == b'#'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::style::tests::{foreign, has_no_controls, without_colors};
    use super::*;

    /// Renders a text in pieces of so many characters.
    fn rendered(text: &str, piece: usize) -> String {
        let mut stream = MarkdownStream::default();
        let characters: Vec<char> = text.chars().collect();
        let mut all = String::new();
        for piece in characters.chunks(piece.max(1)) {
            all.push_str(&stream.push(&piece.iter().collect::<String>()));
        }
        all + &stream.flush()
    }

    fn plain(text: &str) -> String {
        without_colors(&rendered(text, 1))
    }

    #[test]
    fn marks_are_left_out_and_the_rest_stays() {
        assert_eq!(
            plain("# A hem\n\nSew **it** now, with `needle 7`.\n"),
            "A hem\n\nSew it now, with needle 7.\n"
        );
        assert_eq!(plain("- one\n* two\n  - **three**: four\n"), "- one\n* two\n  - three: four\n");
        assert_eq!(
            plain("```rust\nlet a = 2 ** 8; // `x` **y**\n# no heading\n```\nend"),
            "```rust\nlet a = 2 ** 8; // `x` **y**\n# no heading\n```\nend"
        );
        let bold = Text::new().add(Role::Emphasis, "it").rendered(true);
        assert!(rendered("a **it** b", 3).contains(&bold));
    }

    #[test]
    fn what_is_no_mark_is_printed_as_it_is() {
        for text in [
            "2 ** 8 and 2**8 ** 9",
            "a * b * c",
            "**open",
            "`open",
            "``",
            "****",
            "*a*",
            "#tag",
            "####### seven",
            "**a **b",
            "a ** b",
            "***",
            "#",
            "**",
            "`",
            "-",
            "  ",
            "\n\n",
            "snake_case __init__",
            "** `",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn streaming_prints_what_is_certain() {
        let mut stream = MarkdownStream::default();
        assert_eq!(without_colors(&stream.push("Sew")), "Sew");
        assert_eq!(without_colors(&stream.push(" **the")), " ");
        assert_eq!(without_colors(&stream.push(" hem** now")), "the hem now");
        assert_eq!(without_colors(&stream.push(" `x")), " ");
        assert_eq!(stream.flush(), "`x");
        let long = "x".repeat(MOST_HELD);
        assert_eq!(without_colors(&stream.push(&format!("a **{long}"))), format!("a **{long}"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_nothing_but_marks_is_lost(
            text in "[a#`* \n\u{e4}2-]{0,40}", piece in 1_usize..9,
        ) {
            let whole = rendered(&text, usize::MAX);
            prop_assert_eq!(without_colors(&rendered(&text, piece)), without_colors(&whole));
            let kept = |text: &str| text.chars().filter(|one| !matches!(one, '#' | '`' | '*' | ' ')).collect::<String>();
            prop_assert_eq!(kept(&without_colors(&whole)), kept(&text));
        }

        #[test]
        fn nothing_steers_the_terminal(text in foreign(), piece in 1_usize..9) {
            let shown = rendered(&text, piece).replace('\n', "");
            prop_assert!(has_no_controls(&without_colors(&shown)), "{:?}", shown);
        }
    }
}
