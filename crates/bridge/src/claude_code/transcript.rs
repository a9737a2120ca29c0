//! The transcript of a conversation. Its records form a tree: each names its parent. A prompt has the id that it was sent with.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use crate::transcript::{record_id, record_of_result, records};

/// The records of a transcript.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    records: Vec<Value>,
}

impl Transcript {
    /// Reads a transcript.
    pub(super) fn read(path: &Path) -> Option<Self> {
        Some(Self { records: records(path, None, |_| true)? })
    }

    /// Returns the record with the result of a call.
    pub(super) fn record_of_result(&self, call: &str) -> Option<String> {
        record_of_result(&self.records, call)
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
        record_id(
            answers.filter(|record| record.get("isSidechain") != Some(&Value::Bool(true))).find(is_below)?,
        )
    }

    /// Returns the record before a call. Returns `None` if its answer has calls besides those that were `undone`: the
    /// results of these come after it.
    pub(super) fn record_before(&self, call: &str, undone: &HashSet<&str>) -> Option<String> {
        let made = self.records.iter().rev().find(|record| calls(record).any(|id| id == call))?;
        let answer = made.pointer("/message/id");
        let is_same = |record: &&Value| record.pointer("/message/id") == answer;
        let mut siblings = self.records.iter().filter(is_same).flat_map(calls);
        if answer.is_some() && siblings.any(|id| !undone.contains(id)) {
            return None;
        }
        let before = text(made, "parentUuid")?;
        let found = self.records.iter().find(|record| text(record, "uuid") == Some(before))?;
        // The earlier calls of the same answer were undone too, and the point before the first of them follows.
        if calls(found).next().is_some() { None } else { record_id(found) }
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

/// Returns the calls that a record makes.
fn calls(record: &Value) -> impl Iterator<Item = &str> {
    let blocks = record.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    blocks.filter(|block| text(block, "type") == Some("tool_use")).filter_map(|block| text(block, "id"))
}

fn text<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
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

    #[test]
    fn a_conversation_is_cut_before_calls_that_were_undone() {
        let record = |id: &str, parent: &str, kind: &str, answer: &str, content: Value| {
            json!({"uuid": id, "parentUuid": parent, "type": kind,
            "message": {"id": answer, "content": content}})
        };
        let call = |id: &str| json!([{"type": "tool_use", "id": id}]);
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id}]);
        let transcript = Transcript {
            records: vec![
                record("p1", "", "user", "", json!("one")),
                record("a1", "p1", "assistant", "m1", json!([{"type": "text", "text": "First."}])),
                record("a2", "a1", "assistant", "m1", call("t1")),
                record("r1", "a2", "user", "", result("t1")),
                record("a3", "r1", "assistant", "m2", call("t2")),
                record("a4", "a3", "assistant", "m2", call("t3")),
                record("r2", "a3", "user", "", result("t2")),
                record("r3", "a4", "user", "", result("t3")),
            ],
        };
        let before = |call: &str, undone: &[&str]| {
            transcript.record_before(call, &undone.iter().copied().collect::<HashSet<&str>>())
        };
        assert_eq!(before("t1", &["t1"]).as_deref(), Some("a1"), "the text of the answer stays");
        assert_eq!(before("t2", &["t2", "t3"]).as_deref(), Some("r1"));
        assert_eq!(before("t3", &["t2", "t3"]), None, "the point before the other call is right");
        assert_eq!(before("t3", &["t3"]), None, "the result of the other call stays");
        assert_eq!(before("t2", &["t2"]), None);
        assert_eq!(before("t4", &["t4"]), None);
    }
}
