//! Everything that a store holds, for operations that look at all of it.
//!
//! The states of all objects are read at once, since walks ask for many of them, and contents one by one. Nothing is read in one snapshot: a transaction that lasts as
//! long as the operation would keep the server from cleaning up. So an object that seems to be missing is looked up again, and one that is gone when it is read counts as such.

use std::cell::RefCell;
use std::collections::HashMap;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_core::redaction::SensitiveValue;
use serde_json::Value;

use super::error::Failure;
use super::link::Link;
use super::objects::{get_object, id_in};
use super::records::texts;
use super::schema::get;
use super::server::parameters;
use crate::family::Origins;
use crate::garbage::{EachText, Journals};
use crate::packed::{Presence, kind_of};
use crate::reach::StoredObjects;
use crate::redaction::{Candidates, Contents};

/// What is known of an object without its content.
#[derive(Clone, Copy)]
struct KnownState {
    presence: Presence,
    kind: ObjectKind,
    bytes: u64,
}

/// The contents of a store, for reading.
pub(super) struct PostgresContents<'a> {
    link: &'a Link<'a>,
    known: RefCell<Option<HashMap<ObjectId, KnownState>>>,
    /// Ends of journals, as the sessions were last listed.
    heads: RefCell<HashMap<SessionId, Position>>,
}

impl<'a> PostgresContents<'a> {
    pub(super) fn new(link: &'a Link<'a>) -> Self {
        Self { link, known: RefCell::new(None), heads: RefCell::default() }
    }

    /// Reads the states of all objects, unless they were read.
    fn load(&self) -> Result<(), Failure> {
        if self.known.borrow().is_some() {
            return Ok(());
        }
        let mut known = HashMap::new();
        let mut after = 0_i64;
        loop {
            let sql = "SELECT number, id, kind, encoding, stored FROM {schema}.objects WHERE number > $1 ORDER BY number LIMIT 50000";
            let rows = self.link.query(sql, parameters![after => INT8])?;
            for row in &rows {
                after = get(row, 0)?;
                let presence = Presence::of(i64::from(get::<i16>(row, 3)?));
                let kind = kind_of(i64::from(get::<i16>(row, 2)?)).unwrap_or(ObjectKind::Blob);
                let bytes = get::<i64>(row, 4)?.cast_unsigned();
                known.insert(id_in(get(row, 1)?)?, KnownState { presence, kind, bytes });
            }
            if rows.len() < 50_000 {
                break;
            }
        }
        *self.known.borrow_mut() = Some(known);
        Ok(())
    }

    fn state(&self, id: ObjectId) -> Result<Option<KnownState>, Failure> {
        self.load()?;
        let known = self.known.borrow().as_ref().and_then(|known| known.get(&id).copied());
        // One without content may have been stored again.
        if known.is_some_and(|known| known.presence == Presence::Stored) {
            return Ok(known);
        }
        let sql = "SELECT kind, encoding, stored FROM {schema}.objects WHERE id = $1";
        let rows = self.link.query(sql, parameters![&id.as_bytes()[..] => BYTEA])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let presence = Presence::of(i64::from(get::<i16>(row, 1)?));
        let kind = kind_of(i64::from(get::<i16>(row, 0)?)).unwrap_or(ObjectKind::Blob);
        let state = KnownState { presence, kind, bytes: get::<i64>(row, 2)?.cast_unsigned() };
        if let Some(known) = self.known.borrow_mut().as_mut() {
            known.insert(id, state);
        }
        Ok(Some(state))
    }

    /// Reads an object, or none if its content is gone by now.
    fn object_now(&self, id: ObjectId) -> Result<Option<Object>, Failure> {
        match get_object(self.link, id) {
            Err(Failure::Port(error)) => match *error {
                StoreError::Pruned { .. } | StoreError::LostObject { .. } | StoreError::Redacted { .. } => {
                    Ok(None)
                }
                // Its parts may have been deleted after its row was read.
                StoreError::DamagedObject { .. } => Ok(get_object(self.link, id)?),
                error => Err(error.into()),
            },
            read => read,
        }
    }

    /// Notes that objects were deleted.
    pub(super) fn forget(&self, ids: impl Iterator<Item = ObjectId>) {
        if let Some(known) = self.known.borrow_mut().as_mut() {
            ids.for_each(|id| _ = known.remove(&id));
        }
    }

    fn stored(&self, id: ObjectId) -> Result<Option<KnownState>, Failure> {
        Ok(self.state(id)?.filter(|state| state.presence == Presence::Stored))
    }
}

impl Contents for PostgresContents<'_> {
    fn origins(&self) -> Result<Origins, StoreError> {
        let mut origins = Vec::new();
        let sql = "SELECT s.session, r.record FROM {schema}.sessions s
            LEFT JOIN {schema}.records r ON r.session = s.id AND r.position = 0
            WHERE s.created IS NOT NULL ORDER BY s.created";
        for row in self.link.query(sql, &[])? {
            let session = SessionId::from_uuid(get(&row, 0)?);
            // A session whose beginning cannot be read counts as a root.
            let record: Option<Value> =
                get::<Option<&str>>(&row, 1)?.and_then(|text| serde_json::from_str(text).ok());
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
        let sql = "SELECT i.data FROM {schema}.inbox i JOIN {schema}.sessions s ON s.id = i.session WHERE s.session = $1 ORDER BY i.id";
        for row in self.link.query(sql, parameters![*session.as_uuid() => UUID])? {
            each(get(&row, 0).map_err(StoreError::from)?)?;
        }
        texts(self.link, session, Position::START, usize::MAX, |_, text| Ok(each(text)?))?;
        Ok(())
    }

    fn candidates(&self, value: &SensitiveValue) -> Result<Candidates, StoreError> {
        self.load()?;
        let mut found = HashMap::new();
        for (id, kind, _) in self.all_stored()? {
            // Any other failure ends the redaction: what could not be read may hold the value.
            if self.object_now(id)?.is_some_and(|object| value.is_in(object.bytes())) {
                found.insert(id, kind);
            }
        }
        Ok(Candidates::new(found))
    }

    fn kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError> {
        self.stored_kind(id)
    }

    fn object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        self.stored_object(id)
    }
}

impl StoredObjects for PostgresContents<'_> {
    fn stored_kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError> {
        Ok(self.stored(id)?.map(|state| state.kind))
    }

    fn presence(&self, id: ObjectId) -> Result<Presence, StoreError> {
        Ok(self.state(id)?.map_or(Presence::Absent, |state| state.presence))
    }

    fn stored_object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.object_now(id)?)
    }
}

impl Journals for PostgresContents<'_> {
    fn numbered_sessions(&self) -> Result<Vec<(i64, SessionId)>, StoreError> {
        // Numbered in the order of creation, which is not that of the keys.
        let sql =
            "SELECT created, session, head FROM {schema}.sessions WHERE created IS NOT NULL ORDER BY created";
        let rows = self.link.query(sql, &[])?;
        let mut heads = self.heads.borrow_mut();
        heads.clear();
        let numbered = rows.iter().map(|row| {
            let session = SessionId::from_uuid(get(row, 1)?);
            heads.insert(session, Position::new(get::<i64>(row, 2)?.cast_unsigned()));
            Ok((get(row, 0)?, session))
        });
        Ok(numbered.collect::<Result<_, Failure>>()?)
    }

    fn texts_from(
        &self,
        (_, session): (i64, SessionId),
        from: Position,
        each: EachText<'_>,
    ) -> Result<(), StoreError> {
        // One that has not grown is not asked for: there may be very many of them.
        if self.heads.borrow().get(&session).is_some_and(|head| from >= *head) {
            return Ok(());
        }
        match texts(self.link, session, from, usize::MAX, |position, text| Ok(each(position, text)?)) {
            // It was removed meanwhile.
            Err(Failure::Port(error)) if matches!(*error, StoreError::NotFound { .. }) => Ok(()),
            done => Ok(done?),
        }
    }

    fn inbox_texts(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.link.query("SELECT data FROM {schema}.inbox ORDER BY id", &[])?;
        Ok(rows.iter().map(|row| get(row, 0)).collect::<Result<_, Failure>>()?)
    }

    fn all_stored(&self) -> Result<Vec<(ObjectId, ObjectKind, u64)>, StoreError> {
        self.load()?;
        let known = self.known.borrow();
        let known = known.iter().flatten().filter(|(_, state)| state.presence == Presence::Stored);
        let mut all: Vec<_> = known.map(|(id, state)| (*id, state.kind, state.bytes)).collect();
        all.sort_unstable_by_key(|(id, ..)| *id);
        Ok(all)
    }
}
