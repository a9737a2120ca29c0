//! Finds a value in bytes: as it is, and through any escaping that JSON allows.
//!
//! A text may be a string of JSON that holds JSON that holds the value. So the bytes are searched as they are, then with their
//! escapes resolved, then with the escapes of that resolved, and so forth. Resolving is lenient: what is not an escape stays as it is,
//! so it also finds values in a fragment of JSON in the middle of a log file. In addition the escaped forms of the value are searched for
//! literally, since a backslash before one of them can hide it from resolving.
//!
//! A range that is found never ends inside of an escape of any level. Replacing it by a text without special characters leaves
//! every level as well-formed as it was.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

/// How many levels of escapes are resolved.
const LEVELS: usize = 4;

/// How texts end that the journal has cut.
const CUT_MARKS: [&str; 2] = ["…", "..."];

/// The shortest beginning of a value that is found before the end of a cut text, in bytes.
const SHORTEST_BEGINNING: usize = 4;

/// Finds a value.
#[derive(Clone)]
pub(super) struct Finder {
    /// The value, and the value as JSON text once and twice.
    forms: Arc<[Vec<u8>]>,
}

impl Finder {
    pub(super) fn new(value: &str) -> Self {
        let mut forms = vec![value.to_owned()];
        for _ in 0..2 {
            let last = &forms[forms.len() - 1];
            let next = escaped(last);
            if next != *last {
                forms.push(next);
            }
        }
        Self { forms: forms.into_iter().map(String::into_bytes).collect() }
    }

    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        let mut resolved: Option<Vec<u8>> = None;
        for level in 0..=LEVELS {
            let text = resolved.as_deref().unwrap_or(bytes);
            if self.forms.iter().any(|form| memmem::find(text, form).is_some()) {
                return true;
            }
            if level == LEVELS || !has_escapes(text) {
                return false;
            }
            resolved = Some(resolve(text, |_| {}));
        }
        false
    }

    /// Finds the beginning of the value at the end of a text that was cut inside of it. A text is cut if it ends with a mark, or,
    /// for `only_line`, where the value has the end of a line. Returns the range without the mark.
    pub(super) fn beginning_in(&self, text: &str, only_line: bool) -> Option<Range<usize>> {
        let mark = CUT_MARKS.into_iter().find(|mark| text.ends_with(mark));
        let end = text.len() - mark.map_or(0, str::len);
        let bytes = &text.as_bytes()[..end];
        let lengths = self.forms.iter().flat_map(|form| {
            (SHORTEST_BEGINNING..form.len()).map(move |length| (length, &form[..length], form[length]))
        });
        let found = lengths.filter(|(length, beginning, next)| {
            let is_cut = mark.is_some() || only_line && *next == b'\n';
            is_cut && bytes.ends_with(beginning) && text.is_char_boundary(end - length)
        });
        found.map(|(length, ..)| end - length..end).min_by_key(|range| range.start)
    }

    /// The ranges that hold the value, in order and apart from each other.
    pub(super) fn ranges(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut levels: Vec<Level> = Vec::new();
        let mut found = Vec::new();
        loop {
            let text = levels.last().map_or(bytes, |level| &level.bytes);
            for form in &*self.forms {
                for start in memmem::find_iter(text, form) {
                    let range = start..start + form.len();
                    found.push(levels.iter().rev().fold(range, |range, level| level.below(&range)));
                }
            }
            if levels.len() == LEVELS || !has_escapes(text) {
                break;
            }
            let next = Level::over(text);
            levels.push(next);
        }
        for range in &mut found {
            let whole = levels.iter().fold(range.clone(), |range, level| level.above(&range));
            *range = levels.iter().rev().fold(whole, |range, level| level.below(&range));
        }
        merged(found)
    }
}

/// A text as the inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr(b'\\', text).is_some()
}

/// A text with its escapes resolved.
struct Level {
    bytes: Vec<u8>,
    /// Where the character or escape begins that each byte comes from, and the length of the text below.
    starts: Vec<usize>,
}

impl Level {
    fn over(text: &[u8]) -> Self {
        let mut starts = Vec::with_capacity(text.len() + 1);
        let bytes = resolve(text, |start| starts.push(start));
        starts.push(text.len());
        Self { bytes, starts }
    }

    /// The range of the text below that a range comes from.
    fn below(&self, range: &Range<usize>) -> Range<usize> {
        let mut end = range.end;
        while end < self.bytes.len() && end > 0 && self.starts[end] == self.starts[end - 1] {
            end += 1;
        }
        self.starts[range.start]..self.starts[end]
    }

    /// The range that comes from a range of the text below, or from what that cuts.
    fn above(&self, range: &Range<usize>) -> Range<usize> {
        let last = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let unit = self.starts[last];
        let start = self.starts.partition_point(|start| *start < unit);
        let end = self.starts.partition_point(|start| *start < range.end).min(self.bytes.len());
        start..end.max(start)
    }
}

/// Resolves escapes. `each` gets the place that each byte of the result comes from.
fn resolve(text: &[u8], mut each: impl FnMut(usize)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let escape = if *byte == b'\\' { Escape::at(text, at) } else { None };
        let (character, length) = match escape {
            Some(Escape { character, length }) => (character, length),
            None => {
                each(at);
                bytes.push(*byte);
                at += 1;
                continue;
            }
        };
        let mut buffer = [0; 4];
        for byte in character.encode_utf8(&mut buffer).bytes() {
            each(at);
            bytes.push(byte);
        }
        at += length;
    }
    bytes
}

/// An escape of JSON.
struct Escape {
    character: char,
    length: usize,
}

impl Escape {
    fn at(text: &[u8], at: usize) -> Option<Self> {
        let short = |character| Some(Self { character, length: 2 });
        match text.get(at + 1)? {
            b'"' => short('"'),
            b'\\' => short('\\'),
            b'/' => short('/'),
            b'b' => short('\u{8}'),
            b'f' => short('\u{c}'),
            b'n' => short('\n'),
            b'r' => short('\r'),
            b't' => short('\t'),
            b'u' => {
                let unit = hex(text, at + 2)?;
                if let Some(character) = char::from_u32(unit) {
                    return Some(Self { character, length: 6 });
                }
                let is_next = text.get(at + 6..at + 8) == Some(br"\u");
                let low = hex(text, at + 8).filter(|low| is_next && (0xdc00..0xe000).contains(low))?;
                let code = 0x1_0000 + ((unit.checked_sub(0xd800)? << 10) | (low - 0xdc00));
                Some(Self { character: char::from_u32(code)?, length: 12 })
            }
            _ => None,
        }
    }
}

fn hex(text: &[u8], at: usize) -> Option<u32> {
    let digits = str::from_utf8(text.get(at..at + 4)?).ok()?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> Vec<String> {
        let finder = Finder::new(value);
        let ranges = finder.ranges(text.as_bytes());
        assert_eq!(finder.is_in(text.as_bytes()), !ranges.is_empty(), "{text}");
        ranges.into_iter().map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn a_value_is_found_through_any_escaping() {
        let value = "a\"b\\c/d\né🧵";
        let mut text = value.to_owned();
        for _ in 0..4 {
            assert_eq!(found(value, &format!("<{text}>")), [text.clone()]);
            text = escaped(&text);
        }
        let odd = r"\u0061\u0022b\\\u0063\/d\u000A\u00E9\ud83e\uddf5";
        assert_eq!(found(value, &format!("<{odd}>")), [odd]);
        assert_eq!(found(value, &format!("<{}>", escaped(odd))), [escaped(odd)]);
    }

    #[test]
    fn what_only_resembles_the_value_is_not_found() {
        assert_eq!(found("12345678", "1234567 \\u12345678"), ["\\u12345678"], "no part of an escape stays");
        assert!(found("12345678", "1234567\\u0039").is_empty());
        assert!(found("a\nb45678", "a\\\nb45678x").is_empty());
    }

    #[test]
    fn a_range_cuts_no_escape() {
        assert_eq!(found("nsecret12", r"x\nsecret12y"), [r"\nsecret12"]);
        assert_eq!(found("nsecret12", r"x\\nsecret12y"), [r"\\nsecret12"]);
        assert_eq!(found("\nsecret12", r"x\\nsecret12y"), [r"\\nsecret12"], "as JSON text it is there");
        assert_eq!(found("secret12\\", r"secret12\\n"), [r"secret12\\n"]);
    }

    #[test]
    fn the_beginning_of_a_value_is_found_where_a_text_was_cut() {
        let found = |value: &str, text: &str, only_line| {
            Finder::new(value).beginning_in(text, only_line).map(|range| text[range].to_owned())
        };
        assert_eq!(found("sk-12345678", "the key is sk-1234…", false).as_deref(), Some("sk-1234"));
        assert_eq!(found("sk-12345678", "the key is sk-1...", false).as_deref(), Some("sk-1"));
        assert_eq!(found("a\"b-123456", r#"{"text":"a\"b-12…"#, false).as_deref(), Some(r#"a\"b-12"#));
        assert_eq!(found("é234567890", "é23456…", false).as_deref(), Some("é23456"));
        assert_eq!(found("first\nsecond", "the first", true).as_deref(), Some("first"));
        for (value, text, only_line) in [
            ("sk-12345678", "the key is sk-…", false),
            ("sk-12345678", "the key is sk-1234", false),
            ("sk-12345678", "sk-1234 is the key…", false),
            ("first\nsecond", "the first", false),
            ("sk-12345678", "…", false),
        ] {
            assert_eq!(found(value, text, only_line), None, "{text}");
        }
    }

    #[test]
    fn lone_surrogates_and_cut_escapes_are_left_as_they_are() {
        for text in [r"\ud800", r"\ud800\u0041", r"\u12", r"\", r"\ud83e\uddf", r"\x41"] {
            let mut starts = Vec::new();
            let bytes = resolve(text.as_bytes(), |start| starts.push(start));
            assert_eq!(bytes.len(), starts.len(), "{text}");
            assert!(!Finder::new("12345678").is_in(text.as_bytes()));
        }
    }
}
