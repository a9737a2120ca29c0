//! Builds a root from directories that were merged or taken from another root.
//!
//! The manifest of the new root is collected meanwhile: entries of a path that is taken from another root are copied from the
//! manifest of that root.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ObjectOverlay, Objects};

use crate::format::manifest::{Manifest, RefusedEntry};
use crate::format::modes::Modes;
use crate::format::names::Name;
use crate::format::stored::StoredItem;
use crate::format::{TreeBuilder, TreeMode, empty_tree, git_refuses};

/// An entry of a new directory.
#[derive(Debug, Clone, Copy)]
pub(super) enum NewEntry {
    File { id: ObjectId, mode: u32 },
    Link { id: ObjectId },
    Directory(NewDirectory),
}

/// A new directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewDirectory {
    pub(super) tree: Option<ObjectId>,
    pub(super) modes: Option<ObjectId>,
}

impl From<StoredItem<'_>> for NewEntry {
    fn from(item: StoredItem<'_>) -> Self {
        match item {
            StoredItem::File { id, mode } => Self::File { id, mode },
            StoredItem::Link { id } => Self::Link { id },
            StoredItem::Directory(below) => {
                Self::Directory(NewDirectory { tree: below.tree, modes: below.modes })
            }
        }
    }
}

impl NewEntry {
    /// The entry of a tree, if git represents anything of it.
    fn in_tree(&self) -> Option<(TreeMode, ObjectId)> {
        match self {
            Self::File { id, mode } => Some((TreeMode::of_permissions(*mode), *id)),
            Self::Link { id } => Some((TreeMode::Link, *id)),
            Self::Directory(below) => below.tree.map(|id| (TreeMode::Directory, id)),
        }
    }
}

/// The root under construction.
pub(super) struct RootBuilder<'a> {
    objects: ObjectOverlay<'a>,
    manifest: Manifest,
}

impl<'a> RootBuilder<'a> {
    pub(super) fn new(objects: &'a dyn Objects) -> Self {
        Self { objects: ObjectOverlay::new([], objects), manifest: Manifest::default() }
    }

    pub(super) fn give(&mut self, object: Object) -> ObjectId {
        let id = object.id();
        self.objects.insert(object);
        id
    }

    /// Copies what the manifest of another root says about a path and everything below it.
    pub(super) fn copy(&mut self, from: &Manifest, path: &[u8]) {
        if path.is_empty() {
            self.manifest.empty_directories.extend(from.empty_directories.iter().cloned());
            self.manifest.refused.extend(from.refused.iter().map(|(path, entry)| (path.clone(), *entry)));
            return;
        }
        let (empty, refused) = (&from.empty_directories, &from.refused);
        self.manifest
            .empty_directories
            .extend(empty.get(path).into_iter().chain(below(empty, path)).cloned());
        let end = end_of(path);
        let range = (Bound::Excluded(beginning_of(path)), Bound::Excluded(end));
        let own = refused.get_key_value(path);
        let entries = own.into_iter().chain(refused.range::<Vec<u8>, _>(range));
        self.manifest.refused.extend(entries.map(|(path, entry)| (path.clone(), *entry)));
    }

    /// Builds a directory from its entries. `in_refused` is true below a name that git refuses.
    pub(super) fn directory(
        &mut self,
        path: &[u8],
        mode: u32,
        entries: &BTreeMap<Name, NewEntry>,
        in_refused: bool,
    ) -> NewDirectory {
        let mut builder = TreeBuilder::default();
        let mut modes = Modes { own: exception(TreeMode::Directory, mode), ..Modes::default() };
        for (name, entry) in entries {
            match entry.in_tree() {
                Some((mode, object)) if in_refused || !git_refuses(name, mode) => {
                    builder.push(name, mode, object);
                }
                Some((mode, object)) => {
                    let path = crate::format::names::join(path, name);
                    self.manifest.refused.insert(path, RefusedEntry { mode, object });
                }
                None => {}
            }
            match entry {
                NewEntry::File { mode, .. } => {
                    let exception = exception(TreeMode::of_permissions(*mode), *mode);
                    modes.files.extend(exception.map(|mode| (name.clone(), mode)));
                }
                NewEntry::Directory(below) => modes.below.extend(below.modes.map(|id| (name.clone(), id))),
                NewEntry::Link { .. } => {}
            }
        }
        if entries.is_empty() && !path.is_empty() {
            self.manifest.empty_directories.insert(path.to_vec());
        }
        let tree = (!builder.is_empty()).then(|| self.give(builder.build()));
        let modes = modes.to_objects().into_iter().map(|object| self.give(object)).last();
        NewDirectory { tree, modes }
    }

    /// Completes the root. Returns it with its new objects.
    pub(super) fn finish(mut self, top: NewDirectory) -> (WorkspaceRoot, Vec<Object>) {
        let tree = top.tree.unwrap_or_else(|| self.give(empty_tree()));
        let mut manifest = std::mem::take(&mut self.manifest);
        manifest.modes = top.modes;
        let manifest = self.give(manifest.to_object());
        (WorkspaceRoot { tree, manifest }, self.objects.into_new().collect())
    }
}

fn exception(mode: TreeMode, permissions: u32) -> Option<u32> {
    (permissions != mode.permissions()).then_some(permissions)
}

/// The paths below a directory.
fn below<'a>(paths: &'a BTreeSet<Vec<u8>>, path: &[u8]) -> impl Iterator<Item = &'a Vec<u8>> {
    paths.range::<Vec<u8>, _>((Bound::Excluded(beginning_of(path)), Bound::Excluded(end_of(path))))
}

/// Lies before every path below a directory.
fn beginning_of(path: &[u8]) -> Vec<u8> {
    [path, b"/"].concat()
}

/// Lies after every path below a directory: `0` follows `/`.
fn end_of(path: &[u8]) -> Vec<u8> {
    [path, b"0"].concat()
}
