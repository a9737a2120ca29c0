//! The transcript of a conversation, which is read and never written.
//!
//! Its records form a tree: each names its parent. A prompt has the id that it was sent with.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde_json::Value;

/// The most bytes that are read.
const WHOLE: u64 = 512 * 1024 * 1024;

/// The longest line.
const LINE: u64 = 64 * 1024 * 1024;

/// The records of a transcript.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    records: Vec<Value>,
}

impl Transcript {
    /// Reads a transcript. Lines that are not JSON are skipped: the last one may be incomplete.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut reader = BufReader::new(file.take(WHOLE));
        let (mut records, mut line) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            if (&mut reader).take(LINE).read_until(b'\n', &mut line).ok()? == 0 {
                return Some(Self { records });
            }
            records.extend(serde_json::from_slice::<Value>(&line));
        }
    }

    /// Returns the record with the result of a call.
    pub(super) fn record_of_result(&self, call: &str) -> Option<String> {
        let is_it = |record: &&Value| {
            let content = record.pointer("/message/content").and_then(Value::as_array);
            content.is_some_and(|blocks| {
                blocks.iter().any(|block| block.get("tool_use_id").and_then(Value::as_str) == Some(call))
            })
        };
        uuid(self.records.iter().rev().find(is_it)?)
    }

    /// Returns the last record of the answer to a prompt: the last one below it before the next prompt.
    pub(super) fn record_of_answer(&self, prompt: &str) -> Option<String> {
        let parents = self.parents();
        let is_below = |record: &&Value| {
            let mut next = text(record, "uuid");
            // Each step goes to an earlier record, so this ends.
            for _ in 0..self.records.len() {
                match next {
                    Some(id) if id == prompt => return true,
                    Some(id) if self.is_prompt(id) => return false,
                    Some(id) => next = parents.get(id).copied().flatten(),
                    None => return false,
                }
            }
            false
        };
        let answers = self.records.iter().rev().filter(|record| text(record, "type") == Some("assistant"));
        uuid(answers.filter(|record| record.get("isSidechain") != Some(&Value::Bool(true))).find(is_below)?)
    }

    /// Whether nothing of the conversation comes after a record.
    pub(super) fn ends_with(&self, record: &str) -> bool {
        let said =
            self.records.iter().filter(|record| matches!(text(record, "type"), Some("user" | "assistant")));
        let mut main = said.filter(|record| record.get("isSidechain") != Some(&Value::Bool(true)));
        main.next_back().and_then(|last| text(last, "uuid")) == Some(record)
    }

    fn parents(&self) -> HashMap<&str, Option<&str>> {
        let entry = |record| Some((text(record, "uuid")?, text(record, "parentUuid")));
        self.records.iter().filter_map(entry).collect()
    }

    /// Whether a record is a prompt, and not a result.
    fn is_prompt(&self, id: &str) -> bool {
        self.records.iter().any(|record| {
            text(record, "uuid") == Some(id)
                && text(record, "type") == Some("user")
                && record.get("isMeta") != Some(&Value::Bool(true))
                && record.pointer("/message/content/0/tool_use_id").is_none()
        })
    }
}

fn text<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
}

fn uuid(record: &Value) -> Option<String> {
    let id = text(record, "uuid")?;
    is_plain(id).then(|| id.to_owned())
}

/// Whether an id can be an argument of a command.
fn is_plain(id: &str) -> bool {
    let plain = id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && !id.is_empty() && !id.starts_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn points_are_found_in_a_tree_with_two_branches() {
        let record = |id: &str, parent: Option<&str>, kind: &str, content: Value| json!({"uuid": id, "parentUuid": parent, "type": kind, "message": {"content": content}});
        let call = json!([{"type": "tool_result", "tool_use_id": "t1"}]);
        let transcript = Transcript {
            records: vec![
                record("p1", None, "user", json!("one")),
                record("a1", Some("p1"), "assistant", json!([])),
                record("r1", Some("a1"), "user", call),
                record("a2", Some("r1"), "assistant", json!([])),
                record("p2", Some("a2"), "user", json!("two")),
                record("a3", Some("p2"), "assistant", json!([])),
                json!({"type": "mode"}),
                record("-x", Some("p3"), "assistant", json!([])),
            ],
        };
        assert_eq!(transcript.record_of_result("t1").as_deref(), Some("r1"));
        assert_eq!(transcript.record_of_result("t2"), None);
        assert_eq!(transcript.record_of_answer("p1").as_deref(), Some("a2"));
        assert_eq!(transcript.record_of_answer("p2").as_deref(), Some("a3"));
        assert_eq!(transcript.record_of_answer("p3"), None, "an id that looks like an option");
        assert!(!transcript.ends_with("a3") && transcript.ends_with("-x"));
    }
}
