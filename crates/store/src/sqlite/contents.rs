//! What a store holds, for planning a redaction.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_core::redaction::SensitiveValue;
use rusqlite::Connection;
use serde_json::Value;

use super::inbox;
use super::objects::{self, Presence, id_in};
use super::read::{existing, numbered_sessions, texts};
use super::sql::rows;
use crate::family::Origins;
use crate::garbage::{EachText, Journals};
use crate::reach::StoredObjects;
use crate::redaction::{Candidates, Contents};

/// The contents of a store, for reading.
pub(super) struct SqliteContents<'a>(pub(super) &'a Connection);

impl Contents for SqliteContents<'_> {
    fn origins(&self) -> Result<Origins, StoreError> {
        let mut origins = Vec::new();
        for (number, session) in numbered_sessions(self.0)? {
            let mut record: Option<Value> = None;
            // A session whose beginning cannot be read counts as a root.
            let _ = texts(self.0, session, number, Position::START, 1, |_, text| {
                record = serde_json::from_str(text).ok();
                Ok(())
            });
            let origin =
                record.and_then(|mut first| serde_json::from_value(first["data"]["origin"].take()).ok());
            origins.push((session, origin.unwrap_or(Origin::Root)));
        }
        Ok(Origins(origins))
    }

    fn texts(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(&str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT data FROM inbox WHERE session = ?1 ORDER BY id";
        let items: Vec<String> = rows(self.0, sql, [session.to_string()], |row| Ok(row.get(0)?))?;
        items.iter().try_for_each(|text| each(text))?;
        let number = existing(self.0, session)?;
        texts(self.0, session, number, Position::START, usize::MAX, |_, text| Ok(each(text)?))?;
        Ok(())
    }

    fn candidates(&self, value: &SensitiveValue) -> Result<Candidates, StoreError> {
        let sql = "SELECT id, kind, length, encoding, content FROM objects
            WHERE content IS NOT NULL ORDER BY number";
        let all: Vec<Option<(ObjectId, ObjectKind)>> = rows(self.0, sql, [], |row| {
            let id = id_in(row.get_ref(0)?)?;
            let kind = objects::kind_of(row.get(1)?).unwrap_or(ObjectKind::Blob);
            Ok(value.is_in(&objects::content_in(row, 2, id)?).then_some((id, kind)))
        })?;
        Ok(Candidates::new(all.into_iter().flatten().collect()))
    }

    fn kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError> {
        Ok(objects::stored_kind(self.0, id)?)
    }

    fn object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(objects::get(self.0, id)?)
    }
}

impl StoredObjects for SqliteContents<'_> {
    fn stored_kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError> {
        Ok(objects::stored_kind(self.0, id)?)
    }

    fn presence(&self, id: ObjectId) -> Result<Presence, StoreError> {
        Ok(objects::presence(self.0, id)?)
    }

    fn stored_object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(objects::get(self.0, id)?)
    }
}

impl Journals for SqliteContents<'_> {
    fn numbered_sessions(&self) -> Result<Vec<(i64, SessionId)>, StoreError> {
        Ok(numbered_sessions(self.0)?)
    }

    fn texts_from(
        &self,
        (number, session): (i64, SessionId),
        from: Position,
        each: EachText<'_>,
    ) -> Result<(), StoreError> {
        Ok(texts(self.0, session, number, from, usize::MAX, |position, text| Ok(each(position, text)?))?)
    }

    fn inbox_texts(&self) -> Result<Vec<String>, StoreError> {
        Ok(inbox::texts(self.0)?)
    }

    fn all_stored(&self) -> Result<Vec<(ObjectId, ObjectKind, u64)>, StoreError> {
        Ok(objects::all_stored(self.0)?)
    }
}
