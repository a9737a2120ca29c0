//! Files at points of a session, and what differs between two points.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::SessionId;
use crate::ports::ChangeKind;
use crate::report::Version;

/// How much is shown of files that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileDetail {
    /// Their paths.
    #[default]
    Names,
    /// Also what changed in them, line by line.
    Diffs,
}

/// What differs between two points of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The files that differ.
    pub files: Vec<ChangedFile>,
    /// The slices of the working state that differ: the number of their items at both points. Logs are left out, because nothing
    /// undoes them, as are caches, and the transcript, which is the conversation.
    pub state: BTreeMap<String, (usize, usize)>,
    /// The messages of the conversation.
    pub messages: MessageCounts,
}

impl DiffReport {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.state.is_empty() && self.messages.from == self.messages.to
    }
}

/// The number of messages at two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCounts {
    /// At the first point.
    pub from: usize,
    /// At the second point.
    pub to: usize,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Path in the workspace.
    pub path: String,
    /// Kind of difference.
    pub change: ChangeKind,
    /// The difference of its lines, as a unified diff; `null` for a file that is not text or too large. Left out where only names
    /// were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub diff: Option<Option<String>>,
}

impl ChangedFile {
    /// Returns the difference of its lines, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.diff.as_ref()?.as_deref()
    }
}

/// Reads a value that may be `null`, and is not left out.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A file as it was at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileReport {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The point.
    pub point: String,
    /// Path in the workspace.
    pub path: String,
    /// The size of its content.
    pub bytes: usize,
    /// Its content, if that is UTF-8.
    pub text: Option<String>,
    /// Its content in hexadecimal digits, if it is not UTF-8.
    pub hex: Option<String>,
}

impl FileReport {
    pub(crate) fn new(session: SessionId, point: String, path: String, content: &[u8]) -> Self {
        let text = std::str::from_utf8(content).ok().map(str::to_owned);
        let digits = || content.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = text.is_none().then(digits);
        Self { v: Version, session, point, path, bytes: content.len(), text, hex }
    }

    /// Returns its content.
    pub fn content(&self) -> Cow<'_, [u8]> {
        match (&self.text, &self.hex) {
            (Some(text), _) => text.as_bytes().into(),
            (None, hex) => {
                let digits = hex.as_deref().unwrap_or_default().as_bytes().chunks(2);
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                digits.filter_map(byte).collect::<Vec<_>>().into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_bytes() {
        let session = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        for content in [&b""[..], b"text\n", b"\xff\x00\x0a"] {
            let file = FileReport::new(session, "head".to_owned(), "a".to_owned(), content);
            assert_eq!(&*file.content(), content);
            assert_eq!(file.text.is_some(), file.hex.is_none());
            assert_eq!(file.bytes, content.len());
        }
    }

    #[test]
    fn a_diff_is_left_out_null_or_text() {
        let forms = [
            r#"{"path":"a","change":"added"}"#,
            r#"{"path":"a","change":"added","diff":null}"#,
            r#"{"path":"a","change":"added","diff":"+a\n"}"#,
        ];
        for (form, text) in forms.into_iter().zip([None, None, Some("+a\n")]) {
            let file: ChangedFile = serde_json::from_str(form).unwrap();
            assert_eq!(serde_json::to_string(&file).unwrap(), form);
            assert_eq!(file.text(), text);
        }
    }
}
