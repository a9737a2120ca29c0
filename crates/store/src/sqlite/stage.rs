//! A stage: a store in a temporary database, which SQLite deletes by itself. Sessions of another kind of store are copied to it as they are, and written from there to a bundle
//! or to a new file.

use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, Position};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{BundleError, BundleReport, StoreError};
use rusqlite::{Connection, params};

use super::bundle::{Bundle, Progress, export_from};
use super::error::Failure;
use super::inbox::Letter;
use super::keys::key_of;
use super::objects;
use super::row::{RecordRow, RowContext};
use super::schema::{self, SchemaState, VERSION};
use super::sql::execute;
use super::writer::transaction;
use super::{append, changes};
use crate::chain::Checksum;
use crate::packed::{CompressedObject, Presence};
use crate::time::now;

/// A record as another store holds it.
pub(crate) struct StagedRecord<'a> {
    pub(crate) position: Position,
    pub(crate) text: &'a str,
    pub(crate) checksum: Checksum,
    /// Time of its redaction.
    pub(crate) replaced_at: Option<&'a str>,
}

/// A store in a temporary database.
pub(crate) struct Stage(Connection);

/// A session that is being staged.
pub(crate) struct StagedSession<'a> {
    stage: &'a Stage,
    session: SessionId,
    name: String,
    number: i64,
    before: Option<String>,
}

impl Stage {
    /// Creates an empty stage.
    pub(crate) fn new() -> Result<Self, StoreError> {
        // Without a name, SQLite keeps the database in memory as long as it is small, and otherwise in a file that it deletes.
        let connection = Connection::open("").map_err(Failure::from)?;
        transaction(&connection, || {
            schema::migrate(&connection, SchemaState::Empty, VERSION, now())
                .map_err(|error| Failure(StoreError::Backend(error.into())))
        })?;
        execute(&connection, "BEGIN", [])?;
        Ok(Self(connection))
    }

    /// Adds a session without records.
    pub(crate) fn session(&self, session: SessionId) -> Result<StagedSession<'_>, StoreError> {
        let name = session.to_string();
        let number = append::create(&self.0, &name)?;
        Ok(StagedSession { stage: self, session, name, number, before: None })
    }

    /// Adds an object.
    pub(crate) fn object(&self, object: &CompressedObject) -> Result<(), StoreError> {
        Ok(object.insert(&self.0)?)
    }

    /// Adds the mark of an object without content.
    pub(crate) fn mark(&self, id: ObjectId, reason: Presence) -> Result<(), StoreError> {
        Ok(objects::leave_mark(&self.0, id, reason)?)
    }

    /// Writes a session, with everything that it depends on, to a new file, at which nothing may exist.
    pub(crate) fn export(
        &self,
        session: SessionId,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<BundleReport, BundleError> {
        export_from(&self.0, session, path, progress)
    }

    /// Writes a session to a temporary bundle.
    pub(crate) fn bundle(&self, session: SessionId, progress: Progress<'_>) -> Result<Bundle, BundleError> {
        Bundle::temporary(&self.0, session, progress)
    }

    /// Writes the whole stage to a new store, at which nothing may exist.
    pub(crate) fn save(&self, path: &Path) -> Result<(), StoreError> {
        execute(&self.0, "COMMIT", [])?;
        let path = path.to_str().ok_or_else(|| StoreError::Backend("the path is not text".into()))?;
        Ok(execute(&self.0, "VACUUM INTO ?1", params![path])?)
    }
}

impl StagedSession<'_> {
    /// Adds the next record.
    pub(crate) fn record(&mut self, record: &StagedRecord<'_>) -> Result<(), StoreError> {
        let connection = &self.stage.0;
        let key = key_of(self.number, record.position).ok_or(StoreError::EmptyBatch)?;
        let context = RowContext { session: &self.name, before: self.before.as_deref() };
        RecordRow::of(record.text, context).insert(connection, key, record.checksum)?;
        if let Some(at) = record.replaced_at {
            let sql = "INSERT INTO redactions (record, checksum, at) VALUES (?1, ?2, ?3)";
            let checksum = Checksum::alone(record.text.as_bytes());
            execute(connection, sql, params![key, checksum.as_bytes(), at])?;
        }
        self.before = Some(record.text.to_owned());
        Ok(())
    }

    /// Adds pending items, after all records.
    pub(crate) fn finish(self, items: &[InboxItem]) -> Result<(), StoreError> {
        for item in items {
            Letter::new(self.session, item)?.write(&self.stage.0)?;
        }
        Ok(changes::rebuild(&self.stage.0, self.session, self.number)?)
    }
}
