//! Samples: a part of a value by which people and models recognise it.
//!
//! Each collection shows its first items and then their total, if that is known without a walk: `[1 2 3 ...]
//! (5 items, showing first 3)`. Each string shows its first characters and then `...`. The strings in a map
//! share one budget of characters. Lengths are counted in Unicode scalars.

use super::full::Style;
use super::scalar::{escape_string, print_scalar};
use crate::reader::is_keyword_name;
use crate::value::{Cursor, CursorStep, Map, Value};

/// The limits of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// The most items of each collection.
    pub items: usize,
    /// The most characters of each string.
    pub characters: usize,
    /// Whether labels name all fields of records. Then only the outermost collection tells its length: the
    /// specification has it behind every collection that is cut.
    pub fields: bool,
}

impl Truncation {
    /// The limits for data and definitions.
    pub const SAMPLE: Truncation = Truncation { items: 3, characters: 80, fields: false };
    /// The limits for arguments of tool calls.
    pub const ARGUMENTS: Truncation = Truncation { items: 3, characters: 60, fields: false };
}

/// Prints a sample of a value: at most `limit` items of each collection, at most `printable_limit` characters
/// of each string.
///
/// Nesting multiplies, so once the text is twenty times as long as the limit of a string, collections show no
/// more items.
pub fn to_clojure(value: &Value, limit: usize, printable_limit: usize) -> String {
    sample(value, Truncation { items: limit, characters: printable_limit, fields: false }, HiddenKeys::Shown)
}

/// Prints a sample of a value, as [`to_clojure`] does, without the entries of maps whose keys begin with `_`.
pub fn to_clojure_without_hidden(value: &Value, truncation: Truncation) -> String {
    sample(value, truncation, HiddenKeys::Left)
}

/// The treatment of entries whose keys begin with `_`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenKeys {
    Shown,
    Left,
}

fn sample(value: &Value, truncation: Truncation, hidden: HiddenKeys) -> String {
    let Truncation { items, characters, fields } = truncation;
    let enough = characters.saturating_mul(20).max(2_000);
    let mut sampler = Sampler { out: String::new(), items, enough, hidden, outermost_only: fields, depth: 0 };
    sampler.value(value, characters);
    sampler.out
}

/// The total and the number of shown items, for a collection that is shown in part.
struct SampleCount {
    shown: usize,
    total: Option<usize>,
}

struct Sampler {
    out: String,
    items: usize,
    /// From this many bytes on, collections are printed empty.
    enough: usize,
    hidden: HiddenKeys,
    /// Whether only the outermost collection tells its length.
    outermost_only: bool,
    /// The number of collections around the current place.
    depth: usize,
}

/// The most hidden entries of a map that are counted. Maps with more are not expected.
const COUNTED: usize = 64;

/// Whether a key is hidden from samples.
pub(super) fn is_hidden(key: &Value) -> bool {
    match key {
        Value::String(text) => text.starts_with('_'),
        Value::Keyword(name) => name.full().starts_with('_') || name.name().starts_with('_'),
        _ => false,
    }
}

impl Sampler {
    fn value(&mut self, value: &Value, characters: usize) {
        match value {
            Value::String(text) => self.string(text, characters),
            Value::Set(set) => {
                let mut items = set.iter();
                let total = set.len();
                self.sequence("#{", '}', Some(total), characters, || {
                    items.next().cloned().map_or(CursorStep::End, CursorStep::Item)
                });
            }
            Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
                let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
                let (open, close) = if matches!(value, Value::Vector(_)) { ("[", ']') } else { ("(", ')') };
                self.sequence(open, close, cursor.left(), characters, || cursor.next());
            }
            Value::Map(map) => self.map(map, characters),
            Value::Exception(exception) => {
                self.out.push_str("#error {:message ");
                match exception.message() {
                    Some(message) => self.string(message, characters),
                    None => self.out.push_str("nil"),
                }
                if !exception.data().is_nil() {
                    self.out.push_str(" :data ");
                    self.value(exception.data(), characters);
                }
                self.out.push('}');
            }
            Value::Reduced(inner) => {
                self.out.push_str("#reduced[");
                self.value(inner, characters);
                self.out.push(']');
            }
            scalar => self.scalar(scalar, characters),
        }
    }

    /// Prints a number, name or pattern. It has no parts to omit, so a long one is cut like a string.
    fn scalar(&mut self, value: &Value, characters: usize) {
        let start = self.out.len();
        if !print_scalar(value, Style::Readable, &mut self.out) {
            self.out.push_str("#<");
            self.out.push_str(value.type_name());
            self.out.push('>');
        }
        if let Some(end) = cut(&self.out[start..], characters) {
            self.out.truncate(start + end);
            self.out.push_str("...");
        }
    }

    fn string(&mut self, text: &str, characters: usize) {
        match cut(text, characters) {
            None => escape_string(text, &mut self.out),
            Some(end) => {
                escape_string(&text[..end], &mut self.out);
                // Before the closing quote.
                self.out.insert_str(self.out.len() - 1, "...");
            }
        }
    }

    fn sequence(
        &mut self,
        open: &str,
        close: char,
        total: Option<usize>,
        characters: usize,
        mut next: impl FnMut() -> CursorStep,
    ) {
        self.out.push_str(open);
        self.depth += 1;
        let mut shown = 0;
        let cut = loop {
            if total == Some(shown) {
                break false;
            }
            if shown >= self.items || self.out.len() >= self.enough {
                // With an unknown total, one more step shows if there are more items; it realises nothing.
                break total.is_some() || !matches!(next(), CursorStep::End);
            }
            match next() {
                CursorStep::Item(item) => {
                    if shown > 0 {
                        self.out.push(' ');
                    }
                    self.value(&item, characters);
                    shown += 1;
                }
                CursorStep::End => break false,
                CursorStep::Blocked(_) => break true,
            }
        };
        self.close(close, cut.then_some(SampleCount { shown, total }));
    }

    fn map(&mut self, map: &Map, characters: usize) {
        let hides = self.hidden == HiddenKeys::Left;
        let hidden = if hides { map.keys().take(COUNTED).filter(|key| is_hidden(key)).count() } else { 0 };
        let total = map.len() - hidden;
        let wanted = total.min(self.items);
        let share = characters_of_each(characters, wanted);
        self.out.push('{');
        self.depth += 1;
        let mut shown = 0;
        for (key, value) in map.iter().filter(|(key, _)| !hides || !is_hidden(key)).take(wanted) {
            if self.out.len() >= self.enough {
                break;
            }
            if shown > 0 {
                self.out.push(' ');
            }
            self.key(key, map.is_flexible(), characters);
            self.out.push(' ');
            self.value(value, share);
            shown += 1;
        }
        self.close('}', (shown < total).then_some(SampleCount { shown, total: Some(total) }));
    }

    /// Prints a key. A keyword that cannot be written is shown as a string where a lookup accepts either.
    fn key(&mut self, key: &Value, flexible: bool, characters: usize) {
        match key {
            Value::Keyword(name) if flexible && !is_keyword_name(name.full()) => {
                self.string(name.full(), characters);
            }
            key => self.value(key, characters),
        }
    }

    fn close(&mut self, close: char, cut: Option<SampleCount>) {
        self.depth -= 1;
        let Some(SampleCount { shown, total }) = cut else {
            self.out.push(close);
            return;
        };
        self.out.push_str(if shown > 0 { " ..." } else { "..." });
        self.out.push(close);
        if let Some(total) = total
            && (self.depth == 0 || !self.outermost_only)
        {
            self.out.push_str(&format!(" ({total} items, showing first {shown})"));
        }
    }
}

/// Divides the characters among the values of a map: ten go to each key, and a value gets at least ten.
fn characters_of_each(characters: usize, entries: usize) -> usize {
    if characters == usize::MAX || entries == 0 {
        return characters;
    }
    (characters.saturating_sub(10 * entries) / entries).max(10).min(characters)
}

/// Returns the byte at which to cut a text that has more than `characters` characters.
fn cut(text: &str, characters: usize) -> Option<usize> {
    // A character has at least one byte, so most texts are known to be short enough at once.
    if text.len() <= characters {
        return None;
    }
    text.char_indices().nth(characters).map(|(end, _)| end)
}
