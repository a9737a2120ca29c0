//! Which records a log has.

use backstitch_runtime::describe;

use super::words::{changed_tools, words};
use crate::journal::{CallVerdict, EvaluationOutcome, Record, RecordBody};
use crate::time::Timestamp;

/// A selection of records. By default, they are those that describe themselves to people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// Selects also records that only programs need.
    pub all: bool,
    /// Selects only failures: of attempts to reach the model, of calls and of evaluations.
    pub failed: bool,
    /// Selects only records since a time.
    pub since: Option<Timestamp>,
    /// Selects only records of these kinds; any, if there are none. They may be of those that only programs need.
    pub kinds: Vec<String>,
}

impl LogFilter {
    /// Returns the line for a record that is selected.
    pub fn text(&self, record: &Record) -> Option<String> {
        let is_selected = self.since.is_none_or(|since| record.at >= since)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == record.body.kind()))
            && (!self.failed || is_failure(&record.body));
        if !is_selected {
            return None;
        }
        let text = describe(record).or_else(|| changed_tools(record));
        let is_complete = self.all || !self.kinds.is_empty();
        if is_complete { text.or_else(|| Some(words(record))) } else { text }
    }
}

/// Whether a record says that something failed.
pub fn is_failure(body: &RecordBody) -> bool {
    match body {
        RecordBody::RequestFailed(_) => true,
        RecordBody::CallFinished(finished) => finished.outcome == CallVerdict::Failed,
        RecordBody::EvaluationFinished(finished) => finished.outcome == EvaluationOutcome::Failed,
        RecordBody::SessionStopped(stopped) => stopped.kind.is_some(),
        _ => false,
    }
}
