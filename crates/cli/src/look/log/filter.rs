//! Which records `log` prints.

use backstitch::SystemClock;
use backstitch::host::describe;
use backstitch::journal::{CallVerdict, EvaluationOutcome, Record, RecordBody};
use backstitch::time::{Clock as _, Timestamp};

use super::super::list::moment;
use super::words::{changed_tools, words};
use crate::usage::Usage;

/// A selection of records.
pub(super) struct RecordFilter {
    /// Whether records are printed that do not describe themselves to people.
    is_complete: bool,
    failed: bool,
    since: Option<Timestamp>,
    kinds: Vec<String>,
}

impl RecordFilter {
    pub(super) fn new(
        all: bool,
        failed: bool,
        since: Option<&str>,
        kinds: Vec<String>,
    ) -> Result<Self, Usage> {
        let since = since.map(|text| moment(text, SystemClock::default().now())).transpose()?;
        Ok(Self { is_complete: all || !kinds.is_empty(), failed, since, kinds })
    }

    /// Returns the line for a record that is selected.
    pub(super) fn text(&self, record: &Record) -> Option<String> {
        let is_selected = self.since.is_none_or(|since| record.at >= since)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == record.body.kind()))
            && (!self.failed || is_failure(&record.body));
        if !is_selected {
            return None;
        }
        let text = describe(record).or_else(|| changed_tools(record));
        if self.is_complete { text.or_else(|| Some(words(record))) } else { text }
    }
}

/// Whether a record says that something failed.
pub(super) fn is_failure(body: &RecordBody) -> bool {
    match body {
        RecordBody::RequestFailed(_) => true,
        RecordBody::CallFinished(finished) => finished.outcome == CallVerdict::Failed,
        RecordBody::EvaluationFinished(finished) => finished.outcome == EvaluationOutcome::Failed,
        RecordBody::SessionStopped(stopped) => stopped.kind.is_some(),
        _ => false,
    }
}
