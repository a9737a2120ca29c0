//! Computes the trees of a directory from its entries.

use backstitch_core::object::Object;
use backstitch_core::ports::WorkspaceError;
use backstitch_filesystem::format::names::{join, push};
use backstitch_filesystem::format::{Manifest, Modes, RefusedEntry, TreeBuilder, TreeMode, git_refuses};

use super::{Purpose, Scan};
use crate::host::index::{DirIndex, Entry, OmittedPath};

impl Scan<'_> {
    /// Computes the ids of a directory, and adds objects that the store does not have to the capture.
    pub(super) fn seal(&mut self, node: &mut DirIndex) -> Result<(), WorkspaceError> {
        if node.flags.sealed && (node.flags.stored || self.purpose == Purpose::Restore) {
            return Ok(());
        }
        let (tree, modes) = encode(node);
        if !node.flags.sealed {
            node.tree = tree.as_ref().map(Object::id);
            node.modes = modes.last().map(Object::id);
            node.flags.exceptional = is_exceptional(node);
            node.flags.sealed = !node.entries.iter().any(|(_, entry)| match entry {
                Entry::Directory(below) => !below.flags.sealed,
                Entry::Uncovered(OmittedPath { reason, .. }) => reason.is_none(),
                Entry::File(_) | Entry::Link(_) => false,
            });
        }
        let mut stored = self.purpose == Purpose::Capture;
        for object in tree.into_iter().chain(modes) {
            stored &= self.give(object)?.1;
        }
        self.confirmed += usize::from(stored);
        node.flags.stored = stored;
        Ok(())
    }
}

/// Encodes the tree of a directory, if git represents anything of it, and the objects of its modes.
fn encode(node: &DirIndex) -> (Option<Object>, Vec<Object>) {
    let mut builder = TreeBuilder::default();
    let mut modes = Modes { own: exception(TreeMode::Directory, node.mode), ..Modes::default() };
    for (name, entry) in &node.entries {
        if let Some((mode, id)) = entry.as_git()
            && (node.flags.refused || !git_refuses(name, mode))
        {
            builder.push(name, mode, id);
        }
        match entry {
            Entry::File(leaf) => {
                let exception = exception(TreeMode::of_permissions(leaf.mode), leaf.mode);
                modes.files.extend(exception.map(|mode| (name.clone(), mode)));
            }
            Entry::Directory(below) => modes.below.extend(below.modes.map(|id| (name.clone(), id))),
            Entry::Link(_) | Entry::Uncovered(_) => {}
        }
    }
    let tree = (!builder.is_empty()).then(|| builder.build());
    (tree, modes.to_objects())
}

fn exception(mode: TreeMode, permissions: u32) -> Option<u32> {
    (permissions != mode.permissions()).then_some(permissions)
}

/// Returns whether the manifest has entries for a directory's entries.
fn is_exceptional(node: &DirIndex) -> bool {
    node.entries.iter().any(|(name, entry)| match entry {
        Entry::Uncovered(_) => false,
        Entry::Directory(below) => {
            below.tree.is_none()
                || below.flags.exceptional
                || (!node.flags.refused && git_refuses(name, TreeMode::Directory))
        }
        Entry::File(_) | Entry::Link(_) => {
            !node.flags.refused && entry.git_mode().is_some_and(|mode| git_refuses(name, mode))
        }
    })
}

/// Collects the manifest of a workspace.
pub(crate) fn manifest_of(root: &DirIndex) -> Manifest {
    let mut manifest = Manifest { modes: root.modes, ..Manifest::default() };
    exceptions(root, &mut Vec::new(), &mut manifest);
    manifest
}

fn exceptions(node: &DirIndex, path: &mut Vec<u8>, manifest: &mut Manifest) {
    if !node.flags.exceptional {
        return;
    }
    let above = path.len();
    for (name, entry) in &node.entries {
        if !node.flags.refused
            && entry.git_mode().is_some_and(|mode| git_refuses(name, mode))
            && let Some(held) = entry.as_git()
        {
            let (mode, object) = held;
            manifest.refused.insert(join(path, name), RefusedEntry { mode, object });
        }
        let Entry::Directory(below) = entry else { continue };
        push(path, name);
        let holds_nothing = below.entries.iter().all(|(_, entry)| matches!(entry, Entry::Uncovered(_)));
        if holds_nothing {
            manifest.empty_directories.insert(path.clone());
        } else {
            exceptions(below, path, manifest);
        }
        path.truncate(above);
    }
}
