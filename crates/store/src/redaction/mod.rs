//! What a redaction concerns: a [`Plan`] made from what the store holds ([`Contents`]), however it is stored.

mod candidates;
mod plan;

use backstitch_core::id::SessionId;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_core::redaction::SensitiveValue;

use crate::family::Origins;

pub(crate) use candidates::Candidates;
pub(crate) use plan::Plan;

/// What a store holds, for reading.
pub(crate) trait Contents {
    /// Origins of all sessions, in the order of their creation.
    fn origins(&self) -> Result<Origins, StoreError>;

    /// Passes the texts of a session's records and inbox items.
    fn texts(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(&str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// All objects that hold a value.
    fn candidates(&self, value: &SensitiveValue) -> Result<Candidates, StoreError>;

    /// Kind of an object, or `None` if it has no stored content.
    fn kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError>;

    /// An object that has stored content.
    fn object(&self, id: ObjectId) -> Result<Option<Object>, StoreError>;
}
