//! Rows that are formed while records are encoded, before the transaction that writes them.

use std::borrow::Cow;
use std::ops::Range;

use backstitch_core::journal::EncodedRecord;
use rusqlite::{CachedStatement, Connection, params};

use super::super::error::Failure;
use super::{INSERT, RecordRow, RowContext, shorten};
use crate::chain::Checksum;

/// A record that is ready to be written: its text, and what its row holds of it.
pub(in crate::sqlite) struct PreparedRecord {
    text: String,
    head: Option<(i64, i64)>,
    held: HeldText,
}

/// What a row holds of a text.
enum HeldText {
    Part(Range<usize>),
    Shorter(String),
}

impl PreparedRecord {
    /// Creates the row that [`RecordRow::of`] creates of the text, without searching it for what its encoder knows.
    pub(in crate::sqlite) fn new(record: EncodedRecord, context: RowContext<'_>) -> Self {
        let EncodedRecord { version, kind, at, time, data, text, .. } = record;
        let at = at.unix_micros();
        let split = data.filter(|_| at >= 0).and_then(|data| {
            let (number, shorter) = shorten(version, kind, &text[time], &text[data.clone()], context)?;
            Some(((number, at), shorter.map_or(HeldText::Part(data), HeldText::Shorter)))
        });
        match split {
            Some((head, held)) => Self { text, head: Some(head), held },
            None => Self { head: None, held: HeldText::Part(0..text.len()), text },
        }
    }

    /// The text of the record.
    pub(in crate::sqlite) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn row(&self) -> RecordRow<'_> {
        let record = match &self.held {
            HeldText::Part(part) => &self.text[part.clone()],
            HeldText::Shorter(shorter) => shorter.as_str(),
        };
        RecordRow { head: self.head, record: Cow::Borrowed(record) }
    }
}

/// Writes rows of records with one statement.
pub(in crate::sqlite) struct RowInserter<'a>(CachedStatement<'a>);

impl<'a> RowInserter<'a> {
    pub(in crate::sqlite) fn new(connection: &'a Connection) -> Result<Self, Failure> {
        Ok(Self(connection.prepare_cached(INSERT)?))
    }

    pub(in crate::sqlite) fn insert(
        &mut self,
        key: i64,
        checksum: Checksum,
        record: &PreparedRecord,
    ) -> Result<(), Failure> {
        let row = record.row();
        let (kind, at) = row.head.unzip();
        self.0.execute(params![key, checksum.as_bytes(), kind, at, row.record])?;
        Ok(())
    }
}
