//! Rows of records: the text of a record without what all records of its kind have in common.
//!
//! The text of a record is `{"v":1,"kind":"note","at":"…","data":{…}}`. Where it has exactly this form, with a kind and a
//! version that have a number, a row holds the number, the time in microseconds and the data. Otherwise it holds
//! the whole text. Either way the text can be restored byte for byte, and its checksum is that of the whole.

use std::borrow::Cow;

use backstitch_core::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::chain::Checksum;
use super::error::Failure;

/// Kinds of records and the versions of their data, by number. The table `kinds` holds the same, for the view `journal`; a kind
/// or version that is added gets a number by a migration, and is stored whole without one.
const KINDS: [(u32, &str); 25] = [
    (1, "session_created"),
    (1, "evaluation_started"),
    (1, "evaluation_resumed"),
    (1, "request_started"),
    (1, "request_finished"),
    (1, "request_failed"),
    (1, "message_appended"),
    (1, "call_started"),
    (1, "step_finished"),
    (1, "process_started"),
    (1, "slice_changed"),
    (1, "resource_changed"),
    (1, "call_finished"),
    (1, "budget_charged"),
    (1, "rewound"),
    (1, "workspace_observed"),
    (1, "paused"),
    (1, "resolved"),
    (1, "session_stopped"),
    (1, "evaluation_finished"),
    (1, "program_started"),
    (1, "task_finished"),
    (1, "turn_finished"),
    (1, "note"),
    (1, "redacted"),
];

/// Columns of a record's row that [`text_in`] reads, in its order.
pub(super) const TEXT_COLUMNS: &str = "kind, at, record";

/// What a row holds of a record's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordRow<'a> {
    /// Number of the kind and time of the record, if `record` is the data alone.
    head: Option<(i64, i64)>,
    record: &'a str,
}

impl<'a> RecordRow<'a> {
    /// Splits the text of a record.
    pub(super) fn of(text: &'a str) -> Self {
        split(text).unwrap_or(Self { head: None, record: text })
    }

    pub(super) fn insert(&self, connection: &Connection, key: i64, checksum: Checksum) -> Result<(), Failure> {
        let sql = "INSERT INTO records (id, checksum, kind, at, record) VALUES (?1, ?2, ?3, ?4, ?5)";
        let (kind, at) = self.head.unzip();
        connection.prepare_cached(sql)?.execute(params![key, checksum.as_bytes(), kind, at, self.record])?;
        Ok(())
    }

    /// The text that the row stands for, or `None` if its kind or time is unknown.
    fn text(&self) -> Option<Cow<'a, str>> {
        let Some((kind, at)) = self.head else { return Some(Cow::Borrowed(self.record)) };
        let index = usize::try_from(kind).ok()?.checked_sub(1)?;
        let (version, kind) = KINDS.get(index)?;
        let at = Timestamp::from_unix_micros(at).ok()?;
        let data = self.record;
        Some(Cow::Owned(format!(r#"{{"v":{version},"kind":"{kind}","at":"{at}","data":{data}}}"#)))
    }
}

fn split(text: &str) -> Option<RecordRow<'_>> {
    let rest = text.strip_prefix(r#"{"v":"#)?;
    let (version, rest) = rest.split_once(r#","kind":""#)?;
    let (kind, rest) = rest.split_once(r#"","at":""#)?;
    let (time, rest) = rest.split_once(r#"","data":"#)?;
    let data = rest.strip_suffix('}')?;
    let version: u32 = version.parse().ok()?;
    let index = KINDS.iter().position(|known| *known == (version, kind))?;
    let at: Timestamp = time.parse().ok()?;
    // A time before 1970, or in another form, would not be shown right by the view.
    let is_plain = at.unix_micros() >= 0 && at.to_string() == time;
    // A field after the data belongs to the record: the data alone must be one value.
    let is_alone = serde_json::from_str::<&serde_json::value::RawValue>(data).is_ok();
    let head = Some((i64::try_from(index).ok()? + 1, at.unix_micros()));
    (is_plain && is_alone).then_some(RecordRow { head, record: data })
}

/// Reads the text of a record from the columns [`TEXT_COLUMNS`], which start at `first`. Returns `None` if they hold no text of
/// a record.
pub(super) fn text_in<'a>(row: &'a Row<'_>, first: usize) -> Result<Option<Cow<'a, str>>, Failure> {
    let ValueRef::Text(record) = row.get_ref(first + 2)? else { return Ok(None) };
    let Ok(record) = str::from_utf8(record) else { return Ok(None) };
    let head = match (row.get_ref(first)?, row.get_ref(first + 1)?) {
        (ValueRef::Null, ValueRef::Null) => None,
        (ValueRef::Integer(kind), ValueRef::Integer(at)) => Some((kind, at)),
        _ => return Ok(None),
    };
    Ok(RecordRow { head, record }.text())
}

#[cfg(test)]
mod tests {
    use backstitch_core::journal::RecordBody;

    use super::*;

    #[test]
    fn kinds_have_numbers() {
        for (kind, version) in RecordBody::KINDS {
            assert!(KINDS.contains(&(*version, *kind)), "a migration gives {kind} version {version} a number");
        }
    }

    #[test]
    fn texts_are_restored_byte_for_byte() {
        let split = [
            r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{"text":"a \"}\" b"}}"#,
            r#"{"v":1,"kind":"rewound","at":"1970-01-01T00:00:00.000000Z","data":{}}"#,
        ];
        let whole = [
            r#"{"v":2,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
            r#"{"v":01,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
            r#"{"v":1,"kind":"nota","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
            r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05Z","data":{}}"#,
            r#"{"v":1,"kind":"note","at":"1969-01-02T03:04:05.000006Z","data":{}}"#,
            r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{},"more":1}"#,
            r#"{"v":1, "kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
            r#"{"at":"x"}"#,
            "",
        ];
        for (texts, is_split) in [(&split[..], true), (&whole[..], false)] {
            for text in texts {
                let row = RecordRow::of(text);
                assert_eq!(row.head.is_some(), is_split, "{text}");
                assert_eq!(row.text().as_deref(), Some(*text));
            }
        }
    }
}
