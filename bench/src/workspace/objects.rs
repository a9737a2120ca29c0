//! Objects in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::Objects;
use backstitch_core::session::BoxError;

/// An object store in memory, so that only the work on files is measured.
#[derive(Default)]
pub(super) struct MemoryObjects(Mutex<HashMap<ObjectId, Object>>);

impl MemoryObjects {
    pub(super) fn keep(&self, objects: Vec<Object>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(objects.into_iter().map(|object| (object.id(), object)));
    }
}

impl Objects for MemoryObjects {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned())
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id))
    }
}
