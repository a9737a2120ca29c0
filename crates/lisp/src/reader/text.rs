//! Strings and characters with resolved escapes.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result, Span};

/// Resolves the escapes inside a string literal, whose first byte is at `offset` in the source.
pub(super) fn unescape(inside: &str, offset: usize) -> Result<Arc<str>> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let place = offset + (inside.len() - rest.len()) + at;
        let escape = &rest[at + 1..];
        let (character, length) =
            read_escape(escape).map_err(|error| error.at(span(place, 1 + escape_length(escape))))?;
        text.push(character);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Ok(text.into())
}

fn span(start: usize, length: usize) -> Span {
    Span::new(start as u32, (start + length) as u32)
}

fn escape_length(escape: &str) -> usize {
    escape.chars().next().map_or(0, char::len_utf8)
}

/// Reads one escape, without its backslash. Also returns its length in bytes.
fn read_escape(escape: &str) -> Result<(char, usize)> {
    let bytes = escape.as_bytes();
    match bytes.first() {
        Some(b'u') => read_unicode(escape),
        Some(b'0'..=b'7') => read_octal(bytes),
        first => match first.and_then(|byte| simple_escape(*byte)) {
            Some(character) => Ok((character, 1)),
            None => {
                let shown: String = escape.chars().take(1).collect();
                let message = format!("`\\{shown}` is not an escape in a string");
                Err(Error::new(ErrorKind::Parse, message)
                    .hint(format!("write `\\\\{shown}` for a backslash, or a regex as `#\"\\{shown}\"`")))
            }
        },
    }
}

/// The character of an escape of one letter, which JSON has too.
pub(crate) fn simple_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'"' | b'\\' => char::from(byte),
        _ => return None,
    })
}

fn read_octal(bytes: &[u8]) -> Result<(char, usize)> {
    let length = bytes.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let code = bytes[..length].iter().fold(0u32, |sum, byte| sum * 8 + u32::from(byte - b'0'));
    match char::from_u32(code) {
        Some(character) if code <= 0o377 => Ok((character, length)),
        _ => Err(Error::new(ErrorKind::Parse, "an octal escape goes up to `\\377`")),
    }
}

fn read_unicode(escape: &str) -> Result<(char, usize)> {
    match unicode_escape(escape) {
        Some((Some(character), length)) => Ok((character, length)),
        Some((None, _)) => {
            Err(Error::new(ErrorKind::Parse, format!("`\\u{}` is half of a character", &escape[1..5]))
                .hint("write the character itself"))
        }
        None => Err(Error::new(ErrorKind::Parse, "`\\u` needs four hexadecimal digits")),
    }
}

/// Reads `uXXXX`, and its length; two of them may be a surrogate pair, as Java and JSON write characters
/// beyond the first plane. There is no character if it is half of a pair.
pub(crate) fn unicode_escape(escape: &str) -> Option<(Option<char>, usize)> {
    let unit = hex_unit(escape)?;
    if let Some(character) = char::from_u32(unit) {
        return Some((Some(character), 5));
    }
    let second = escape[5..].strip_prefix('\\').and_then(hex_unit);
    let second = second.filter(|second| (0xdc00..0xe000).contains(second) && unit < 0xdc00);
    let code = second.map(|second| 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
    let pair = code.and_then(char::from_u32);
    Some((pair, if pair.is_some() { 11 } else { 5 }))
}

fn hex_unit(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Reads the part after the backslash of a character literal.
pub(super) fn read_character(token: &str) -> Result<char> {
    let mut characters = token.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Ok(character);
    }
    if let Some(character) = named_character(token) {
        return Ok(character);
    }
    let refused = || Error::new(ErrorKind::Parse, format!("`\\{token}` is not a character"));
    if token.len() == 5
        && let Some(unit) = hex_unit(token)
    {
        return char::from_u32(unit)
            .ok_or_else(|| refused().hint("it is half of a character: write the character itself"));
    }
    if let Some(digits) = token.strip_prefix('o')
        && digits.len() <= 3
        && let Ok(code) = u32::from_str_radix(digits, 8)
        && code <= 0o377
        && let Some(character) = char::from_u32(code)
    {
        return Ok(character);
    }
    if token.starts_with('"') {
        return Err(refused().hint("write the quotes of a string without backslashes: `\"text\"`"));
    }
    Err(refused().hint(format!("a text of several characters is a string: `\"{token}\"`")))
}

/// The named characters.
pub(crate) const NAMED_CHARACTERS: [(char, &str); 6] = [
    ('\n', "newline"),
    (' ', "space"),
    ('\t', "tab"),
    ('\u{8}', "backspace"),
    ('\u{c}', "formfeed"),
    ('\r', "return"),
];

fn named_character(name: &str) -> Option<char> {
    NAMED_CHARACTERS.iter().find(|(_, known)| *known == name).map(|(character, _)| *character)
}
