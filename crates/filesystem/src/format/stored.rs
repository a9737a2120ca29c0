//! A stored root, read directory by directory.
//!
//! Tree, refused names, empty directories and modes are put together again, so that who diffs, restores or reads sees one
//! directory with exact modes and need not know where git ends.

use std::collections::BTreeMap;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::manifest::{Manifest, RefusedEntry};
use super::modes::Modes;
use super::names::Name;
use super::{TreeMode, damaged, empty_tree, fetch, load_tree};

/// How deep directories may nest: trees are walked by recursion, with an open handle for each directory above. What is deeper is
/// not captured, and a stored tree that is deeper is taken for damage.
pub const MAX_DEPTH: usize = 128;

/// What a manifest says of paths, by directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    refused: Option<RefusedEntry>,
    below: BTreeMap<Name, Overlay>,
}

impl Overlay {
    /// What a manifest says.
    pub fn of(manifest: &Manifest) -> Self {
        let mut overlay = Self::default();
        for path in &manifest.empty_directories {
            overlay.at(path);
        }
        for (path, entry) in &manifest.refused {
            overlay.at(path).refused = Some(*entry);
        }
        overlay
    }

    fn at(&mut self, path: &[u8]) -> &mut Self {
        path.split(|byte| *byte == b'/')
            .fold(self, |overlay, name| overlay.below.entry(name.into()).or_default())
    }

    /// Whether nothing is said of what is in this directory.
    pub fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// What is said of a directory in this one.
    pub fn child(&self, name: &[u8]) -> Option<&Self> {
        self.below.get(name)
    }
}

/// A stored directory that is not read yet. Equal ones hold the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryHandle<'a> {
    /// What git holds of it; none if that is nothing.
    pub tree: Option<ObjectId>,
    /// The exact modes in it and below.
    pub modes: Option<ObjectId>,
    /// What the manifest says of it and below.
    pub overlay: Option<&'a Overlay>,
}

/// A directory's entries, with its own mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDirectory<'a> {
    /// The directory's own mode.
    pub mode: u32,
    /// What it holds.
    pub entries: BTreeMap<Name, StoredItem<'a>>,
}

/// Something in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredItem<'a> {
    /// A file.
    File {
        /// Its content.
        id: ObjectId,
        /// Its exact mode.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// The blob with its target.
        id: ObjectId,
    },
    /// A directory.
    Directory(DirectoryHandle<'a>),
}

/// A root with its manifest read.
#[derive(Debug)]
pub struct Root {
    tree: ObjectId,
    modes: Option<ObjectId>,
    overlay: Overlay,
}

impl Root {
    /// Reads a root's manifest.
    pub fn load(objects: &dyn Objects, root: WorkspaceRoot) -> Result<Self, WorkspaceError> {
        let manifest = Manifest::load(objects, root.manifest)?;
        Ok(Self { tree: root.tree, modes: manifest.modes, overlay: Overlay::of(&manifest) })
    }

    /// The directory that the root is.
    pub fn folder(&self) -> DirectoryHandle<'_> {
        let tree = Some(self.tree).filter(|tree| *tree != empty_tree().id());
        DirectoryHandle {
            tree,
            modes: self.modes,
            overlay: Some(&self.overlay).filter(|overlay| !overlay.is_empty()),
        }
    }
}

impl<'a> DirectoryHandle<'a> {
    /// Reads the directory.
    pub fn load(self, objects: &dyn Objects) -> Result<StoredDirectory<'a>, WorkspaceError> {
        let modes = self.modes.map(|id| Modes::load(objects, id)).transpose()?.unwrap_or_default();
        let mut entries = BTreeMap::new();
        let mut add = |name: Name, mode: TreeMode, id: ObjectId| {
            let overlay =
                self.overlay.and_then(|overlay| overlay.child(&name)).filter(|overlay| !overlay.is_empty());
            let item = match mode {
                TreeMode::Directory => StoredItem::Directory(DirectoryHandle {
                    tree: Some(id),
                    modes: modes.below.get(&name).copied(),
                    overlay,
                }),
                TreeMode::Link => StoredItem::Link { id },
                TreeMode::File | TreeMode::Executable => StoredItem::File {
                    id,
                    mode: modes.files.get(&name).copied().unwrap_or(mode.permissions()),
                },
            };
            match overlay {
                // What holds something is a directory.
                Some(_) if mode != TreeMode::Directory => {
                    Err(damaged(id, "the manifest says that it is a directory"))
                }
                _ => Ok(entries.insert(name, item).is_none()),
            }
        };
        for entry in self.tree.map(|id| load_tree(objects, id)).transpose()?.unwrap_or_default() {
            add(entry.name.into(), entry.mode, entry.object)?;
        }
        for (name, overlay) in self.overlay.iter().flat_map(|overlay| &overlay.below) {
            if let Some(RefusedEntry { mode, object: id }) = overlay.refused
                && !add(name.clone(), mode, id)?
            {
                return Err(damaged(id, "what is refused stands in the tree too"));
            }
        }
        for (name, overlay) in self.overlay.iter().flat_map(|overlay| &overlay.below) {
            let empty = DirectoryHandle {
                tree: None,
                modes: modes.below.get(name).copied(),
                overlay: Some(overlay).filter(|overlay| !overlay.is_empty()),
            };
            entries.entry(name.clone()).or_insert(StoredItem::Directory(empty));
        }
        Ok(StoredDirectory { mode: modes.own.unwrap_or(TreeMode::Directory.permissions()), entries })
    }
}

/// What a root holds at a path, given in bytes; none if there is nothing, or only a directory.
pub fn read_at(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    path: &[u8],
) -> Result<Option<Object>, WorkspaceError> {
    let root = Root::load(objects, root)?;
    let mut folder = root.folder();
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let contents = folder.load(objects)?;
        match (contents.entries.get(name), names.peek()) {
            (Some(StoredItem::Directory(below)), Some(_)) => folder = *below,
            (Some(StoredItem::File { id, .. } | StoredItem::Link { id }), None) => {
                return fetch(objects, *id, ObjectKind::Blob).map(Some);
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}
