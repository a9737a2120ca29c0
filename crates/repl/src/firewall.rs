//! Values that no prompt may show, wherever they turn up.
//!
//! Data under a name that begins with `_` is left out of samples by its name. An error may quote the value
//! itself (`"pin-7788" is not an integer`), and so may the value of a program that only reads it. Both are
//! searched for the firewalled texts and numbers before they are recorded for the model, and for pieces of the
//! texts of [`PIECE`] characters or more. Values shorter than [`SHORTEST`] characters are not searched for: they
//! would be found at random. What a program prints, defines or passes to a tool is shown as it is.

use std::collections::HashSet;

use serde_json::{Map as Object, Value as Json};

use crate::signature::is_firewalled;

/// The shortest text or number that is recognised.
const SHORTEST: usize = 4;

/// The shortest beginning of a longer text that is recognised, since an error may quote only that.
const BEGINNING: usize = 8;

/// The shortest piece of a longer text that is recognised. Words and phrases of ordinary texts are shorter.
const PIECE: usize = 12;

/// The maximum number of pieces that are known. Those of short texts come first: keys are short.
const MOST_PIECES: usize = 100_000;

/// The maximum number of values. Data with more firewalled ones is a table, of which the first rows are known.
const MOST: usize = 10_000;

/// The text in place of a value.
const HIDDEN: &str = "[hidden]";

/// The firewalled values of an agent's data.
#[derive(Debug, Clone, Default)]
pub(crate) struct Firewall {
    /// The texts, as they are and as the language or Rust quotes them. The longest is the first, since one may be part
    /// of another.
    texts: Vec<String>,
    /// Every [`PIECE`] characters of the texts.
    pieces: HashSet<String>,
}

impl Firewall {
    pub(crate) fn of(data: &Object<String, Json>) -> Self {
        let mut texts = Vec::new();
        for (name, value) in data {
            collect(value, is_firewalled(name), &mut texts);
        }
        texts.extend(texts.iter().map(|text| escaped(text)).collect::<Vec<_>>());
        texts.sort_unstable_by(|one: &String, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        texts.dedup();
        let mut pieces = HashSet::new();
        for text in texts.iter().rev() {
            let left = MOST_PIECES.saturating_sub(pieces.len());
            pieces.extend(windows(text).take(left).map(|(_, piece)| piece.to_owned()));
        }
        Self { texts, pieces }
    }

    /// Returns a text without pieces of the values.
    fn without_pieces(&self, text: String) -> String {
        if self.pieces.is_empty() {
            return text;
        }
        let found = windows(&text).filter(|(_, piece)| self.pieces.contains(*piece));
        let (mut shown, mut end) = (String::new(), 0);
        for (at, piece) in found {
            if at > end || at == 0 {
                shown.push_str(&text[end..at]);
                shown.push_str(HIDDEN);
            }
            end = at + piece.len();
        }
        shown + &text[end..]
    }

    /// Returns a text without the values.
    pub(crate) fn hide(&self, mut text: String) -> String {
        for secret in &self.texts {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), HIDDEN);
            }
            text = without_beginning(text, secret);
        }
        self.without_pieces(text)
    }

    /// Returns a value without the values.
    pub(crate) fn hide_in(&self, json: Json) -> Json {
        if self.texts.is_empty() {
            return json;
        }
        match json {
            Json::String(text) => Json::String(self.hide(text)),
            Json::Number(number) if self.texts.contains(&number.to_string()) => {
                Json::String(HIDDEN.to_owned())
            }
            Json::Array(items) => Json::Array(items.into_iter().map(|item| self.hide_in(item)).collect()),
            Json::Object(fields) => Json::Object(
                fields.into_iter().map(|(name, value)| (self.hide(name), self.hide_in(value))).collect(),
            ),
            other => other,
        }
    }
}

/// A text as it is written in a string literal.
fn escaped(text: &str) -> String {
    let quoted = format!("{text:?}");
    quoted[1..quoted.len() - 1].to_owned()
}

/// Every [`PIECE`] characters of a text, with their place.
fn windows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(PIECE);
    text.char_indices().zip(ends).map(|((start, _), end)| (start, &text[start..end]))
}

/// Replaces the beginnings of a value that were cut.
fn without_beginning(text: String, secret: &str) -> String {
    let Some((end, _)) = secret.char_indices().nth(BEGINNING) else { return text };
    let (mut shown, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find(&secret[..end]) {
        let same: usize = rest[at..]
            .chars()
            .zip(secret.chars())
            .take_while(|(one, other)| one == other)
            .map(|(character, _)| character.len_utf8())
            .sum();
        shown.push_str(&rest[..at]);
        shown.push_str(HIDDEN);
        rest = &rest[at + same..];
    }
    if shown.is_empty() { text } else { shown + rest }
}

fn collect(value: &Json, is_hidden: bool, texts: &mut Vec<String>) {
    if texts.len() >= MOST {
        return;
    }
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        Json::Array(items) => return items.iter().for_each(|item| collect(item, is_hidden, texts)),
        Json::Object(fields) => {
            for (name, value) in fields {
                collect(value, is_hidden || is_firewalled(name), texts);
            }
            return;
        }
        Json::Null | Json::Bool(_) => return,
    };
    if is_hidden && text.chars().count() >= SHORTEST {
        texts.push(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn firewall() -> Firewall {
        let Json::Object(data) = json!({
            "_key": "pin-7788", "rows": [{"id": 1, "_salary": 51234}], "_long": "a".repeat(20) + "\"b", "open": "visible",
        }) else {
            panic!("an object")
        };
        Firewall::of(&data)
    }

    #[test]
    fn values_are_hidden_wherever_they_are_quoted() {
        let hide = |text: &str| firewall().hide(text.to_owned());
        assert_eq!(hide("\"pin-7788\" is not an integer"), "\"[hidden]\" is not an integer");
        assert_eq!(hide("51234 is not a function"), "[hidden] is not a function");
        assert_eq!(
            hide(&format!("{:?} is not a date", "a".repeat(20) + "\"b")),
            "\"[hidden]\" is not a date"
        );
        assert_eq!(hide("\"aaaaaaaaaaaa...\""), "\"[hidden]...\"");
        assert_eq!(hide("visible 1"), "visible 1");
    }

    #[test]
    fn any_number_of_beginnings_is_hidden() {
        let Json::Object(data) = json!({"_key": "0123456789", "_odd": "[hidden] as it is"}) else {
            panic!("an object")
        };
        let firewall = Firewall::of(&data);
        let many = firewall.hide("012345678 ".repeat(100_000));
        assert_eq!(many, "[hidden] ".repeat(100_000));
        // A hidden text that begins like the text in its place.
        assert_eq!(firewall.hide("[hidden] as x [hidden] y".to_owned()), "[hidden]x [hidden]y");
    }

    #[test]
    fn pieces_are_hidden_once_for_each_place() {
        let Json::Object(data) = json!({
            "_key": "0123456789abcdefghij", "_note": "the line\nwith a \"quoted\" word", "_long": "x".repeat(MOST_PIECES * 2),
        }) else {
            panic!("an object")
        };
        let firewall = Firewall::of(&data);
        let hide = |text: &str| firewall.hide(text.to_owned());
        assert_eq!(hide("<56789abcdefghi>"), "<[hidden]>");
        assert_eq!(hide("3456789abcde and 456789abcdef"), "[hidden] and [hidden]");
        assert_eq!(hide("456789abcde"), "456789abcde");
        assert_eq!(hide("\"ine\\nwith a \\\"quo\""), "\"[hidden]\"");
        assert_eq!(hide("ä56789abcdefghiß"), "ä[hidden]ß");
        assert_eq!(hide(""), "");
    }

    #[test]
    fn values_are_hidden_in_values() {
        let shown = firewall().hide_in(json!({"a": ["pin-7788", 51234, 1], "pin-7788": true}));
        assert_eq!(shown, json!({"a": ["[hidden]", "[hidden]", 1], "[hidden]": true}));
    }
}
