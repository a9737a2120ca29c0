//! Checks that every object below a root is stored: trees, blobs, the manifest, and the trees of refused
//! names and of modes.

use std::collections::HashSet;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::{Manifest, RefusedEntry, TreeMode, fetch, load_tree, modes};

/// Adds the ids of all objects below a root to `seen`, without entering trees that it contains already.
///
/// Trees and manifests are read, blobs are not.
fn reachable(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    seen: &mut HashSet<ObjectId>,
) -> Result<(), WorkspaceError> {
    let mut trees = vec![root.tree];
    if seen.insert(root.manifest) {
        let manifest = Manifest::load(objects, root.manifest)?;
        for RefusedEntry { mode, object: id } in manifest.refused.values() {
            match mode {
                TreeMode::Directory => trees.push(*id),
                TreeMode::File | TreeMode::Executable | TreeMode::Link => drop(seen.insert(*id)),
            }
        }
        let mut open: Vec<ObjectId> = manifest.modes.into_iter().collect();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                let (blobs, below) = modes::references(objects, id)?;
                seen.extend(blobs);
                open.extend(below);
            }
        }
    }
    while let Some(id) = trees.pop() {
        if !seen.insert(id) {
            continue;
        }
        for entry in load_tree(objects, id)? {
            match entry.mode {
                TreeMode::Directory => trees.push(entry.object),
                TreeMode::File | TreeMode::Executable | TreeMode::Link => drop(seen.insert(entry.object)),
            }
        }
    }
    Ok(())
}

/// Fails unless every object of a root and its coverage are stored. Files whose content was redacted are
/// left out by a restore, so they may be missing.
///
/// Trees and manifests are read; blobs are only looked up.
pub fn check_complete(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    coverage: Option<ObjectId>,
) -> Result<(), WorkspaceError> {
    if let Some(coverage) = coverage {
        fetch(objects, coverage, ObjectKind::Blob)?;
    }
    let mut named = HashSet::new();
    reachable(objects, root, &mut named)?;
    for object in named {
        let is_known = objects.contains(object).and_then(|is| Ok(is || objects.is_redacted(object)?));
        if !is_known.map_err(WorkspaceError::Objects)? {
            return Err(WorkspaceError::MissingObject { object });
        }
    }
    Ok(())
}
