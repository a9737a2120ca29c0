//! Records as held by views.

use std::sync::Arc;

use crate::id::SessionId;
use crate::journal::{Point, Record};
use crate::time::Timestamp;

/// The payload of a record, with its position and time.
#[derive(Debug, PartialEq)]
pub struct JournalEntry<T> {
    /// Position of the record. In a fork it may be in the journal of its parent.
    pub point: Point,
    /// Time of the record.
    pub at: Timestamp,
    /// Payload of the record.
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
