//! Rows of records: the text of a record without what the row or the row before says already.
//!
//! The text of a record is `{"v":1,"kind":"note","at":"…","data":{…}}`. Where it has exactly this form, with a kind and a
//! version that have a number, a row holds the number, the time in microseconds and the data; of some kinds, it holds only what
//! does not follow from the rest ([`Form`]). Otherwise it holds the whole text. A row is written only if the text can be restored
//! from it byte for byte, and the checksum of a record is always that of its text.

mod call;
mod form;
mod invocation;
mod message;
mod prepared;

use std::borrow::Cow;

use backstitch_core::journal::{DecodeError, EncodedRecord, Position, Record};
use backstitch_core::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use self::form::Form;
pub(super) use self::prepared::{PreparedRecord, RowInserter};
use super::error::Failure;
use super::sql::execute;
use crate::chain::Checksum;

/// Adds a row of a record.
const INSERT: &str = "INSERT INTO records (id, checksum, kind, at, record) VALUES (?1, ?2, ?3, ?4, ?5)";

/// A kind of rows: a kind of records, the version of their data, and what a row holds of the data.
struct RowKind {
    version: u32,
    kind: &'static str,
    form: Form,
}

const fn whole(kind: &'static str) -> RowKind {
    RowKind { version: 1, kind, form: Form::Data }
}

/// Kinds of rows by number, from 1. The table `kinds` holds the same, for the view `journal`. One that is added gets its number
/// by a migration; records of a kind without a number are stored whole.
const KINDS: [RowKind; 31] = [
    whole("session_created"),
    whole("evaluation_started"),
    whole("evaluation_resumed"),
    whole("request_started"),
    whole("request_finished"),
    whole("request_failed"),
    whole("message_appended"),
    whole("call_started"),
    whole("step_finished"),
    whole("process_started"),
    whole("slice_changed"),
    whole("resource_changed"),
    whole("call_finished"),
    whole("budget_charged"),
    whole("rewound"),
    whole("workspace_observed"),
    whole("paused"),
    whole("resolved"),
    whole("session_stopped"),
    whole("evaluation_finished"),
    whole("program_started"),
    whole("task_finished"),
    whole("turn_finished"),
    whole("note"),
    whole("redacted"),
    RowKind { version: 1, kind: "message_appended", form: Form::Message },
    RowKind { version: 1, kind: "call_started", form: Form::Call },
    RowKind { version: 1, kind: "slice_changed", form: Form::Invocation },
    whole("workspace_isolated"),
    whole("apply_started"),
    whole("apply_finished"),
];

/// Columns of a record's row that [`text_in`] reads, in its order.
pub(super) const TEXT_COLUMNS: &str = "kind, at, record";

/// What the text of a record may follow from, besides its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowContext<'a> {
    /// Id of the session.
    pub(super) session: &'a str,
    /// Text of the record before it. A row that needs it can be neither written nor read without.
    pub(super) before: Option<&'a str>,
}

/// What a row holds of a record's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordRow<'a> {
    /// Number of the kind and time of the record, unless `record` is the whole text.
    head: Option<(i64, i64)>,
    record: Cow<'a, str>,
}

impl<'a> RecordRow<'a> {
    /// Creates the shortest row from which the text of a record can be restored.
    pub(super) fn of(text: &'a str, context: RowContext<'_>) -> Self {
        split(text, context).unwrap_or(Self { head: None, record: Cow::Borrowed(text) })
    }

    pub(super) fn insert(
        &self,
        connection: &Connection,
        key: i64,
        checksum: Checksum,
    ) -> Result<(), Failure> {
        let (kind, at) = self.head.unzip();
        execute(connection, INSERT, params![key, checksum.as_bytes(), kind, at, self.record])
    }

    /// Replaces a row. Its checksum stays. The row after it must [stand by itself](detach_next).
    pub(super) fn replace(&self, connection: &Connection, key: i64) -> Result<(), Failure> {
        let sql = "UPDATE records SET kind = ?2, at = ?3, record = ?4 WHERE id = ?1";
        let (kind, at) = self.head.unzip();
        execute(connection, sql, params![key, kind, at, self.record])
    }

    /// Restores the text. Returns `None` if the kind or the time is unknown, or if what the text follows from is missing.
    fn text(self, context: RowContext<'_>) -> Option<RestoredText<'a>> {
        let Some((number, at)) = self.head else { return Some(RestoredText::Whole(self.record)) };
        let RowKind { version, kind, form } = kind_of(number)?;
        let at = Timestamp::from_unix_micros(at).ok()?;
        let time = at.to_string();
        let data = form.restore(&self.record, &time, context)?;
        Some(RestoredText::Parts(EncodedRecord::new(*version, kind, (at, &time), &data)))
    }

    fn form(&self) -> Form {
        let kind = self.head.and_then(|(number, _)| kind_of(number));
        kind.map_or(Form::Data, |kind| kind.form)
    }
}

/// The text of a record, restored from its row.
pub(super) enum RestoredText<'a> {
    /// The row holds all of it.
    Whole(Cow<'a, str>),
    Parts(EncodedRecord),
}

impl<'a> RestoredText<'a> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Whole(text) => text,
            Self::Parts(record) => &record.text,
        }
    }

    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Whole(text) => text,
            Self::Parts(record) => Cow::Owned(record.text),
        }
    }

    /// Decodes the record, without parsing again what the row says beside the data.
    pub(super) fn decode(&self, position: Position) -> Result<Record, DecodeError> {
        match self {
            Self::Whole(text) => Record::decode(position, text),
            Self::Parts(record) => record.decode(position),
        }
    }
}

/// The numbers of the kinds of rows that hold records of a kind.
pub(super) fn kind_numbers(kind: &str) -> impl Iterator<Item = i64> {
    (1..).zip(KINDS).filter(move |(_, known)| known.kind == kind).map(|(number, _)| number)
}

fn kind_of(number: i64) -> Option<&'static RowKind> {
    KINDS.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

fn number_of(version: u32, kind: &str, form: Form) -> Option<i64> {
    let is_it = |known: &RowKind| (known.version, known.kind, known.form) == (version, kind, form);
    i64::try_from(KINDS.iter().position(is_it)? + 1).ok()
}

fn split<'a>(text: &'a str, context: RowContext<'_>) -> Option<RecordRow<'a>> {
    let rest = text.strip_prefix(r#"{"v":"#)?;
    let (version, rest) = rest.split_once(r#","kind":""#)?;
    let (kind, rest) = rest.split_once(r#"","at":""#)?;
    let (time, rest) = rest.split_once(r#"","data":"#)?;
    let data = rest.strip_suffix('}')?;
    let version = version.parse().ok().filter(|number: &u32| number.to_string() == version)?;
    let at: Timestamp = time.parse().ok()?;
    // A time before 1970, or in another form, would not be shown right by the view.
    if at.unix_micros() < 0 || at.to_string() != time {
        return None;
    }
    // A field after the data belongs to the record: the data alone must be one value, or the view could not read it.
    serde_json::from_str::<&serde_json::value::RawValue>(data).ok()?;
    let (number, shorter) = shorten(version, kind, time, data, context)?;
    let record = shorter.map_or(Cow::Borrowed(data), Cow::Owned);
    Some(RecordRow { head: Some((number, at.unix_micros())), record })
}

/// The number of the kind of a row, and what it holds of the data if that is not all of it. `None` if the kind has no number.
fn shorten(
    version: u32,
    kind: &str,
    time: &str,
    data: &str,
    context: RowContext<'_>,
) -> Option<(i64, Option<String>)> {
    let number = number_of(version, kind, Form::Data)?;
    let shorter = KINDS.iter().find(|known| known.kind == kind && known.form != Form::Data);
    let shorter = shorter.and_then(|RowKind { form, .. }| {
        let number = number_of(version, kind, *form)?;
        Some((number, form.reduce(data, time, context)?))
    });
    Some(shorter.map_or((number, None), |(number, remainder)| (number, Some(remainder))))
}

/// Splits a text at the first place of a field, which begins with a comma. A search for any text would first prepare itself, which
/// takes longer than to find a field near the beginning.
fn split_field<'a>(text: &'a str, field: &str) -> Option<(&'a str, &'a str)> {
    debug_assert!(field.starts_with(','), "{field} is not a field after others");
    text.match_indices(',').find_map(|(comma, _)| Some((&text[..comma], text[comma..].strip_prefix(field)?)))
}

fn row_in<'a>(row: &'a Row<'_>, first: usize) -> Result<Option<RecordRow<'a>>, Failure> {
    let ValueRef::Text(record) = row.get_ref(first + 2)? else { return Ok(None) };
    let Ok(record) = str::from_utf8(record) else { return Ok(None) };
    let head = match (row.get_ref(first)?, row.get_ref(first + 1)?) {
        (ValueRef::Null, ValueRef::Null) => None,
        (ValueRef::Integer(kind), ValueRef::Integer(at)) => Some((kind, at)),
        _ => return Ok(None),
    };
    Ok(Some(RecordRow { head, record: Cow::Borrowed(record) }))
}

/// Reads the text of a record from the columns [`TEXT_COLUMNS`], which start at `first`. Returns `None` if they hold no text of
/// a record, or one that follows from a record that `context` does not have.
pub(super) fn text_in<'a>(
    row: &'a Row<'_>,
    first: usize,
    context: RowContext<'_>,
) -> Result<Option<RestoredText<'a>>, Failure> {
    Ok(row_in(row, first)?.and_then(|row| row.text(context)))
}

/// Stores the row after `key` so that it does not depend on the one at `key`, whose text can then be replaced.
pub(super) fn detach_next(connection: &Connection, session: &str, key: i64) -> Result<(), Failure> {
    let sql = format!("SELECT {TEXT_COLUMNS} FROM records WHERE id = ?1");
    let mut sql = connection.prepare_cached(&sql)?;
    let alone = RowContext { session, before: None };
    let mut rows = sql.query([key])?;
    let before = match rows.next()? {
        Some(row) => text_in(row, 0, alone)?.map(|text| text.into_text().into_owned()),
        None => None,
    };
    drop(rows);
    let mut rows = sql.query([key + 1])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let Some(next) = row_in(row, 0)?.filter(|row| row.form() == Form::Invocation) else { return Ok(()) };
    let context = RowContext { before: before.as_deref(), ..alone };
    let Some(text) = next.text(context).map(|text| text.into_text().into_owned()) else { return Ok(()) };
    drop(rows);
    RecordRow::of(&text, alone).replace(connection, key + 1)
}

#[cfg(test)]
mod tests;
