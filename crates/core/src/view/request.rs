//! Requests of an evaluation, with their attempts.

use super::recorded::JournalEntry;
use crate::journal::{RequestFailed, RequestFinished, RequestStarted};

/// A request to a policy: its start, the attempts that failed, and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Record of its start.
    pub started: JournalEntry<RequestStarted>,
    /// The attempts that failed, in order.
    pub failures: Vec<JournalEntry<RequestFailed>>,
    /// The answer. Absent for a request that is open, was abandoned or interrupted, and in journals that do
    /// not record it.
    pub finished: Option<JournalEntry<RequestFinished>>,
}

impl Request {
    pub(super) fn new(started: JournalEntry<RequestStarted>) -> Self {
        Self { started, failures: Vec::new(), finished: None }
    }

    /// Returns the number of attempts whose end is recorded.
    pub fn attempts(&self) -> u32 {
        let failed = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
        self.finished.as_ref().map_or(failed, |finished| finished.record.attempt)
    }

    /// Returns the last failed attempt.
    pub fn last_failure(&self) -> Option<&RequestFailed> {
        self.failures.last().map(|failure| &*failure.record)
    }
}
