//! Reasons why a session is not driven.
//!
//! Stops are folded over all records, visible or not: a rewind does not change why a session stopped.

use super::fold::JournalView;
use super::recorded::JournalEntry;
use crate::id::SessionId;
use crate::journal::{Record, RecordBody, SessionStopped};
use crate::pack::packed_structs;

/// The last stop of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stops {
    last: Option<JournalEntry<SessionStopped>>,
    /// Whether the session has not been driven, ended or rewound since then.
    is_current: bool,
}

packed_structs! {
    Stops { last, is_current }
}

impl Stops {
    /// Applies a record, visible or not.
    pub(super) fn fold_record(&mut self, session: SessionId, record: &Record) {
        match &record.body {
            RecordBody::SessionStopped(stopped) => {
                *self = Self { last: Some(JournalEntry::new(session, record, stopped)), is_current: true };
            }
            RecordBody::EvaluationStarted(_)
            | RecordBody::EvaluationResumed(_)
            | RecordBody::EvaluationFinished(_)
            | RecordBody::Rewound(_) => self.is_current = false,
            _ => {}
        }
    }
}

impl JournalView {
    /// Returns the last recorded stop. It stays when the session is resumed.
    pub fn last_stop(&self) -> Option<&JournalEntry<SessionStopped>> {
        self.stops.last.as_ref()
    }

    /// Returns why the session is not driven, if a stop is recorded and nothing has happened since then. A
    /// session whose process was killed has no such record.
    pub fn stopped(&self) -> Option<&SessionStopped> {
        self.stops.last.as_ref().filter(|_| self.stops.is_current).map(|stop| &*stop.record)
    }
}
