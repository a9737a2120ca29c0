//! Computes the trees of a directory from its entries.

use backstitch_core::object::Object;
use backstitch_core::ports::WorkspaceError;
use backstitch_filesystem::format::names::{join, push};
use backstitch_filesystem::format::{Manifest, RefusedEntry, encode_directory};

use super::{Purpose, Scan};
use crate::host::index::{DirIndex, Entry, OmittedPath};

impl Scan<'_> {
    /// Computes the ids of a directory, and adds objects that the store does not have to the capture.
    pub(super) fn seal(&mut self, node: &mut DirIndex) -> Result<(), WorkspaceError> {
        if node.flags.sealed && (node.flags.stored || self.purpose == Purpose::Restore) {
            return Ok(());
        }
        let items = node.entries.iter().filter_map(|(name, entry)| Some((name, entry.as_item()?)));
        let (tree, modes) = encode_directory(node.mode, items, node.flags.refused);
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
        if let [list, tree] = &modes[..] {
            self.lists.insert(tree.id(), list.id());
        }
        for object in tree.into_iter().chain(modes) {
            self.give(object)?;
        }
        node.flags.stored = false;
        Ok(())
    }
}

/// Returns whether the manifest has entries for a directory's entries.
fn is_exceptional(node: &DirIndex) -> bool {
    node.entries.iter().any(|(name, entry)| match entry {
        Entry::Uncovered(_) => false,
        Entry::Directory(below) => {
            below.tree.is_none() || below.flags.exceptional || (!node.flags.refused && entry.is_refused(name))
        }
        Entry::File(_) | Entry::Link(_) => !node.flags.refused && entry.is_refused(name),
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
            && entry.is_refused(name)
            && let Some((mode, object)) = entry.as_item().and_then(|item| item.as_git())
        {
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
