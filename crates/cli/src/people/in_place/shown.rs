//! Text of a call as a person sees it before deciding: complete, and without a way to imitate the question.
//!
//! Every line of foreign text stands behind a gutter: `|` starts a line of it, `:` continues one that is wider
//! than the terminal. Characters that would control the terminal or are invisible are written as `\u001b`, and
//! so is a backslash before a `u`. So removing the gutters and undoing the escapes returns the text exactly.

use unicode_width::UnicodeWidthChar as _;

use crate::terminal::{Role, Text, exact_text};

/// Formats a line in a role.
pub(super) fn line(role: Role, text: impl AsRef<str>) -> Text {
    Text::new().add(role, text)
}

pub(super) fn plain(text: impl AsRef<str>) -> Text {
    line(Role::Plain, text)
}

pub(super) fn dim(text: impl AsRef<str>) -> Text {
    line(Role::Dim, text)
}

pub(super) fn warning(text: impl AsRef<str>) -> Text {
    line(Role::Warning, text)
}

/// Starts a line of foreign text.
const GUTTER: &str = "  | ";

/// Continues a line of foreign text that is wider than the terminal.
const CONTINUED: &str = "  : ";

/// Formats foreign text behind gutters, wrapped to a width.
pub(super) fn behind_gutter(role: Role, text: &str, columns: usize) -> Vec<Text> {
    let room = columns.saturating_sub(GUTTER.len() + 1).max(8);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let line = exact_text(line);
        let mut gutter = GUTTER;
        for piece in pieces(&line, room) {
            lines.push(Text::new().add(Role::Dim, gutter).add(role, piece));
            gutter = CONTINUED;
        }
    }
    lines
}

/// Cuts a line into pieces of at most `room` columns. An empty line is one empty piece.
fn pieces(line: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (index, character) in line.char_indices() {
        let width = match character {
            '\t' => 8 - (used + GUTTER.len()) % 8,
            other => other.width().unwrap_or(0),
        };
        if used + width > room && index > start {
            pieces.push(&line[start..index]);
            (start, used) = (index, 0);
        }
        used += width;
    }
    pieces.push(&line[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoes gutters and escapes.
    fn undone(lines: &[Text]) -> String {
        let mut joined = String::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(piece) = line.text().strip_prefix(GUTTER) {
                if index > 0 {
                    joined.push('\n');
                }
                joined.push_str(piece);
            } else {
                joined.push_str(line.text().strip_prefix(CONTINUED).unwrap());
            }
        }
        unescaped(&joined)
    }

    fn unescaped(text: &str) -> String {
        let mut units = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(escape) = rest.strip_prefix("\\u") {
                units.push(u16::from_str_radix(&escape[..4], 16).unwrap());
                rest = &escape[4..];
            } else {
                units.extend(character.encode_utf16(&mut [0; 2]).iter());
                rest = &rest[character.len_utf8()..];
            }
        }
        String::from_utf16(&units).unwrap()
    }

    #[test]
    fn undoing_returns_the_text_exactly() {
        let long = "echo harmless ".repeat(5_000) + "; touch HIDDEN";
        let texts = [
            "true",
            "",
            "\n\n",
            "echo one\n\n  echo two\r\n\techo three\n",
            "echo \u{1b}[2K\u{1b}[1A\u{9b}2J\u{7}\u{8}\u{7f}\u{85}",
            "echo \u{202e}neddih\u{2066}\u{200f}\u{2028}\u{2029}",
            "echo a\u{200b}b\u{feff}c\u{e0041}d\u{3164}e\u{a0}f",
            r"echo \u001b \\u001b \\\u \n \uu \",
            "漢字 👍 e\u{301} \u{fe0f}",
            &long,
        ];
        for columns in [1, 12, 40, 80, 1_000] {
            for text in texts {
                let lines = behind_gutter(Role::Plain, text, columns);
                assert_eq!(undone(&lines), text, "{columns} columns");
                assert!(
                    lines.iter().all(|line| !line.text().chars().any(|one| one.is_control() && one != '\t'))
                );
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let text = "漢".repeat(100) + &"x".repeat(300) + "\tx\t\t";
        for columns in [20, 40, 80] {
            for line in behind_gutter(Role::Plain, &text, columns) {
                let width: usize = line.text().chars().map(|one| one.width().unwrap_or(8)).sum();
                assert!(width <= columns + 8, "{width}: {}", line.text());
            }
        }
    }
}
