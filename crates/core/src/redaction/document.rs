//! JSON text as tokens, so that some of them can be replaced and all others stay byte for byte.
//!
//! Each token says which field it stands in and whether that is free-form data, whose names and numbers may change too. The text
//! has to be valid JSON; of anything else there is no document.

use std::ops::Range;

/// JSON text with its strings and numbers.
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    /// Strings, names and numbers, in order.
    pub(super) tokens: Vec<Token>,
    pub(super) containers: Vec<Container>,
}

/// A string, a name or a number.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// With the quotes.
    pub(super) range: Range<usize>,
    pub(super) kind: TokenKind,
    /// Whether it belongs to free-form data.
    pub(super) is_free: bool,
    /// The field that it stands in, or whose name it is; that of an array for its items.
    pub(super) field: String,
    /// The object or array that it stands in.
    pub(super) container: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    Text,
    Number,
}

/// An object or an array.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) range: Range<usize>,
    /// The field that it stands in.
    pub(super) field: String,
    /// The object or array around it.
    pub(super) parent: Option<usize>,
    is_object: bool,
    is_free: bool,
}

/// Which fields hold free-form data.
pub(super) type FreeFields<'a> = &'a dyn Fn(&[&str]) -> bool;

impl Token {
    /// The range between the quotes.
    pub(super) fn inside(&self) -> Range<usize> {
        match self.kind {
            TokenKind::Number => self.range.clone(),
            TokenKind::Name | TokenKind::Text => self.range.start + 1..self.range.end - 1,
        }
    }
}

impl<'a> Document<'a> {
    /// Reads a text. `free` gets the path of a field and decides whether it begins free-form data; the empty path is the whole text.
    pub(super) fn read(text: &'a str, free: FreeFields<'_>) -> Option<Self> {
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        let mut document = Self { text, tokens: Vec::new(), containers: Vec::new() };
        document.scan(free);
        Some(document)
    }

    /// The text of a token as a value.
    pub(super) fn string(&self, token: &Token) -> Option<String> {
        serde_json::from_str(&self.text[token.range.clone()]).ok()
    }

    /// The tokens that overlap a range, by their numbers.
    pub(super) fn overlapping(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.tokens.partition_point(|token| token.range.end <= range.start);
        let last = self.tokens.partition_point(|token| token.range.start < range.end);
        first..last.max(first)
    }

    /// The value of a field of an object, if it is a string or a number.
    pub(super) fn field_of(&self, container: usize, field: &str) -> Option<usize> {
        let is_it = |token: &Token| {
            token.container == container && token.kind != TokenKind::Name && token.field == field
        };
        self.tokens.iter().position(is_it)
    }

    /// Returns whether an object has a field.
    pub(super) fn has_field(&self, container: usize, field: &str) -> bool {
        let is_it = |token: &Token| {
            token.container == container && token.kind == TokenKind::Name && token.field == field
        };
        self.tokens.iter().any(is_it)
    }

    fn scan(&mut self, free: FreeFields<'_>) {
        let bytes = self.text.as_bytes();
        let mut open: Vec<usize> = Vec::new();
        // The name that was read last in each open container, and whether its value follows.
        let mut names: Vec<String> = Vec::new();
        let mut expects_name = false;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    let (field, is_free) = self.place(&open, &names, free);
                    let container = Container {
                        range: at..at,
                        field,
                        parent: open.last().copied(),
                        is_object: *byte == b'{',
                        is_free,
                    };
                    expects_name = container.is_object;
                    open.push(self.containers.len());
                    names.push(String::new());
                    self.containers.push(container);
                    at += 1;
                }
                b'}' | b']' => {
                    if let Some(closed) = open.pop() {
                        self.containers[closed].range.end = at + 1;
                    }
                    names.pop();
                    expects_name = false;
                    at += 1;
                }
                b'"' => {
                    let end = end_of_string(bytes, at);
                    if expects_name {
                        let name = serde_json::from_str(&self.text[at..end]).unwrap_or_default();
                        if let Some(last) = names.last_mut() {
                            *last = name;
                        }
                    }
                    let kind = if expects_name { TokenKind::Name } else { TokenKind::Text };
                    self.token(at..end, kind, &open, &names, free);
                    expects_name = false;
                    at = end;
                }
                b'-' | b'0'..=b'9' => {
                    let rest = bytes[at..].iter();
                    let length = rest.take_while(|byte| is_of_number(**byte)).count();
                    self.token(at..at + length, TokenKind::Number, &open, &names, free);
                    at += length;
                }
                b',' => {
                    expects_name = open.last().is_some_and(|last| self.containers[*last].is_object);
                    at += 1;
                }
                // White space, a colon, or a letter of `true`, `false` and `null`.
                _ => at += 1,
            }
        }
    }

    fn token(
        &mut self,
        range: Range<usize>,
        kind: TokenKind,
        open: &[usize],
        names: &[String],
        free: FreeFields<'_>,
    ) {
        let (field, mut is_free) = self.place(open, names, free);
        if kind == TokenKind::Name {
            // The name of a field belongs to what surrounds the field.
            is_free = open.last().is_some_and(|last| self.containers[*last].is_free);
        }
        let container = open.last().copied().unwrap_or_default();
        self.tokens.push(Token { range, kind, is_free, field, container });
    }

    /// The field of a value that begins here, and whether it is free-form data.
    fn place(&self, open: &[usize], names: &[String], free: FreeFields<'_>) -> (String, bool) {
        let Some((last, name)) = open.last().zip(names.last()) else { return (String::new(), free(&[])) };
        let around = &self.containers[*last];
        if !around.is_object {
            return (around.field.clone(), around.is_free);
        }
        if around.is_free {
            return (name.clone(), true);
        }
        let containers = open.iter().map(|number| &self.containers[*number]);
        let path = containers.filter(|one| one.is_object).map(|one| &*one.field).skip(1);
        let path: Vec<&str> = path.chain([&**name]).collect();
        (name.clone(), free(&path))
    }
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
}

/// The place after the quote that ends a string.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A text with other texts in the place of some ranges, which are in order and apart from each other.
pub(super) fn spliced(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (range, new) in edits {
        result.push_str(&text[at..range.start]);
        result.push_str(new);
        at = range.end;
    }
    result.push_str(&text[at..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_know_their_fields_and_whether_they_are_free() {
        let text = r#" {"v": 1, "data": {"list": ["a", {"arguments": {"k": [-2.5e3, true]}}]}, "x": null}"#;
        let document = Document::read(text, &|path| path.last() == Some(&"arguments")).unwrap();
        let seen: Vec<_> = document
            .tokens
            .iter()
            .map(|token| (&text[token.range.clone()], token.field.as_str(), token.is_free))
            .collect();
        assert_eq!(
            seen,
            [
                (r#""v""#, "v", false),
                ("1", "v", false),
                (r#""data""#, "data", false),
                (r#""list""#, "list", false),
                (r#""a""#, "list", false),
                (r#""arguments""#, "arguments", false),
                (r#""k""#, "k", true),
                ("-2.5e3", "k", true),
                (r#""x""#, "x", false),
            ]
        );
        assert_eq!(document.containers[0].range, 1..text.len());
        assert!(Document::read("{", &|_| false).is_none());
        assert!(Document::read(r#""alone""#, &|_| true).unwrap().tokens[0].is_free);
    }

    #[test]
    fn paths_name_the_objects_around_a_field() {
        let text = r#"{"data":{"op":{"patch":{"append":[{"n":1}],"remove":[2]}}}}"#;
        let free = |path: &[&str]| path == ["data", "op", "patch", "append"];
        let document = Document::read(text, &free).unwrap();
        let numbers = document.tokens.iter().filter(|token| token.kind == TokenKind::Number);
        assert_eq!(numbers.map(|token| token.is_free).collect::<Vec<_>>(), [true, false]);
    }
}
