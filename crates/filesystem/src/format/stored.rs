//! Reads a stored root, directory by directory.
//!
//! It combines the tree, refused names, empty directories and modes, so that callers see one directory with
//! exact modes and need not know which part git represents.

use std::collections::BTreeMap;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::manifest::{Manifest, RefusedEntry};
use super::modes::Modes;
use super::names::Name;
use super::{TreeBuilder, TreeMode, damaged, empty_tree, fetch, git_refuses, load_tree};

/// Maximum nesting of directories. Trees are walked by recursion, with an open handle for each level. Deeper
/// directories are not captured, and a deeper stored tree counts as damaged.
pub const MAX_DEPTH: usize = 128;

/// Entries of a manifest, by directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    refused: Option<RefusedEntry>,
    below: BTreeMap<Name, Overlay>,
}

impl Overlay {
    /// Indexes a manifest by directory.
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

    /// Returns whether the manifest names nothing in this directory.
    pub fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// Manifest entries of a subdirectory.
    pub fn child(&self, name: &[u8]) -> Option<&Self> {
        self.below.get(name)
    }
}

/// A stored directory that has not been read. Equal handles have equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryHandle<'a> {
    /// Git tree, or `None` if git represents nothing of the directory.
    pub tree: Option<ObjectId>,
    /// Tree of exact modes in the directory and below.
    pub modes: Option<ObjectId>,
    /// Manifest entries in the directory and below.
    pub overlay: Option<&'a Overlay>,
}

/// A directory's entries and its own mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDirectory<'a> {
    /// Mode of the directory itself.
    pub mode: u32,
    /// Entries by name.
    pub entries: BTreeMap<Name, StoredItem<'a>>,
}

/// An entry of a stored directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredItem<'a> {
    /// A regular file.
    File {
        /// Blob with the content.
        id: ObjectId,
        /// Exact mode, not only git's.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Blob with the target.
        id: ObjectId,
    },
    /// A subdirectory, not yet read.
    Directory(DirectoryHandle<'a>),
}

impl<'a> StoredItem<'a> {
    /// Mode of the entry in git, regardless of whether git accepts its name.
    pub fn tree_mode(&self) -> TreeMode {
        match self {
            Self::File { mode, .. } => TreeMode::of_permissions(*mode),
            Self::Link { .. } => TreeMode::Link,
            Self::Directory(_) => TreeMode::Directory,
        }
    }

    /// Mode and object of the entry in git, or `None` if git represents nothing of it.
    pub fn as_git(&self) -> Option<(TreeMode, ObjectId)> {
        let id = match self {
            Self::File { id, .. } | Self::Link { id } => Some(*id),
            Self::Directory(below) => below.tree,
        };
        Some((self.tree_mode(), id?))
    }

    /// Returns the directory, if it is one.
    pub fn directory(self) -> Option<DirectoryHandle<'a>> {
        match self {
            Self::Directory(below) => Some(below),
            Self::File { .. } | Self::Link { .. } => None,
        }
    }
}

/// Encodes a directory: its tree, if git represents anything of it, and the objects of its exact modes, of which the last
/// is the tree. `in_refused` is true below a name that git refuses.
pub fn encode_directory<'a, 'b>(
    mode: u32,
    entries: impl Iterator<Item = (&'a Name, StoredItem<'b>)>,
    in_refused: bool,
) -> (Option<Object>, Vec<Object>) {
    let exception = |mode: TreeMode, exact: u32| (exact != mode.permissions()).then_some(exact);
    let mut builder = TreeBuilder::default();
    let mut modes = Modes { own: exception(TreeMode::Directory, mode), ..Modes::default() };
    for (name, item) in entries {
        if let Some((mode, id)) = item.as_git()
            && (in_refused || !git_refuses(name, mode))
        {
            builder.push(name, mode, id);
        }
        match item {
            StoredItem::File { mode, .. } => {
                modes.files.extend(exception(item.tree_mode(), mode).map(|mode| (name.clone(), mode)));
            }
            StoredItem::Directory(below) => modes.below.extend(below.modes.map(|id| (name.clone(), id))),
            StoredItem::Link { .. } => {}
        }
    }
    let tree = (!builder.is_empty()).then(|| builder.build());
    (tree, modes.to_objects())
}

/// A root whose manifest has been read.
#[derive(Debug)]
pub struct Root {
    tree: ObjectId,
    modes: Option<ObjectId>,
    overlay: Overlay,
}

impl Root {
    /// Loads a root's manifest.
    pub fn load(objects: &dyn Objects, root: WorkspaceRoot) -> Result<Self, WorkspaceError> {
        let manifest = Manifest::load(objects, root.manifest)?;
        Ok(Self { tree: root.tree, modes: manifest.modes, overlay: Overlay::of(&manifest) })
    }

    /// Handle of the topmost directory.
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
    /// Reads the entries and modes of the directory.
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
                // An entry with manifest entries below it must be a directory.
                Some(_) if mode != TreeMode::Directory => {
                    Err(damaged(id, "the manifest lists it as a directory"))
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
                return Err(damaged(id, "the manifest and the tree both contain a refused entry"));
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

/// Loads the file or link at a path, given in bytes. Returns `None` if there is none, or only a directory.
pub fn read_at(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    path: &[u8],
) -> Result<Option<Object>, WorkspaceError> {
    let id = with_item(objects, root, path, |item| match item {
        StoredItem::File { id, .. } | StoredItem::Link { id } => Some(*id),
        _ => None,
    })?;
    id.flatten().map(|id| fetch(objects, id, ObjectKind::Blob)).transpose()
}

/// Looks at the item at a path. Returns `None` if there is none.
pub(super) fn with_item<T>(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    path: &[u8],
    inspect: impl FnOnce(&StoredItem<'_>) -> T,
) -> Result<Option<T>, WorkspaceError> {
    let root = Root::load(objects, root)?;
    let mut folder = root.folder();
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let contents = folder.load(objects)?;
        match (contents.entries.get(name), names.peek()) {
            (Some(item), None) => return Ok(Some(inspect(item))),
            (Some(StoredItem::Directory(below)), Some(_)) => folder = *below,
            _ => return Ok(None),
        }
    }
    Ok(None)
}
