//! Stored form of a root: trees in git's format, and a manifest of everything that git cannot represent.
//!
//! All workspaces, in memory and on disk, share this format. Names and paths are bytes, since a directory may
//! contain names that are not UTF-8. Stored objects are checked before they are used: a damaged or hostile
//! tree is refused, not followed.

mod build;
mod diff;
mod git_names;
mod graft;
mod manifest;
mod merge;
mod modes;
pub mod names;
mod reach;
mod reverse;
mod stored;
mod tree;

pub use diff::{changes, diff};
pub use git_names::{git_refuses, is_attributes, is_modules};
pub use graft::{GraftedRoot, graft, grafted};
pub use manifest::{Manifest, ManifestError, RefusedEntry};
pub use merge::{IgnoreRules, Merge, MergedRoot, merge};
pub use modes::Modes;
pub use reach::check_complete;
pub use reverse::{rebased, reversed};
pub use stored::{
    DirectoryHandle, MAX_DEPTH, Overlay, Root, StoredDirectory, StoredItem, encode_directory, read_at,
};
pub use tree::{
    TreeBuilder, TreeEntry, TreeError, TreeMode, decode_tree, empty_tree, encode_tree, load_tree, tree_object,
};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

/// Loads an object that must be stored and of this kind.
pub fn fetch(objects: &dyn Objects, id: ObjectId, kind: ObjectKind) -> Result<Object, WorkspaceError> {
    let found = objects.get(id).map_err(WorkspaceError::Objects)?;
    let object = found.ok_or(WorkspaceError::MissingObject { object: id })?;
    if object.id() != id {
        return Err(damaged(id, format!("its content is that of {}", object.id())));
    }
    if object.kind() != kind {
        let (is, wanted) = (object.kind().as_str(), kind.as_str());
        return Err(damaged(id, format!("it is a {is}, but a {wanted} was expected")));
    }
    Ok(object)
}

/// Builds the error for an object with invalid content.
pub fn damaged(object: ObjectId, reason: impl Into<String>) -> WorkspaceError {
    WorkspaceError::DamagedObject { object, reason: reason.into() }
}

/// Reads the version of a stored form, whatever else it holds.
pub(crate) fn version_of(bytes: &[u8]) -> serde_json::Result<u64> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u64,
    }
    serde_json::from_slice(bytes).map(|Version { v }| v)
}
