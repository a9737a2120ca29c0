//! Records of a transcript, which is a file of JSON lines.

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
pub(super) fn records(path: &Path, end: Option<u64>, is_wanted: impl Fn(&str) -> bool) -> Option<Vec<Value>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(records: Option<Vec<Value>>) -> Vec<String> {
        let id = |record: &Value| record.get("uuid").and_then(Value::as_str).map(str::to_owned);
        records.unwrap().iter().filter_map(id).collect()
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
    fn what_is_not_a_file_has_no_records() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(records(directory.path(), None, |_| true), None);
        assert_eq!(records(&directory.path().join("none"), None, |_| true), None);
    }
}
