//! Why nobody drives a session.
//!
//! Stops are folded over all records, visible or not: going back does not change why a session stopped.

use super::fold::JournalView;
use super::recorded::JournalEntry;
use crate::id::SessionId;
use crate::journal::{Record, RecordBody, SessionStopped};

/// The last stop of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stops {
    last: Option<JournalEntry<SessionStopped>>,
    /// Whether nothing has been driven, ended or rewound since.
    is_current: bool,
}

impl Stops {
    /// Takes in a record, visible or not.
    pub(super) fn take_in(&mut self, session: SessionId, record: &Record) {
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
    /// The last stop that is recorded. It stays when the session is resumed.
    pub fn last_stop(&self) -> Option<&JournalEntry<SessionStopped>> {
        self.stops.last.as_ref()
    }

    /// Why nobody drives the session, where that is recorded and nothing has happened since. A session whose process was killed has
    /// no such record.
    pub fn stopped(&self) -> Option<&SessionStopped> {
        self.stops.last.as_ref().filter(|_| self.stops.is_current).map(|stop| &*stop.record)
    }
}
