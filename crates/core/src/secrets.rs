//! API keys, and their removal from recorded and sent data.
//!
//! A command can find a key that it was not given: in the memory of its parent, in a file, in the output of
//! another program. Known keys are replaced in everything that a tool returns, before it is recorded or sent.
//! This is a safety net, not a guarantee: a key that is unknown here, or that is encoded, passes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// The text that replaces a key.
pub const REPLACEMENT: &str = "[secret]";

/// The text that replaces a redacted value.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of a key, in characters. A shorter text may be an ordinary word and is never replaced.
pub const SHORTEST: usize = 8;

/// Keys that must be neither recorded nor sent. A clone is cheap.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Longest first, since one key may be part of another.
    known: Arc<[String]>,
}

impl Secrets {
    /// Collects the keys, except those that are too short.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let keys = keys.into_iter().map(Into::into);
        let mut known: Vec<String> = keys.filter(|key: &String| key.chars().count() >= SHORTEST).collect();
        known.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        Self { known: known.into() }
    }

    /// Returns the union of both sets of keys.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        match (self.is_empty(), others.is_empty()) {
            (_, true) => self.clone(),
            (true, _) => others.clone(),
            _ => Self::new(self.known.iter().chain(&*others.known).cloned()),
        }
    }

    /// Returns whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the text with all keys replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for key in &*self.known {
            if clean.contains(key.as_str()) {
                clean = Cow::Owned(clean.replace(key.as_str(), REPLACEMENT));
            }
        }
        clean
    }

    /// Replaces keys in a text.
    pub(crate) fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact(text) {
            *text = clean;
        }
    }

    /// Returns the value with the keys replaced in all of its texts and field names.
    pub fn redact_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(mut text) => {
                self.redact_in(&mut text);
                Value::String(text)
            }
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(fields) => {
                let clean = |(mut name, value): (String, Value)| {
                    self.redact_in(&mut name);
                    (name, self.redact_value(value))
                };
                fields.into_iter().map(clean).collect()
            }
            other => other,
        }
    }

    /// Replaces keys in bytes that may have a gap between `head` and `tail`, if `cut` is set. A part of a key
    /// at the edge of the gap is replaced too. Without a gap, `head` holds everything afterwards.
    pub(crate) fn redact_pieces(&self, head: &mut Vec<u8>, cut: bool, tail: &mut Vec<u8>) {
        if !cut {
            // Both are one text, and a key may lie across the border.
            head.append(tail);
        }
        for key in &*self.known {
            let key = key.as_bytes();
            *head = replaced(head, key);
            *tail = replaced(tail, key);
            if cut {
                let parts = (SHORTEST..key.len()).rev();
                if let Some(part) = parts.clone().find(|part| head.ends_with(&key[..*part])) {
                    head.truncate(head.len() - part);
                    head.extend_from_slice(REPLACEMENT.as_bytes());
                }
                if let Some(part) = parts.clone().find(|part| tail.starts_with(&key[key.len() - part..])) {
                    tail.splice(..part, REPLACEMENT.bytes());
                }
            }
        }
    }

    /// Returns whether a text holds the replacement of a key. Writing such a text to a file would overwrite
    /// the key.
    pub fn is_redacted(&self, text: &str) -> bool {
        !self.is_empty() && text.contains(REPLACEMENT)
    }
}

fn replaced(bytes: &[u8], key: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(key.len()).position(|window| window == key) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(REPLACEMENT.as_bytes());
        rest = &rest[at + key.len()..];
    }
    clean.extend_from_slice(rest);
    clean
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secrets({})", self.known.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-0123456789abcdef";

    #[test]
    fn keys_are_replaced_wherever_they_stand() {
        let secrets = Secrets::new([KEY, "short", "sk-test-0123"]);
        assert_eq!(secrets.redact(&format!("a {KEY}{KEY} b")), "a [secret][secret] b");
        assert_eq!(
            secrets.redact("sk-test-0123 is a key, short is none"),
            "[secret] is a key, short is none"
        );
        let value = serde_json::json!({KEY: [1, null, {"x": format!("<{KEY}>")}]});
        assert_eq!(
            secrets.redact_value(value),
            serde_json::json!({"[secret]": [1, null, {"x": "<[secret]>"}]})
        );
        assert!(secrets.is_redacted("x [secret]") && !secrets.is_redacted("x"));
        assert!(!Secrets::default().is_redacted("x [secret]"), "nothing was replaced");
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
    }
}
