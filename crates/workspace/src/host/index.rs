//! Result of the last scan: the stat cache.
//!
//! It contains each file with its stamp and the id of its content, and each directory with the ids of its
//! trees. The next scan compares stamps and reads only changed files. An entry describes a file at one
//! moment; it is trusted only if the file cannot have changed since then without a change of its stamp.

use backstitch_core::object::ObjectId;
use backstitch_core::ports::UncoveredReason;
use backstitch_filesystem::format::names::Name;
use backstitch_filesystem::format::{DirectoryHandle, StoredItem, git_refuses};

use super::sys::Stamp;

/// A scanned directory.
#[derive(Debug, Default)]
pub(crate) struct DirIndex {
    pub(crate) stamp: Stamp,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Entries in byte order of their names.
    pub(crate) entries: Vec<(Name, Entry)>,
    /// Git tree, or `None` if git represents nothing of the directory.
    pub(crate) tree: Option<ObjectId>,
    /// Tree of modes, or `None` without exceptions.
    pub(crate) modes: Option<ObjectId>,
    pub(crate) flags: NodeFlags,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeFlags {
    /// True if the ids above match the entries.
    pub(crate) sealed: bool,
    /// True if the objects with the ids above are in the store.
    pub(crate) stored: bool,
    /// True if the manifest has entries for the directory or below it.
    pub(crate) exceptional: bool,
    /// True if it lies in a directory that git refuses, so that its own tree contains refused names too.
    pub(crate) refused: bool,
    /// True if it has extended attributes, which are not captured.
    pub(crate) attributes: bool,
    /// True if something in it or below was not examined.
    pub(crate) partial: bool,
    /// True if it changed during the scan or just before.
    pub(crate) racy: bool,
}

/// An entry of a scanned directory.
#[derive(Debug)]
pub(crate) enum Entry {
    File(Leaf),
    Link(Leaf),
    Directory(Box<DirIndex>),
    /// The entry is not captured.
    Uncovered(OmittedPath),
}

/// A file or a link, with the id of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) stamp: Stamp,
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
    pub(crate) flags: LeafFlags,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeafFlags {
    /// True if it changed while it was read or just before, so that its stamp alone cannot prove that it is
    /// unchanged.
    pub(crate) racy: bool,
    /// True if its content is in the store.
    pub(crate) stored: bool,
    /// True if it has other names (hard links).
    pub(crate) linked: bool,
    /// True if it has extended attributes, which are not captured.
    pub(crate) attributes: bool,
}

/// An entry that is not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OmittedPath {
    /// Reason, or `None` if it was not examined.
    pub(crate) reason: Option<UncoveredReason>,
    pub(crate) bytes: Option<u64>,
}

impl Entry {
    /// The entry in its stored form, without the manifest, or `None` if it is not captured.
    pub(crate) fn as_item(&self) -> Option<StoredItem<'static>> {
        match self {
            Self::File(leaf) => Some(StoredItem::File { id: leaf.id, mode: leaf.mode }),
            Self::Link(leaf) => Some(StoredItem::Link { id: leaf.id }),
            Self::Directory(node) => Some(node.as_item()),
            Self::Uncovered(_) => None,
        }
    }

    /// Returns whether git refuses the name of the entry.
    pub(crate) fn is_refused(&self, name: &[u8]) -> bool {
        self.as_item().is_some_and(|item| git_refuses(name, item.tree_mode()))
    }
}

impl DirIndex {
    /// The directory in its stored form, without the manifest.
    pub(crate) fn as_item(&self) -> StoredItem<'static> {
        StoredItem::Directory(DirectoryHandle { tree: self.tree, modes: self.modes, overlay: None })
    }

    /// Looks up a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.entries[at].1)
    }

    /// Collects the contents of files and links, here and below, that may not be stored and that a scan may trust.
    pub(crate) fn collect_unstored(&self, found: &mut Vec<ObjectId>) {
        for (_, entry) in &self.entries {
            match entry {
                Entry::File(leaf) | Entry::Link(leaf) if !leaf.flags.stored && !leaf.flags.racy => {
                    found.push(leaf.id);
                }
                Entry::Directory(node) => node.collect_unstored(found),
                _ => {}
            }
        }
    }

    /// Notes which objects are stored, here and below, and returns for how many entries that is new.
    pub(crate) fn note_stored(&mut self, is_stored: &impl Fn(ObjectId) -> bool) -> usize {
        let mut noted = 0;
        for (_, entry) in &mut self.entries {
            match entry {
                Entry::File(leaf) | Entry::Link(leaf) if !leaf.flags.stored => {
                    leaf.flags.stored = is_stored(leaf.id);
                    noted += usize::from(leaf.flags.stored);
                }
                Entry::Directory(node) => noted += node.note_stored(is_stored),
                _ => {}
            }
        }
        if !self.flags.stored {
            self.flags.stored = [self.tree, self.modes].into_iter().flatten().all(is_stored);
            noted += usize::from(self.flags.stored);
        }
        noted
    }

    /// Forgets which objects are stored, here and below.
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
