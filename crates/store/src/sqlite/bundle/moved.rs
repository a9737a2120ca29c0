//! What a bundle holds, for a store of another kind that imports it.

use std::sync::{MutexGuard, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, Position};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{SessionRole, StoreError};
use rusqlite::{Connection, params};

use super::Bundle;
use super::contents::Contents;
use super::selection::{SelectedSession, Selection};
use crate::chain::Checksum;
use crate::packed::Presence;
use crate::sqlite::keys::key_of;
use crate::sqlite::read::{checksum_at, texts};
use crate::sqlite::sql::first;
use crate::sqlite::{inbox, objects, redactions};

/// A session of a bundle.
pub(crate) struct MovedSession {
    pub(crate) session: SessionId,
    pub(crate) role: SessionRole,
    /// Number of records to move.
    pub(crate) records: u64,
    /// Size of their texts in bytes.
    pub(crate) bytes: u64,
}

/// A record of a bundle.
pub(crate) struct MovedRecord<'a> {
    pub(crate) position: Position,
    pub(crate) text: &'a str,
    pub(crate) checksum: Checksum,
    /// Time of its redaction.
    pub(crate) replaced_at: Option<String>,
}

/// A bundle that is being imported.
pub(crate) struct MovedBundle<'a> {
    connection: MutexGuard<'a, Connection>,
    selection: &'a Selection,
    contents: &'a Contents,
}

impl Bundle {
    /// Opens the content of the bundle for an import.
    pub(crate) fn moved(&self) -> MovedBundle<'_> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        MovedBundle { connection, selection: &self.selection, contents: &self.contents }
    }
}

impl MovedBundle<'_> {
    /// The session that the bundle was written for.
    pub(crate) fn main(&self) -> SessionId {
        self.selection.main
    }

    /// All sessions, each before those that depend on it.
    pub(crate) fn sessions(&self) -> Vec<MovedSession> {
        let moved = |one: &SelectedSession| MovedSession {
            session: one.session,
            role: one.role,
            records: one.records,
            bytes: one.bytes,
        };
        self.selection.sessions.iter().map(moved).collect()
    }

    fn selected(&self, session: SessionId) -> Result<&SelectedSession, StoreError> {
        let found = self.selection.sessions.iter().find(|one| one.session == session);
        found.ok_or(StoreError::NotFound { session })
    }

    /// Checksum of a record.
    pub(crate) fn checksum(&self, session: SessionId, position: Position) -> Result<Checksum, StoreError> {
        let one = self.selected(session)?;
        Ok(checksum_at(&self.connection, session, one.number, position)?)
    }

    /// Positions of redacted records.
    pub(crate) fn redacted(&self, session: SessionId) -> Result<Vec<Position>, StoreError> {
        let one = self.selected(session)?;
        Ok(redactions::positions(&self.connection, one.number)?)
    }

    /// Passes the records of a session from a position on.
    pub(crate) fn records<E: From<StoreError>>(
        &self,
        session: SessionId,
        from: Position,
        mut each: impl FnMut(MovedRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let one = self.selected(session)?;
        let most = usize::try_from(one.records.saturating_sub(from.number())).unwrap_or(usize::MAX);
        let mut failed = None;
        let read = texts(&self.connection, session, one.number, from, most, |position, text| {
            let checksum = checksum_at(&self.connection, session, one.number, position)?;
            let sql = "SELECT at FROM redactions WHERE record = ?1";
            let replaced_at =
                first(&self.connection, sql, params![key_of(one.number, position)], |row| row.get(0))?;
            each(MovedRecord { position, text, checksum, replaced_at }).map_err(|error| {
                failed = Some(error);
                StoreError::EmptyBatch.into()
            })
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, read) => read.map_err(|failure| StoreError::from(failure).into()),
        }
    }

    /// Pending items of a session.
    pub(crate) fn inbox(&self, session: SessionId) -> Result<Vec<InboxItem>, StoreError> {
        Ok(inbox::list(&self.connection, session)?.into_iter().map(|(_, item)| item).collect())
    }

    /// All objects, each after those that it names.
    pub(crate) fn objects(&self) -> impl ExactSizeIterator<Item = (ObjectId, Presence)> {
        self.contents.objects.iter().map(|object| (object.id, object.presence))
    }

    /// An object that has content.
    pub(crate) fn object(&self, id: ObjectId) -> Result<Object, StoreError> {
        objects::get(&self.connection, id)?.ok_or(StoreError::MissingObject { object: id })
    }
}
