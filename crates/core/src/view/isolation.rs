//! The copy of a project that a session works in, and what of it was applied.
//!
//! All of it is folded over all records, visible or not: a rewind changes neither the directory of the copy nor another one.
//! A fork inherits the project and the base of its parent, and has a directory of its own.

use super::fold::JournalView;
use super::recorded::JournalEntry;
use crate::id::SessionId;
use crate::journal::{ApplyStarted, Record, RecordBody, WorkspaceIsolated, WorkspaceRoot};
use crate::pack::packed_structs;

/// What a journal says about isolation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct IsolationFacts {
    isolated: Option<JournalEntry<WorkspaceIsolated>>,
    /// Common ancestor of the next merge.
    base: Option<WorkspaceRoot>,
    /// An application that may be incomplete.
    pending: Option<JournalEntry<ApplyStarted>>,
    /// Complete applications that are not undone, the latest last.
    applied: Vec<JournalEntry<ApplyStarted>>,
}

packed_structs! {
    IsolationFacts { isolated, base, pending, applied }
}

impl IsolationFacts {
    /// The facts of a fork.
    pub(super) fn forked(&self) -> Self {
        Self { isolated: self.isolated.clone(), base: self.base, ..Self::default() }
    }

    /// Applies a record, visible or not.
    pub(super) fn fold_record(&mut self, session: SessionId, record: &Record) {
        match &record.body {
            RecordBody::WorkspaceIsolated(isolated) => {
                self.base = Some(isolated.root);
                self.isolated = Some(JournalEntry::new(session, record, isolated));
            }
            RecordBody::ApplyStarted(started) => {
                self.pending = Some(JournalEntry::new(session, record, started));
            }
            RecordBody::ApplyFinished(finished) => {
                let is_it =
                    |pending: &mut JournalEntry<ApplyStarted>| pending.point.position == finished.started;
                let Some(pending) = self.pending.take_if(is_it) else { return };
                self.base = Some(pending.record.next_base);
                match pending.record.undoes {
                    Some(undone) => self.applied.retain(|applied| applied.point.position != undone),
                    None => self.applied.push(pending),
                }
            }
            _ => {}
        }
    }
}

impl JournalView {
    /// Returns the copy of a project that the session, or the one that it is a fork of, was started in.
    pub fn isolation(&self) -> Option<&JournalEntry<WorkspaceIsolated>> {
        self.isolation.isolated.as_ref()
    }

    /// Returns the state that the changes of an isolated session are compared with: that of the copy when the session
    /// started, or when it was applied last.
    pub fn isolation_base(&self) -> Option<WorkspaceRoot> {
        self.isolation.base
    }

    /// Returns an application of the session's changes that was interrupted.
    pub fn pending_apply(&self) -> Option<&JournalEntry<ApplyStarted>> {
        self.isolation.pending.as_ref()
    }

    /// Returns the applications of the session's changes that are not undone, the latest last.
    pub fn applied(&self) -> &[JournalEntry<ApplyStarted>] {
        &self.isolation.applied
    }
}
