//! Corrects text as models write it, before it is read.
//!
//! A model's answer may have three faults that do not affect its meaning: the program is in a code fence, it
//! contains typography (curly quotes, other kinds of spaces, invisible characters), or its line ends are
//! those of another system. [`repair`] corrects these and nothing else. The inside of a string is content:
//! there only the line ends change. A string that was opened with a curly quote is closed by the next double
//! quote of any kind.
//!
//! Spans in errors refer to the repaired text, so that text is the source to keep.

use std::borrow::Cow;

use super::chars::is_invisible;

/// Returns the program in a model's answer, ready to be read. Text without faults is returned unchanged.
pub fn repair(text: &str) -> Cow<'_, str> {
    let program = unfence(text);
    if !needs_mending(&program) {
        return program;
    }
    let mended = Mender::default().mend(&program);
    if mended == *program { program } else { Cow::Owned(mended) }
}

fn needs_mending(text: &str) -> bool {
    !text.is_ascii() || text.contains('\r')
}

/// Returns the code inside of the fences: all blocks that name a Lisp, otherwise all blocks. Text without a
/// fence is returned whole, and so is a program in which the fence is a line of a string.
fn unfence(text: &str) -> Cow<'_, str> {
    let Some(first) = first_fence(text) else { return Cow::Borrowed(text) };
    let blocks = fenced_blocks(text);
    if begins_as_program(text) {
        if Mender::place_after(&text[..first]) != RepairState::Code {
            return Cow::Borrowed(text);
        }
        // A program whose opening fence is missing still has the closing one.
        if blocks.len() == 1 && blocks[0].is_blank(text) {
            return Cow::Borrowed(&text[..first]);
        }
    }
    let named = blocks.iter().any(|block| block.is_lisp);
    let chosen: Vec<&str> = blocks
        .iter()
        .filter(|block| block.is_lisp || !named)
        .map(|block| &text[block.start..block.end])
        .collect();
    match chosen[..] {
        [] => Cow::Borrowed(text),
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(chosen.join("\n")),
    }
}

fn begins_as_program(text: &str) -> bool {
    let beginning = text.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
    match beginning.strip_prefix('#') {
        Some(rest) => rest.starts_with(['(', '{', '_', '"', '\'']),
        None => beginning.starts_with(['(', '[', '{', ';', '\'', '"']),
    }
}

fn first_fence(text: &str) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if fence(line).is_some() {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

struct Block {
    start: usize,
    end: usize,
    is_lisp: bool,
}

impl Block {
    fn is_blank(&self, text: &str) -> bool {
        text[self.start..self.end].trim().is_empty()
    }
}

fn fenced_blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // The open fence: its marker and its length.
    let mut open: Option<(char, usize)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let next = offset + line.len();
        match (open, fence(line)) {
            (None, Some((marker, length, language))) => {
                open = Some((marker, length));
                blocks.push(Block { start: next, end: text.len(), is_lisp: is_lisp(language) });
            }
            (Some((marker, least)), Some((found, length, ""))) if found == marker && length >= least => {
                open = None;
                if let Some(block) = blocks.last_mut() {
                    block.end = offset;
                }
            }
            _ => {}
        }
        offset = next;
    }
    blocks
}

/// Returns the marker, length and language of a line that is a fence.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_matches(|c: char| c.is_whitespace() || is_invisible(c));
    let marker = line.chars().next().filter(|&c| c == '`' || c == '~')?;
    let rest = line.trim_start_matches(marker);
    let length = line.len() - rest.len();
    // A program on the line of its fence is inline code, not a block.
    (length >= 3 && !rest.contains(['`', '('])).then(|| (marker, length, rest.trim()))
}

fn is_lisp(language: &str) -> bool {
    let name = language.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    matches!(name.as_str(), "clojure" | "clj" | "cljs" | "cljc" | "edn" | "lisp" | "scheme" | "backstitch")
}

/// The lexical state of the repair.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum RepairState {
    #[default]
    Code,
    Comment,
    /// In a string that only an ASCII quote ends.
    String,
    /// In a string that was opened by a curly quote.
    CurlyString,
}

#[derive(Default)]
struct Mender {
    place: RepairState,
    /// True after a backslash that has not been consumed.
    escaped: bool,
}

impl Mender {
    /// Returns the lexical state after a part of a program.
    fn place_after(text: &str) -> RepairState {
        let mut mender = Mender::default();
        mender.mend(text);
        if mender.place == RepairState::Comment { RepairState::Code } else { mender.place }
    }

    fn mend(&mut self, text: &str) -> String {
        let mut mended = String::with_capacity(text.len());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let character = match character {
                // A carriage return before a newline is half of one line end.
                '\r' if characters.peek() == Some(&'\n') => continue,
                other => other,
            };
            let escaped = std::mem::replace(&mut self.escaped, false);
            match self.place {
                RepairState::Code if escaped => self.character_literal(character, &mut mended),
                RepairState::Code => self.code(character, &mut mended),
                RepairState::Comment => {
                    if character == '\n' || character == '\r' {
                        self.place = RepairState::Code;
                    }
                    mended.push(character);
                }
                RepairState::String | RepairState::CurlyString => {
                    self.string(character, escaped, &mut mended)
                }
            }
        }
        mended
    }

    /// Copies the character after a backslash outside of strings unchanged.
    fn character_literal(&mut self, character: char, mended: &mut String) {
        mended.push(character);
    }

    fn code(&mut self, character: char, mended: &mut String) {
        match character {
            '"' => {
                self.place = RepairState::String;
                mended.push('"');
            }
            _ if is_double_quote(character) => {
                self.place = RepairState::CurlyString;
                mended.push('"');
            }
            ';' => {
                self.place = RepairState::Comment;
                mended.push(';');
            }
            '\\' => {
                self.escaped = true;
                mended.push('\\');
            }
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{ff07}' => mended.push('\''),
            // Line separators, and the next-line character.
            '\u{2028}' | '\u{2029}' | '\u{85}' => mended.push('\n'),
            _ if is_invisible(character) => {}
            _ if !character.is_ascii() && character.is_whitespace() => mended.push(' '),
            _ => mended.push(character),
        }
    }

    fn string(&mut self, character: char, escaped: bool, mended: &mut String) {
        let closes = match self.place {
            RepairState::CurlyString => character == '"' || is_double_quote(character),
            _ => character == '"',
        };
        if escaped {
            // An escaped curly quote stands for the quote that it replaced.
            mended.push(if self.place == RepairState::CurlyString && closes { '"' } else { character });
        } else if closes {
            self.place = RepairState::Code;
            mended.push('"');
        } else {
            self.escaped = character == '\\';
            mended.push(character);
        }
    }
}

/// Typographic double quotes.
fn is_double_quote(character: char) -> bool {
    matches!(character, '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}')
}
