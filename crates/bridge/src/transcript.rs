//! Transcripts of programs: files of JSON lines, which are read and never written.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

/// The most bytes that are read.
const WHOLE: u64 = 512 * 1024 * 1024;

/// The longest line.
const LINE: u64 = 64 * 1024 * 1024;

/// Reads the records of a transcript, or of so many bytes at its end, whose lines are wanted. Returns `None` if it cannot be
/// read. Lines that are not JSON are skipped: the last one may be incomplete.
pub fn records(path: &Path, end: Option<u64>, is_wanted: impl Fn(&str) -> bool) -> Option<Vec<Value>> {
    let mut file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    let length = found.len();
    let mut skips_first = false;
    if let Some(end) = end.filter(|end| length > *end) {
        file.seek(SeekFrom::Start(length - end)).ok()?;
        skips_first = true;
    }
    let mut reader = BufReader::new(file.take(WHOLE));
    let (mut records, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = (&mut reader).take(LINE).read_until(b'\n', &mut line).ok()?;
        if read == 0 {
            return Some(records);
        }
        if std::mem::take(&mut skips_first) {
            continue;
        }
        if let Some(text) = str::from_utf8(&line).ok().filter(|text| is_wanted(text))
            && let Ok(record) = serde_json::from_str(text)
        {
            records.push(record);
        }
    }
}

/// Returns the id of the record of Claude Code with the result of a call, after which a conversation can be continued.
pub fn record_of_result(records: &[Value], call: &str) -> Option<String> {
    let is_it = |record: &&Value| {
        let content = record.pointer("/message/content").and_then(Value::as_array);
        content.is_some_and(|blocks| {
            blocks.iter().any(|block| block.get("tool_use_id").and_then(Value::as_str) == Some(call))
        })
    };
    record_id(records.iter().rev().find(is_it)?)
}

/// Returns the id of a record of Claude Code, if it can be an argument of a command.
pub fn record_id(record: &Value) -> Option<String> {
    let id = record.get("uuid")?.as_str()?;
    let is_plain = id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_plain && !id.is_empty() && !id.starts_with('-')).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(records: Option<Vec<Value>>) -> Vec<String> {
        records.unwrap().iter().filter_map(record_id).collect()
    }

    #[test]
    fn broken_lines_are_skipped_and_the_end_begins_with_a_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript.jsonl");
        let mut bytes = b"{\"uuid\":\"one\"}\nnot json\n\xff\xfe\n\n{\"uuid\":\"two\"}\n".to_vec();
        bytes.extend(b"{\"uuid\":\"three\"}\n{\"uuid\":\"cut");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(ids(records(&path, None, |_| true)), ["one", "two", "three"]);
        assert_eq!(ids(records(&path, None, |line| line.contains("two"))), ["two"]);
        // It begins inside of the second record.
        assert_eq!(ids(records(&path, Some(35), |_| true)), ["three"]);
        assert_eq!(ids(records(&path, Some(1_000), |_| true)), ["one", "two", "three"]);
    }

    #[test]
    fn what_is_no_file_has_no_records() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(records(directory.path(), None, |_| true), None);
        assert_eq!(records(&directory.path().join("none"), None, |_| true), None);
    }

    #[test]
    fn ids_that_look_like_options_are_refused() {
        for id in ["", "-x", "--resume", "a b", "$(x)", &"a".repeat(65)] {
            assert_eq!(record_id(&json!({ "uuid": id })), None, "{id}");
        }
        let result = json!({"uuid": "r-1", "message": {"content": [{"tool_use_id": "t1"}]}});
        assert_eq!(record_of_result(&[result, json!(1)], "t1").as_deref(), Some("r-1"));
    }
}
