//! Directories in git's object format, as the core encodes them.

use backstitch_core::filesystem::{TreeEntry, decode_tree, tree_object};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

pub(crate) use backstitch_core::filesystem::TreeMode as Mode;

use super::{damaged, fetch};

/// What a file with these permissions is for git.
pub(crate) fn mode_of(permissions: u32) -> Mode {
    if permissions & 0o100 == 0 { Mode::File } else { Mode::Executable }
}

/// The permissions that a mode stands for, unless the manifest says otherwise.
pub(crate) fn permissions(mode: Mode) -> u32 {
    match mode {
        Mode::File => 0o644,
        Mode::Executable | Mode::Directory => 0o755,
        Mode::Link => 0o777,
    }
}

/// A tree that is being written. Entries come in any order.
#[derive(Debug, Default)]
pub(crate) struct TreeBuilder {
    entries: Vec<TreeEntry>,
}

impl TreeBuilder {
    pub(crate) fn push(&mut self, name: &[u8], mode: Mode, object: ObjectId) {
        self.entries.push(TreeEntry { name: name.to_vec(), mode, object });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tree as an object.
    pub(crate) fn build(self) -> Object {
        tree_object(&self.entries).expect("invariant: names in a directory are names in a tree, each once")
    }
}

/// The tree with no entries.
pub(crate) fn empty() -> Object {
    TreeBuilder::default().build()
}

/// The entries of a stored tree, in git's order.
pub(crate) fn load(objects: &dyn Objects, id: ObjectId) -> Result<Vec<TreeEntry>, WorkspaceError> {
    let object = fetch(objects, id, ObjectKind::Tree)?;
    decode_tree(object.bytes()).map_err(|error| damaged(id, error.to_string()))
}
