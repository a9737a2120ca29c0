//! Points of a conversation of Claude Code, after which it can be continued.
//!
//! The records of a transcript form a tree: each names the one that it follows, and a conversation that was cut back is a second
//! branch of the same file. A prompt has two names: the id of its record, which the sender of a prompt may choose, and the id
//! that the program gives the prompt and reports to hooks. Results have the latter too, answers have neither.

use std::collections::HashMap;
#[cfg(feature = "engines")]
use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::records::records;
use crate::fields::{is_set, text};
use crate::messages::blocks;

/// The records of a transcript.
#[derive(Debug, Default)]
pub struct ClaudeTranscript {
    records: Vec<Value>,
}

impl ClaudeTranscript {
    /// Reads a transcript. Returns `None` if it cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        Some(Self { records: records(path, None, |_| true)? })
    }

    /// Returns the record with the result of a call.
    pub fn record_of_result(&self, call: &str) -> Option<String> {
        let has_result =
            |record: &&Value| blocks(record).any(|block| text(block, "tool_use_id") == Some(call));
        record_id(self.records.iter().rev().find(has_result)?)
    }

    /// Returns the record of a prompt, by either of its names.
    pub fn record_of_prompt(&self, prompt: &str) -> Option<String> {
        record_id(&self.records[self.place_of_prompt(prompt)?])
    }

    /// Returns the last record of the answer to a prompt, which has either of its names.
    ///
    /// An answer belongs to the nearest prompt above it in the tree. The order of the file is not enough: the branches of a
    /// conversation that was cut back follow each other in it, and not each prompt has an id of the program by which its end
    /// could be seen. The tree alone is not enough either: the summary that replaces a long conversation in the middle of an
    /// answer has no parent but names the record that it follows in another field, and a prompt may consist of several records
    /// with one id of the program. With all three, an engine and the guard find the same record for the same prompt.
    pub fn record_of_answer(&self, prompt: &str) -> Option<String> {
        let prompt = self.place_of_prompt(prompt)?;
        let places = self.records.iter().zip(0..);
        let places = places.filter_map(|(record, place)| Some((text(record, "uuid")?, place)));
        let places: HashMap<&str, usize> = places.collect();
        let is_answer =
            |record: &Value| text(record, "type") == Some("assistant") && !is_set(record, "isSidechain");
        let answers = self.records.iter().enumerate().rev().filter(|(_, record)| is_answer(record));
        let mut of_prompt = answers.filter(|(place, _)| self.is_below(*place, prompt, &places));
        record_id(of_prompt.next()?.1)
    }

    /// Whether the nearest prompt above a record is this one.
    fn is_below(&self, record: usize, prompt: usize, places: &HashMap<&str, usize>) -> bool {
        let mut place = record;
        // A damaged file may name parents in a circle.
        for _ in 0..self.records.len() {
            let record = &self.records[place];
            if place == prompt {
                return true;
            }
            if is_prompt(record) {
                let id = text(record, "promptId");
                return id.is_some() && id == text(&self.records[prompt], "promptId");
            }
            let parent = text(record, "parentUuid").or_else(|| text(record, "logicalParentUuid"));
            let above = match parent {
                Some(parent) => places.get(parent).copied(),
                // Such a record continues the file.
                None => place.checked_sub(1),
            };
            match above {
                Some(above) => place = above,
                None => return false,
            }
        }
        false
    }

    fn place_of_prompt(&self, prompt: &str) -> Option<usize> {
        let has_name =
            |record: &Value| ["uuid", "promptId"].iter().any(|name| text(record, name) == Some(prompt));
        self.records.iter().position(|record| is_prompt(record) && has_name(record))
    }

    /// Returns the record before a call. Returns `None` if its answer has calls besides those that were `undone`: the
    /// results of these come after it.
    #[cfg(feature = "engines")]
    pub(crate) fn record_before(&self, call: &str, undone: &HashSet<&str>) -> Option<String> {
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
    #[cfg(feature = "engines")]
    pub(crate) fn ends_with(&self, record: &str) -> bool {
        let messages =
            self.records.iter().filter(|record| matches!(text(record, "type"), Some("user" | "assistant")));
        let mut main = messages.filter(|record| !is_set(record, "isSidechain"));
        main.next_back().and_then(|last| text(last, "uuid")) == Some(record)
    }
}

/// Whether a record is a prompt: neither a result, nor what the program adds to a conversation itself.
fn is_prompt(record: &Value) -> bool {
    text(record, "type") == Some("user")
        && !["isMeta", "isCompactSummary", "isSidechain"].iter().any(|name| is_set(record, name))
        && blocks(record).all(|block| block.get("tool_use_id").is_none())
}

/// Returns the id of a record, if it can be an argument of a command.
fn record_id(record: &Value) -> Option<String> {
    let id = text(record, "uuid")?;
    let is_plain = id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_plain && !id.is_empty() && !id.starts_with('-')).then(|| id.to_owned())
}

/// Returns the calls that a record makes.
#[cfg(feature = "engines")]
fn calls(record: &Value) -> impl Iterator<Item = &str> {
    let calls = blocks(record).filter(|block| text(block, "type") == Some("tool_use"));
    calls.filter_map(|block| text(block, "id"))
}

#[cfg(all(test, feature = "engines"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn points_are_found_in_a_tree_with_two_branches() {
        let record = |id: &str, parent: Option<&str>, kind: &str, content: Value| json!({"uuid": id, "parentUuid": parent, "type": kind, "message": {"content": content}});
        let call = json!([{"type": "tool_result", "tool_use_id": "t1"}]);
        let transcript = ClaudeTranscript {
            records: vec![
                record("p1", None, "user", json!("one")),
                record("a1", Some("p1"), "assistant", json!([])),
                record("r1", Some("a1"), "user", call),
                record("a2", Some("r1"), "assistant", json!([])),
                record("p2", Some("a2"), "user", json!("two")),
                record("a3", Some("p2"), "assistant", json!([])),
                json!({"type": "mode"}),
                record("p3", Some("a3"), "user", json!("three")),
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

    /// Records of a conversation: id, parent, type, the id that the program gives the prompt, and more fields.
    fn conversation(records: &[(&str, &str, &str, &str, Value)]) -> ClaudeTranscript {
        let record = |(id, parent, kind, prompt, more): &(&str, &str, &str, &str, Value)| {
            let named = |name: &str| if name.is_empty() { Value::Null } else { json!(name) };
            let mut record = json!({"uuid": id, "parentUuid": named(parent), "type": kind, "promptId": named(prompt),
                "isSidechain": false, "message": {"content": [{"type": "text", "text": id}]}});
            for (name, value) in more.as_object().expect("more fields") {
                record[name] = value.clone();
            }
            record
        };
        ClaudeTranscript { records: records.iter().map(record).collect() }
    }

    #[test]
    fn an_answer_is_found_by_either_name_of_its_prompt() {
        let (none, result) =
            (json!({}), json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}}));
        let side = json!({"isSidechain": true});
        let transcript = conversation(&[
            ("s0", "", "attachment", "", none.clone()),
            ("p1", "s0", "user", "one", none.clone()),
            ("a1", "p1", "assistant", "", none.clone()),
            ("r1", "a1", "user", "one", result),
            ("x1", "", "user", "one", side.clone()),
            ("x2", "x1", "assistant", "", side),
            ("a2", "r1", "assistant", "", none.clone()),
            // The conversation continues, and is then cut back to the first answer.
            ("p2", "a2", "user", "two", none.clone()),
            ("a3", "p2", "assistant", "", none.clone()),
            ("p3", "a2", "user", "three", none.clone()),
            ("p4", "p3", "user", "three", none.clone()),
            ("a4", "p4", "assistant", "", none.clone()),
            ("m1", "a4", "user", "", json!({"isMeta": true})),
            ("a5", "m1", "assistant", "", none),
        ]);
        for (names, answer) in [(["p1", "one"], "a2"), (["p2", "two"], "a3"), (["p3", "three"], "a5")] {
            for name in names {
                assert_eq!(transcript.record_of_answer(name).as_deref(), Some(answer), "{name}");
                assert_eq!(transcript.record_of_prompt(name).as_deref(), Some(names[0]), "{name}");
            }
        }
        for strange in ["", "r1", "x1", "m1", "a1", "four"] {
            assert_eq!(transcript.record_of_answer(strange), None, "{strange}");
        }
    }

    #[test]
    fn branches_that_take_turns_in_a_file_are_not_confused() {
        let none = json!({});
        // Two windows continue the same conversation, and write to its file in turns. Nothing has an id of the program.
        let transcript = conversation(&[
            ("p1", "", "user", "", none.clone()),
            ("a1", "p1", "assistant", "", none.clone()),
            ("p2", "a1", "user", "", none.clone()),
            ("p3", "a1", "user", "", none.clone()),
            ("a2", "p2", "assistant", "", none.clone()),
            ("a3", "p3", "assistant", "", none.clone()),
            ("a4", "a2", "assistant", "", none),
        ]);
        let answers = ["p1", "p2", "p3"].map(|prompt| transcript.record_of_answer(prompt).unwrap());
        assert_eq!(answers, ["a1", "a4", "a3"]);
    }

    #[test]
    fn a_summary_in_the_middle_of_an_answer_does_not_end_it() {
        let none = json!({});
        let transcript = conversation(&[
            ("p1", "", "user", "one", none.clone()),
            ("a1", "p1", "assistant", "", none.clone()),
            ("b1", "", "system", "", json!({"subtype": "compact_boundary", "logicalParentUuid": "a1"})),
            ("u1", "b1", "user", "two", json!({"isCompactSummary": true})),
            ("a2", "u1", "assistant", "", none.clone()),
            ("p2", "a2", "user", "three", none.clone()),
            ("a3", "p2", "assistant", "", none),
        ]);
        assert_eq!(transcript.record_of_answer("p1").as_deref(), Some("a2"));
        assert_eq!(transcript.record_of_answer("three").as_deref(), Some("a3"));
        assert_eq!(transcript.record_of_answer("two"), None, "a summary is not a prompt");
    }

    #[test]
    fn damaged_trees_end_the_search() {
        let none = json!({});
        let circle = conversation(&[
            ("p1", "", "user", "one", none.clone()),
            ("a1", "a2", "assistant", "", none.clone()),
            ("a2", "a1", "assistant", "", none.clone()),
            ("a3", "gone", "assistant", "", none.clone()),
        ]);
        assert_eq!(circle.record_of_answer("one"), None);
        // Records without parents continue the file.
        let flat = conversation(&[
            ("p1", "", "user", "one", none.clone()),
            ("a1", "", "assistant", "", none.clone()),
            ("p2", "", "user", "two", none.clone()),
            ("a2", "", "assistant", "", none),
        ]);
        assert_eq!(flat.record_of_answer("one").as_deref(), Some("a1"));
        assert_eq!(flat.record_of_answer("two").as_deref(), Some("a2"));
        assert_eq!(ClaudeTranscript::default().record_of_answer("one"), None);
    }

    #[test]
    fn ids_that_look_like_options_are_refused() {
        for id in ["", "-x", "--resume", "a b", "$(x)", &"a".repeat(65)] {
            assert_eq!(record_id(&json!({ "uuid": id })), None, "{id}");
        }
        let result = json!({"uuid": "r-1", "message": {"content": [{"tool_use_id": "t1"}]}});
        let transcript = ClaudeTranscript { records: vec![result, json!(1)] };
        assert_eq!(transcript.record_of_result("t1").as_deref(), Some("r-1"));
    }

    #[test]
    fn a_conversation_is_cut_before_calls_that_were_undone() {
        let record = |id: &str, parent: &str, kind: &str, answer: &str, content: Value| {
            json!({"uuid": id, "parentUuid": parent, "type": kind,
            "message": {"id": answer, "content": content}})
        };
        let call = |id: &str| json!([{"type": "tool_use", "id": id}]);
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id}]);
        let transcript = ClaudeTranscript {
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
