//! Reading what roots are made of from stored objects.

use super::manifest::Manifest;
use super::tree::{TreeEntry, decode_tree};
use crate::object::{Object, ObjectId, ObjectKind};
use crate::ports::{Objects, WorkspaceError};

/// An object that has to be there.
pub(super) fn fetch(objects: &dyn Objects, id: ObjectId, kind: ObjectKind) -> Result<Object, WorkspaceError> {
    let found = objects.get(id).map_err(WorkspaceError::Objects)?;
    let object = found.ok_or(WorkspaceError::MissingObject { object: id })?;
    if object.id() != id {
        return Err(damaged(id, &format!("its content is that of {}", object.id())));
    }
    if object.kind() != kind {
        let (is, wanted) = (object.kind().as_str(), kind.as_str());
        return Err(damaged(id, &format!("it is a {is}, and a {wanted} was wanted")));
    }
    Ok(object)
}

/// The entries of a stored tree.
pub(super) fn tree_at(objects: &dyn Objects, id: ObjectId) -> Result<Vec<TreeEntry>, WorkspaceError> {
    let object = fetch(objects, id, ObjectKind::Tree)?;
    decode_tree(object.bytes()).map_err(|error| damaged(id, &error))
}

/// A stored manifest.
pub(super) fn manifest_at(objects: &dyn Objects, id: ObjectId) -> Result<Manifest, WorkspaceError> {
    let object = fetch(objects, id, ObjectKind::Blob)?;
    Manifest::from_bytes(object.bytes()).map_err(|error| damaged(id, &error))
}

fn damaged(object: ObjectId, reason: &dyn std::fmt::Display) -> WorkspaceError {
    WorkspaceError::DamagedObject { object, reason: reason.to_string() }
}
