//! Character classes of the reader, and the rules for names.

/// Returns whether a byte separates tokens: space, tab, newline, carriage return, form feed, vertical tab or
/// comma.
pub(super) fn is_space(byte: u8) -> bool {
    CLASSES[byte as usize] & SPACE != 0
}

/// Returns whether a byte ends a token. As in Clojure, `#`, `'` and `%` do not.
pub(super) fn ends_token(byte: u8) -> bool {
    CLASSES[byte as usize] & (SPACE | TERMINATING) != 0
}

const SPACE: u8 = 1;
const TERMINATING: u8 = 2;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let spaces = b" \t\n\r\x0b\x0c,";
    let mut i = 0;
    while i < spaces.len() {
        classes[spaces[i] as usize] = SPACE;
        i += 1;
    }
    // `\x1c` to `\x1f` are white space in Java and so in Clojure.
    let mut control = 0x1c;
    while control < 0x20 {
        classes[control] = SPACE;
        control += 1;
    }
    let terminating = b"\"();[]{}@^`~\\";
    let mut i = 0;
    while i < terminating.len() {
        classes[terminating[i] as usize] = TERMINATING;
        i += 1;
    }
    classes
};

/// The reason why a text is not a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NameFault {
    Empty,
    Colon,
    Slash,
    Character(char),
}

/// Checks a text that would be a symbol, or a keyword without its colon. A leading digit is not checked: it
/// is allowed in a keyword, and a token that begins with one has already been read as a number.
pub(super) fn check_name(text: &str) -> Result<(), NameFault> {
    if text.is_empty() {
        return Err(NameFault::Empty);
    }
    let mut slashes = 0;
    let mut last = 0;
    for &byte in text.as_bytes() {
        match byte {
            b'/' => slashes += 1,
            b':' if last == b':' || last == 0 || last == b'/' => return Err(NameFault::Colon),
            // Text beyond ASCII, and bytes that cannot be part of a token, are checked as characters.
            0x80.. => return check_wide_name(text),
            0..0x20 | 0x7f => return check_wide_name(text),
            _ if ends_token(byte) => return Err(NameFault::Character(byte as char)),
            _ => {}
        }
        if byte == b'/' && last == b':' {
            return Err(NameFault::Colon);
        }
        last = byte;
    }
    if last == b':' {
        return Err(NameFault::Colon);
    }
    check_slashes(text, slashes)
}

fn check_slashes(text: &str, slashes: usize) -> Result<(), NameFault> {
    let fine = match slashes {
        0 => true,
        1 => text == "/" || (!text.starts_with('/') && !text.ends_with('/')),
        // The function `/` of a namespace: `clojure.core//`.
        2 => text.ends_with("//") && text.len() > 2,
        _ => false,
    };
    if fine { Ok(()) } else { Err(NameFault::Slash) }
}

fn check_wide_name(text: &str) -> Result<(), NameFault> {
    let mut slashes = 0;
    for character in text.chars() {
        if character == '/' {
            slashes += 1;
        }
        let refused = match u8::try_from(character) {
            Ok(byte) if byte < 0x80 => ends_token(byte) || character.is_control(),
            _ => character.is_whitespace() || character.is_control() || is_invisible(character),
        };
        if refused {
            return Err(NameFault::Character(character));
        }
    }
    if text.starts_with(':')
        || text.ends_with(':')
        || text.contains("::")
        || text.contains(":/")
        || text.contains("/:")
    {
        return Err(NameFault::Colon);
    }
    check_slashes(text, slashes)
}

/// Returns whether a character is invisible: two names that differ by one of them look the same.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}')
}

/// Returns whether the text, with a colon before it, reads as a keyword.
pub fn is_keyword_name(text: &str) -> bool {
    check_name(text).is_ok()
}
