//! Text inside of a Markdown document, which it cannot break out of.
//!
//! | text | form |
//! |---|---|
//! | what people and models say | a block quote, in which Markdown keeps its meaning, but HTML and images do not |
//! | arguments and results | a code block whose fence is longer than any in the text |
//! | names | a code span with longer delimiters than any in the name |
//!
//! Control characters are escaped everywhere, so the document can be printed to a terminal.

use std::fmt::Write as _;

use backstitch_core::text::{escape_characters, is_steering};

/// Formats a block quote.
pub(super) fn quote(text: &str) -> String {
    let text = plain(text);
    let mut quoted = String::with_capacity(text.len() + 16);
    let mut fence: Option<(char, usize)> = None;
    for line in text.trim_end().split('\n') {
        let shown = match fence {
            Some(open) => {
                if closes(line, open) {
                    fence = None;
                }
                line.to_owned()
            }
            None => {
                fence = opens(line);
                if fence.is_some() { line.to_owned() } else { without_markup(line) }
            }
        };
        let space = if shown.is_empty() { "" } else { " " };
        let _ = writeln!(quoted, ">{space}{shown}");
    }
    quoted
}

/// Formats a code block.
pub(super) fn block(language: &str, text: &str) -> String {
    let text = plain(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// Formats a code span on one line.
pub(super) fn span(text: &str) -> String {
    let text = plain(text).replace('\n', " ");
    let delimiter = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{delimiter}{space}{text}{space}{delimiter}")
}

/// Formats text of a heading or a sentence: one line in which nothing has a meaning of its own.
pub(super) fn words(text: &str) -> String {
    let text = plain(text).replace('\n', " ");
    let mut words = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() && !",.;:'-()/?".contains(character) {
            words.push('\\');
        }
        words.push(character);
    }
    words
}

/// Cuts a text after so many characters or lines, whichever comes first. The second value says what is
/// missing.
pub(super) fn cut(text: &str, characters: usize, lines: usize) -> (&str, Option<String>) {
    let by_characters = text.char_indices().nth(characters).map(|(end, _)| end);
    let by_lines = text.match_indices('\n').nth(lines.saturating_sub(1)).map(|(end, _)| end + 1);
    let end = by_characters.into_iter().chain(by_lines).min().filter(|end| *end < text.len());
    match end {
        None => (text, None),
        Some(end) => {
            let missing = text[end..].chars().count();
            (&text[..end], Some(format!("cut here: {missing} more characters")))
        }
    }
}

fn plain(text: &str) -> String {
    escape_characters(&text.replace("\r\n", "\n"), is_steering).into_owned()
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Returns the fence that a line opens. Only fences without indentation count: every reader of Markdown sees
/// those in the same way.
fn opens(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|first| ['`', '~'].contains(first))?;
    let length = line.chars().take_while(|one| *one == mark).count();
    let info = &line[length..];
    (length >= 3 && (mark == '~' || !info.contains('`'))).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let trimmed = line.trim_start_matches(' ');
    let run = trimmed.chars().take_while(|one| *one == mark).count();
    line.len() - trimmed.len() <= 3 && run >= length && trimmed[run..].trim().is_empty()
}

/// Removes the meaning of HTML and of images, which a viewer would load.
fn without_markup(line: &str) -> String {
    line.replace('<', "&lt;").replace("![", "!\\[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_block() {
        let hostile = ["```\nout\n```", "````\n~~~\n", "`", "a\n`````\nb", "~~~\n<script>\n  ~~~\n<b>"];
        for text in hostile {
            let block = block("text", text);
            let fence = block.lines().next().unwrap().trim_end_matches("text");
            assert!(block.lines().skip(1).take_while(|line| *line != fence).count() >= text.lines().count());
            assert!(!text.contains(fence), "{block}");
            for line in quote(text).lines() {
                assert!(line.starts_with('>'), "{line}");
            }
        }
        assert_eq!(span("a`b"), "``a`b``");
        assert_eq!(span("`"), "`` ` ``");
        assert_eq!(span("a\nb"), "`a b`");
    }

    #[test]
    fn html_and_images_mean_nothing_outside_of_code() {
        let quoted = quote("<b>x</b> ![x](http://example.org)\n```\n<b>\n```\n<i>");
        assert_eq!(quoted, "> &lt;b>x&lt;/b> !\\[x](http://example.org)\n> ```\n> <b>\n> ```\n> &lt;i>\n");
        // An indented fence may belong to a list, which ends before the fence does.
        assert_eq!(quote("- x\n  ```\n<b>"), "> - x\n>   ```\n> &lt;b>\n");
        // A fence with another mark, or too short, does not end one.
        assert_eq!(quote("````\n```\n<b>\n````\n<b>"), "> ````\n> ```\n> <b>\n> ````\n> &lt;b>\n");
    }

    #[test]
    fn controls_are_escaped_and_line_ends_are_one() {
        assert_eq!(quote("a\r\n\u{1b}[2J\u{202e}b"), "> a\n> \\u001b[2J\\u202eb\n");
        assert_eq!(words("# a *b* <c>\n[d](e)"), "\\# a \\*b\\* \\<c\\> \\[d\\](e)");
        assert_eq!(quote("a\n\nb\n"), "> a\n>\n> b\n");
    }

    #[test]
    fn long_text_is_cut_with_a_note() {
        assert_eq!(cut("abc", 3, 9), ("abc", None));
        assert_eq!(cut("abcd", 3, 9), ("abc", Some("cut here: 1 more characters".to_owned())));
        assert_eq!(cut("a\nb\nc", 9, 2), ("a\nb\n", Some("cut here: 1 more characters".to_owned())));
        assert_eq!(cut("a\nb\n", 9, 2), ("a\nb\n", None));
        assert_eq!(cut("äöü", 2, 9).0, "äö");
    }
}
