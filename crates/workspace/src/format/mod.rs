//! How a root is written: trees in git's format, and a manifest of what git cannot hold.
//!
//! Nothing here touches a file. Names and paths are bytes throughout, since a directory may hold names that are no text.
//! Whatever is read from stored objects is checked before it is used: a damaged or hostile tree is refused, not followed.

pub(crate) mod diff;
pub(crate) mod manifest;
pub(crate) mod modes;
pub(crate) mod path;
pub(crate) mod reach;
pub(crate) mod refused;
pub(crate) mod stored;
pub(crate) mod tree;

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

/// An object that has to be stored, and has to be of this kind.
pub(crate) fn fetch(objects: &dyn Objects, id: ObjectId, kind: ObjectKind) -> Result<Object, WorkspaceError> {
    let found = objects.get(id).map_err(WorkspaceError::Objects)?;
    let object = found.ok_or(WorkspaceError::MissingObject { object: id })?;
    if object.id() != id {
        return Err(damaged(id, "its content is that of another object"));
    }
    if object.kind() != kind {
        return Err(damaged(id, "it is of another kind than its place says"));
    }
    Ok(object)
}

/// An object is not what its place says.
pub(crate) fn damaged(object: ObjectId, reason: impl Into<String>) -> WorkspaceError {
    WorkspaceError::DamagedObject { object, reason: reason.into() }
}
