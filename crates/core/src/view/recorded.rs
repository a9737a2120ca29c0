//! Records as views keep them.

use std::sync::Arc;

use crate::id::SessionId;
use crate::journal::{Point, Record};
use crate::time::Timestamp;

/// What a record says, with its place and time.
#[derive(Debug, PartialEq)]
pub struct JournalEntry<T> {
    /// Where the record stands. In a fork that may be the journal of its parent.
    pub point: Point,
    /// When it was recorded.
    pub at: Timestamp,
    /// What it says.
    pub record: Arc<T>,
}

impl<T> JournalEntry<T> {
    pub(super) fn new(session: SessionId, record: &Record, body: &Arc<T>) -> Self {
        Self { point: Point { session, position: record.position }, at: record.at, record: body.clone() }
    }
}

impl<T> Clone for JournalEntry<T> {
    fn clone(&self) -> Self {
        Self { point: self.point, at: self.at, record: self.record.clone() }
    }
}
