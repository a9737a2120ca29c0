//! What the last scan found: the stat cache.
//!
//! Each file is kept with its stamp and the id of its content, each directory with the ids of its trees. The next scan
//! compares stamps and reads only what changed. An entry is a fact about a file at one moment; it is trusted only if the file
//! could not have changed since without its stamp telling.

use backstitch_core::object::ObjectId;
use backstitch_core::ports::UncoveredReason;
use backstitch_filesystem::format::TreeMode;
use backstitch_filesystem::format::names::Name;

use super::sys::Stamp;

/// A directory as it was found.
#[derive(Debug, Default)]
pub(crate) struct DirIndex {
    pub(crate) stamp: Stamp,
    /// Its permissions.
    pub(crate) mode: u32,
    /// What it holds, in the order of the names' bytes.
    pub(crate) entries: Vec<(Name, Entry)>,
    /// What git holds of it; none if that is nothing.
    pub(crate) tree: Option<ObjectId>,
    /// Its tree of modes; none if it needs none.
    pub(crate) modes: Option<ObjectId>,
    pub(crate) flags: NodeFlags,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeFlags {
    /// The ids above are those of the entries.
    pub(crate) sealed: bool,
    /// The objects of the ids above were found in the store.
    pub(crate) stored: bool,
    /// The manifest has something to say of it or below.
    pub(crate) exceptional: bool,
    /// It lies in a directory that git refuses, so that its own tree holds refused names too.
    pub(crate) refused: bool,
    /// It has attributes that are not kept.
    pub(crate) attributes: bool,
    /// Something in it or below was not looked at.
    pub(crate) partial: bool,
    /// It changed when it was looked at, or just before.
    pub(crate) racy: bool,
}

/// Something in a directory.
#[derive(Debug)]
pub(crate) enum Entry {
    File(Leaf),
    Link(Leaf),
    Directory(Box<DirIndex>),
    /// It is not captured.
    Uncovered(OmittedPath),
}

/// A file or a link, with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) stamp: Stamp,
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
    pub(crate) flags: LeafFlags,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeafFlags {
    /// It changed when it was read, or just before, so its stamp alone does not tell whether it changed since.
    pub(crate) racy: bool,
    /// Its content was found in the store.
    pub(crate) stored: bool,
    /// It has other names.
    pub(crate) linked: bool,
    /// It has attributes that are not kept.
    pub(crate) attributes: bool,
}

/// Something that is not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OmittedPath {
    /// Why; none if it was not looked at.
    pub(crate) reason: Option<UncoveredReason>,
    pub(crate) bytes: Option<u64>,
}

impl Entry {
    /// What the entry is for git, and its content; none if git holds nothing of it.
    pub(crate) fn as_git(&self) -> Option<(TreeMode, ObjectId)> {
        match self {
            Self::File(leaf) => Some((TreeMode::of_permissions(leaf.mode), leaf.id)),
            Self::Link(leaf) => Some((TreeMode::Link, leaf.id)),
            Self::Directory(node) => node.tree.map(|tree| (TreeMode::Directory, tree)),
            Self::Uncovered(_) => None,
        }
    }

    /// What git would call it, whether it holds it or not.
    pub(crate) fn git_mode(&self) -> Option<TreeMode> {
        match self {
            Self::Directory(_) => Some(TreeMode::Directory),
            Self::Uncovered(_) => None,
            Self::File(_) | Self::Link(_) => self.as_git().map(|(mode, _)| mode),
        }
    }
}

impl DirIndex {
    /// The entry of a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.entries[at].1)
    }

    /// Forgets that anything was found in the store, here and below.
    pub(crate) fn forget_stored(&mut self) {
        self.flags.stored = false;
        for (_, entry) in &mut self.entries {
            match entry {
                Entry::File(leaf) | Entry::Link(leaf) => leaf.flags.stored = false,
                Entry::Directory(node) => node.forget_stored(),
                Entry::Uncovered(_) => {}
            }
        }
    }
}
