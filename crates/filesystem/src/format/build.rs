//! Builds a root from directories that were merged or taken from another root.
//!
//! The manifest of the new root is collected meanwhile: entries of a path that is taken from another root are copied from the
//! manifest of that root.

use std::collections::BTreeMap;
use std::ops::Bound;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ObjectOverlay, Objects};

use crate::format::manifest::{Manifest, RefusedEntry};
use crate::format::names::{Name, join};
use crate::format::stored::{DirectoryHandle, StoredItem, encode_directory};
use crate::format::{empty_tree, git_refuses};

/// An entry of a new directory, whose manifest is that of the new root.
pub(super) type NewEntry = StoredItem<'static>;

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
    fn copy(&mut self, from: &Manifest, path: &[u8]) {
        // Everything below a directory lies between these: `0` follows `/`.
        let below = match path {
            [] => (Bound::Unbounded, Bound::Unbounded),
            _ => (Bound::Excluded([path, b"/"].concat()), Bound::Excluded([path, b"0"].concat())),
        };
        let (empty, refused) = (&from.empty_directories, &from.refused);
        let directories = empty.get(path).into_iter().chain(empty.range::<Vec<u8>, _>(below.clone()));
        self.manifest.empty_directories.extend(directories.cloned());
        let entries = refused.get_key_value(path).into_iter().chain(refused.range::<Vec<u8>, _>(below));
        self.manifest.refused.extend(entries.map(|(path, entry)| (path.clone(), *entry)));
    }

    /// Takes an entry from another root, with what its manifest says about it.
    pub(super) fn take(&mut self, from: &Manifest, path: &[u8], item: StoredItem<'_>) -> NewEntry {
        match item {
            StoredItem::File { id, mode } => NewEntry::File { id, mode },
            StoredItem::Link { id } => NewEntry::Link { id },
            StoredItem::Directory(DirectoryHandle { tree, modes, .. }) => {
                self.copy(from, path);
                NewEntry::Directory(DirectoryHandle { tree, modes, overlay: None })
            }
        }
    }

    /// Builds a directory from its entries. `in_refused` is true below a name that git refuses.
    pub(super) fn directory(
        &mut self,
        path: &[u8],
        mode: u32,
        entries: &BTreeMap<Name, NewEntry>,
        in_refused: bool,
    ) -> DirectoryHandle<'static> {
        for (name, entry) in entries.iter().filter(|_| !in_refused) {
            if let Some((mode, object)) = entry.as_git()
                && git_refuses(name, mode)
            {
                self.manifest.refused.insert(join(path, name), RefusedEntry { mode, object });
            }
        }
        if entries.is_empty() && !path.is_empty() {
            self.manifest.empty_directories.insert(path.to_vec());
        }
        let items = entries.iter().map(|(name, entry)| (name, *entry));
        let (tree, modes) = encode_directory(mode, items, in_refused);
        let tree = tree.map(|tree| self.give(tree));
        let modes = modes.into_iter().map(|object| self.give(object)).last();
        DirectoryHandle { tree, modes, overlay: None }
    }

    /// Completes the root. Returns it with its new objects.
    pub(super) fn finish(mut self, top: DirectoryHandle<'_>) -> (WorkspaceRoot, Vec<Object>) {
        let tree = top.tree.unwrap_or_else(|| self.give(empty_tree()));
        let mut manifest = std::mem::take(&mut self.manifest);
        manifest.modes = top.modes;
        let manifest = self.give(manifest.to_object());
        (WorkspaceRoot { tree, manifest }, self.objects.into_new().collect())
    }
}
