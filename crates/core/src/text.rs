//! Text for lists and logs, and text without controls.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text in one line of at most `most` characters, without control characters. A longer text ends with `…`.
///
/// ```
/// use backstitch_core::text::one_line;
///
/// assert_eq!(one_line("Mend\n\tthe coat", 60), "Mend the coat");
/// assert_eq!(one_line("Mend the coat", 4), "Mend…");
/// ```
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|character| !character.is_control()));
        if let Some((end, _)) = line.char_indices().nth(most) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Writes the characters of a text that are unsafe in the form `\u001b`, which means the same inside a JSON string. Escaping a text twice
/// changes nothing more. Printable ASCII characters are never unsafe.
///
/// ```
/// use backstitch_core::text::{escape_characters, is_steering};
///
/// assert_eq!(escape_characters("red: \u{1b}[31m", is_steering), "red: \\u001b[31m");
/// ```
pub fn escape_characters(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is plain, and all of it passes here.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    if text.bytes().all(is_plain) || !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// Whether a terminal or a viewer may interpret the character instead of showing it: control characters except newline and tab, and
/// controls of the direction of text.
pub fn is_steering(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}
