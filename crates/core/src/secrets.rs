//! Keys of accounts, and keeping them out of what is recorded and sent.
//!
//! A command can find a key although it is not given any: in the memory of its parent, in a file, in the output of another
//! program. What is known to be a key is replaced in everything that a tool gives back, before that is recorded or sent. This
//! is a safety net and not a wall: a key that is not known here, or that is encoded, passes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::message::Part;
use crate::ports::{ProcessOutcome, ProcessOutput};
use crate::tool::ToolResult;

/// The text that stands where a key stood.
pub const REPLACEMENT: &str = "[secret]";

/// A shorter text is no key, but a word that anybody may use. In characters.
pub const SHORTEST: usize = 8;

/// Keys that must be neither recorded nor sent. A clone is cheap.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first, since one may be a part of another.
    known: Arc<[String]>,
}

impl Secrets {
    /// These keys, but for those that are too short to be any.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let keys = keys.into_iter().map(Into::into);
        let mut known: Vec<String> = keys.filter(|key: &String| key.chars().count() >= SHORTEST).collect();
        known.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        Self { known: known.into() }
    }

    /// These keys and others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        match (self.is_empty(), others.is_empty()) {
            (_, true) => self.clone(),
            (true, _) => others.clone(),
            _ => Self::new(self.known.iter().chain(&*others.known).cloned()),
        }
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// A text without keys.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for key in &*self.known {
            if clean.contains(key.as_str()) {
                clean = Cow::Owned(clean.replace(key.as_str(), REPLACEMENT));
            }
        }
        clean
    }

    fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact(text) {
            *text = clean;
        }
    }

    /// A value without keys, in none of its texts and names.
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

    /// What a tool gives back, without keys. Media is left as it is.
    pub fn redact_result(&self, result: &mut ToolResult) {
        if self.is_empty() {
            return;
        }
        self.redact_in(&mut result.message);
        result.value = result.value.take().map(|value| self.redact_value(value));
        for part in &mut result.parts {
            let text = part.as_text().and_then(|part| part.text.inline());
            if let Some(Cow::Owned(clean)) = text.map(|text| self.redact(text)) {
                *part = Part::text(clean);
            }
        }
    }

    /// What a process wrote, without keys, and without the half of one that was cut in two.
    pub fn redact_outcome(&self, outcome: ProcessOutcome) -> ProcessOutcome {
        if self.is_empty() {
            return outcome;
        }
        let ProcessOutcome { exit, stdout, stderr } = outcome;
        ProcessOutcome { exit, stdout: self.redact_output(stdout), stderr: self.redact_output(stderr) }
    }

    fn redact_output(&self, mut output: ProcessOutput) -> ProcessOutput {
        if output.cut == 0 {
            // Both are one text, in which a key may lie across the border.
            output.head.append(&mut output.tail);
        }
        for key in &*self.known {
            let key = key.as_bytes();
            output.head = replaced(&output.head, key);
            output.tail = replaced(&output.tail, key);
            if output.cut > 0 {
                let parts = (SHORTEST..key.len()).rev();
                if let Some(part) = parts.clone().find(|part| output.head.ends_with(&key[..*part])) {
                    output.head.truncate(output.head.len() - part);
                    output.head.extend_from_slice(REPLACEMENT.as_bytes());
                }
                if let Some(part) =
                    parts.clone().find(|part| output.tail.starts_with(&key[key.len() - part..]))
                {
                    output.tail.splice(..part, REPLACEMENT.bytes());
                }
            }
        }
        output
    }

    /// Whether a text holds what stands for a key. Writing it to a file would overwrite the key that it stands for.
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
    use crate::ports::ProcessExit;

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

    #[test]
    fn a_key_that_was_cut_in_two_is_replaced_as_well() {
        let secrets = Secrets::new([KEY]);
        let bytes = format!("begin {KEY} end").into_bytes();
        for at in 0..=bytes.len() {
            for cut in [0, 10] {
                let (head, tail) = bytes.split_at(at);
                let output = ProcessOutput { head: head.to_vec(), cut, tail: tail.to_vec() };
                let outcome = ProcessOutcome {
                    exit: ProcessExit::Code(0),
                    stdout: output.clone(),
                    stderr: ProcessOutput::default(),
                };
                let text = secrets.redact_outcome(outcome).stdout.text();
                assert!(!text.contains(&KEY[..SHORTEST]), "{at} {cut}: {text}");
                assert!(!text.contains(&KEY[KEY.len() - SHORTEST..]), "{at} {cut}: {text}");
                if cut == 0 {
                    assert_eq!(text, "begin [secret] end", "{at}");
                }
            }
        }
    }
}
