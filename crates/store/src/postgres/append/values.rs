//! A batch as parameters of the function of the server that appends it.

use super::{CommitSync, PreparedBatch};
use crate::chain::Checksum;
use crate::postgres::claims::HeldClaim;
use crate::postgres::index::PreparedSummary;
use crate::postgres::objects::ObjectRows;
use crate::postgres::queue::EntryValues;
use crate::postgres::server::{Parameter, parameters};

/// The function that appends.
const APPEND: &str = "SELECT {schema}.append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26)";

/// The one that also adds the session to the queue.
const APPEND_QUEUED: &str = "SELECT {schema}.append_queued_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)";

/// A batch as parameters of the function.
pub(super) struct AppendValues<'a> {
    batch: &'a PreparedBatch,
    held: HeldClaim,
    rows: &'a ObjectRows,
    contents: Vec<Option<&'a [u8]>>,
    sums: Vec<&'a [u8]>,
    taken: Vec<i64>,
    is_synced: bool,
    expected: i64,
    summary: Option<&'a str>,
    version: Option<i32>,
    columns: &'a [Option<String>],
    tags: Vec<String>,
    values: Vec<String>,
}

impl<'a> AppendValues<'a> {
    pub(super) fn new(
        batch: &'a PreparedBatch,
        held: &HeldClaim,
        rows: &'a ObjectRows,
        sums: &'a [Checksum],
        sync: CommitSync,
    ) -> Self {
        let summary = batch.summary.as_ref();
        Self {
            batch,
            held: *held,
            rows,
            contents: rows.contents(),
            sums: sums.iter().map(Checksum::as_bytes).collect(),
            taken: batch.taken.iter().map(|item| item.0.cast_signed()).collect(),
            is_synced: sync == CommitSync::Now,
            expected: batch.expected.number().cast_signed(),
            summary: summary.map(|summary| summary.text.as_str()),
            version: summary.map(|summary| summary.version),
            columns: summary.map_or(&[], |summary| &summary.columns[..]),
            tags: summary.map(PreparedSummary::tag_keys).unwrap_or_default(),
            values: summary.map(PreparedSummary::tag_values).unwrap_or_default(),
        }
    }

    /// The call of the function.
    pub(super) fn sql(&self) -> &'static str {
        if self.batch.entry.is_some() { APPEND_QUEUED } else { APPEND }
    }

    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        let (batch, rows) = (self.batch, self.rows);
        let mut values = parameters![
            self.held.number => INT8, self.held.claim => UUID, self.expected => INT8, self.is_synced => BOOL,
            batch.at => INT8, batch.kinds => TEXT_ARRAY, batch.texts => TEXT_ARRAY, self.sums => BYTEA_ARRAY,
            batch.needed => BYTEA_ARRAY, batch.below => BYTEA_ARRAY, self.held.generation => INT8,
            self.taken => INT8_ARRAY, rows.ids => BYTEA_ARRAY, rows.kinds => INT2_ARRAY, rows.lengths => INT8_ARRAY,
            rows.encodings => INT2_ARRAY, self.contents => BYTEA_ARRAY, rows.stored => INT8_ARRAY,
            rows.parts => INT4_ARRAY, rows.sets => UUID_ARRAY, self.summary => TEXT, self.version => INT4,
            self.columns => TEXT_ARRAY, self.tags => TEXT_ARRAY, self.values => TEXT_ARRAY, batch.changes => TEXT
        ]
        .to_vec();
        values.extend(batch.entry.iter().flat_map(EntryValues::parameters));
        values
    }
}
