//! Checks that every object below a root is stored: trees, blobs, the manifest, and the trees of refused
//! names and of modes.

use std::collections::HashSet;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::{Manifest, TreeMode, fetch, load_tree};

/// Returns the ids of all objects below a root. Trees and manifests are read, blobs are not.
fn reachable(objects: &dyn Objects, root: WorkspaceRoot) -> Result<HashSet<ObjectId>, WorkspaceError> {
    let manifest = Manifest::load(objects, root.manifest)?;
    let trees = std::iter::once(root.tree).chain(manifest.modes).map(|id| (TreeMode::Directory, id));
    let refused = manifest.refused.values().map(|entry| (entry.mode, entry.object));
    let mut open: Vec<(TreeMode, ObjectId)> = trees.chain(refused).collect();
    let mut seen = HashSet::from([root.manifest]);
    while let Some((mode, id)) = open.pop() {
        if seen.insert(id) && mode == TreeMode::Directory {
            open.extend(load_tree(objects, id)?.into_iter().map(|entry| (entry.mode, entry.object)));
        }
    }
    Ok(seen)
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
    for object in reachable(objects, root)? {
        let is_known = objects.contains(object).and_then(|is| Ok(is || objects.is_redacted(object)?));
        if !is_known.map_err(WorkspaceError::Objects)? {
            return Err(WorkspaceError::MissingObject { object });
        }
    }
    Ok(())
}
