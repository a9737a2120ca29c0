//! The port to stored content, for workspaces. Its callers block their threads anyway.

use std::sync::Arc;

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ObjectFacts, Objects};
use backstitch_core::session::BoxError;

use super::objects::{self, KnownObject};
use super::store::PostgresStore;
use crate::packed::Presence;

impl PostgresStore {
    fn known(&self, id: ObjectId) -> Result<KnownObject, BoxError> {
        let shared = Arc::clone(self.shared());
        Ok(self.wait_for(async move { objects::find_known(&shared.server, id).await })?)
    }
}

impl Objects for PostgresStore {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        let shared = Arc::clone(self.shared());
        Ok(self.wait_for(async move { objects::read(&shared.server, id).await })?)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.known(id)?.presence == Presence::Stored)
    }

    fn length(&self, id: ObjectId) -> Result<Option<u64>, BoxError> {
        let known = self.known(id)?;
        Ok((known.presence == Presence::Stored).then_some(known.length))
    }

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.known(id)?.presence == Presence::Redacted)
    }

    fn get_many(&self, ids: &[ObjectId]) -> Result<Vec<Object>, BoxError> {
        let (shared, ids) = (Arc::clone(self.shared()), ids.to_vec());
        Ok(self.wait_for(async move { objects::read_many(&shared.server, &ids).await })?)
    }

    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        let (shared, ids) = (Arc::clone(self.shared()), ids.to_vec());
        let known = self.wait_for(async move { objects::find_many(&shared.server, &ids).await })?;
        let facts = known.into_iter().filter_map(|(id, known)| match known.presence {
            Presence::Stored => Some(ObjectFacts { id, length: Some(known.length) }),
            Presence::Redacted => Some(ObjectFacts { id, length: None }),
            _ => None,
        });
        Ok(facts.collect())
    }
}
