//! How a root is written: trees in git's format, and a manifest of what git cannot hold.
//!
//! This is the one format of all workspaces, in memory and on a disk. Names and paths are bytes throughout, since a directory
//! may hold names that are no text. Whatever is read from stored objects is checked before it is used: a damaged or hostile
//! tree is refused, not followed.

mod diff;
mod git_names;
mod manifest;
mod modes;
pub mod names;
mod reach;
mod stored;
mod tree;

pub use diff::diff;
pub use git_names::{git_refuses, is_attributes, is_modules};
pub use manifest::{Manifest, ManifestError, RefusedEntry};
pub use modes::Modes;
pub use reach::check_complete;
pub use stored::{DirectoryHandle, MAX_DEPTH, Overlay, Root, StoredDirectory, StoredItem, read_at};
pub use tree::{
    TreeBuilder, TreeEntry, TreeError, TreeMode, decode_tree, empty_tree, encode_tree, load_tree, tree_object,
};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

/// An object that has to be stored, and has to be of this kind.
pub fn fetch(objects: &dyn Objects, id: ObjectId, kind: ObjectKind) -> Result<Object, WorkspaceError> {
    let found = objects.get(id).map_err(WorkspaceError::Objects)?;
    let object = found.ok_or(WorkspaceError::MissingObject { object: id })?;
    if object.id() != id {
        return Err(damaged(id, format!("its content is that of {}", object.id())));
    }
    if object.kind() != kind {
        let (is, wanted) = (object.kind().as_str(), kind.as_str());
        return Err(damaged(id, format!("it is a {is}, and a {wanted} was wanted")));
    }
    Ok(object)
}

/// An object is not what its place says.
pub fn damaged(object: ObjectId, reason: impl Into<String>) -> WorkspaceError {
    WorkspaceError::DamagedObject { object, reason: reason.into() }
}
