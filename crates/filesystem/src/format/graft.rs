//! Combines two roots: one root, with single paths as they are in another.
//!
//! Only the trees along the paths are read and written. A path is a file, a link or a directory with everything
//! below it. A path that the other root does not hold is removed. The directories above a removed path stay.

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    FilePath, GraftedCapture, ObjectOverlay, Objects, WorkspaceCapture, WorkspaceError,
};

use super::manifest::Manifest;
use super::modes::Modes;
use super::names::{is_below, shown};
use super::stored::{StoredItem, with_item};
use super::{TreeBuilder, TreeMode, empty_tree, load_tree};

/// A combined root, with the objects that are not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct GraftedRoot {
    /// The root.
    pub root: WorkspaceRoot,
    /// New trees and manifests.
    pub objects: Vec<Object>,
    /// The paths that neither root holds.
    pub missing: Vec<Vec<u8>>,
}

/// Returns `onto` with `paths` as they are in `from`. Both roots must be stored with all their trees. Fails with
/// `Blocked` if a path lies below something that is a file in `onto`, or inside of a directory that git does not
/// represent, or is a file whose content was redacted.
pub fn graft(
    objects: &dyn Objects,
    onto: WorkspaceRoot,
    from: WorkspaceRoot,
    paths: &[&[u8]],
) -> Result<GraftedRoot, WorkspaceError> {
    let mut graft = Graft(ObjectOverlay::new([], objects));
    let (mut root, mut missing) = (onto, Vec::new());
    for path in paths {
        if exists(&graft.0, root, path)? || exists(&graft.0, from, path)? {
            root = graft.put(root, from, path)?;
        } else {
            missing.push(path.to_vec());
        }
    }
    Ok(GraftedRoot { root, objects: graft.0.into_new().collect(), missing })
}

/// Returns a capture with `paths` as they are in `from`.
pub fn grafted(
    mut captured: WorkspaceCapture,
    objects: &dyn Objects,
    from: WorkspaceRoot,
    paths: &[FilePath],
) -> Result<GraftedCapture, WorkspaceError> {
    let known = ObjectOverlay::new(captured.objects.iter().cloned(), objects);
    let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_str().as_bytes()).collect();
    let GraftedRoot { root, objects, missing } = graft(&known, captured.root, from, &paths)?;
    captured.root = root;
    captured.objects.extend(objects);
    Ok(GraftedCapture { captured, missing: missing.iter().map(|path| shown(path)).collect() })
}

/// Stored objects, and the new ones.
struct Graft<'a>(ObjectOverlay<'a>);

/// What a tree and its modes hold at a path.
struct GraftedItem {
    tree: Option<(TreeMode, ObjectId)>,
    mode: Option<u32>,
    modes: Option<ObjectId>,
}

impl Graft<'_> {
    fn give(&mut self, object: Object) -> ObjectId {
        let id = object.id();
        self.0.insert(object);
        id
    }

    fn put(
        &mut self,
        onto: WorkspaceRoot,
        from: WorkspaceRoot,
        path: &[u8],
    ) -> Result<WorkspaceRoot, WorkspaceError> {
        let mut manifest = Manifest::load(&self.0, onto.manifest)?;
        let other = Manifest::load(&self.0, from.manifest)?;
        for refused in [&manifest, &other].into_iter().flat_map(|manifest| manifest.refused.keys()) {
            if is_below(path, refused) {
                let reason = format!("it belongs to {}, which is only restored as a whole", shown(refused));
                return Err(WorkspaceError::Blocked { path: shown(path), reason });
            }
        }
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if is_file(&self.0, onto, &path[..end])? {
                let (path, reason) = (shown(&path[..end]), "it is a file now, and no directory".to_owned());
                return Err(WorkspaceError::Blocked { path, reason });
            }
        }
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let item = self.item(from, other.modes, &names)?;
        // Inside of a directory, a restore leaves such a file as it is; alone, there is nothing to restore.
        if let Some((mode, id)) = item.tree
            && mode != TreeMode::Directory
            && self.0.is_redacted(id).map_err(WorkspaceError::Objects)?
        {
            let reason = "its content was redacted".to_owned();
            return Err(WorkspaceError::Blocked { path: shown(path), reason });
        }
        let tree = self.put_tree(Some(onto.tree), &names, &item)?;
        let tree = tree.unwrap_or_else(|| self.give(empty_tree()));
        manifest.modes = self.put_modes(manifest.modes, &names, &item)?;
        let is_kept = |other: &[u8]| other != path && !is_below(other, path);
        manifest.empty_directories.retain(|other| is_kept(other));
        manifest.refused.retain(|other, _| is_kept(other));
        manifest
            .empty_directories
            .extend(other.empty_directories.iter().filter(|other| !is_kept(other)).cloned());
        let refused = other.refused.iter().filter(|(other, _)| !is_kept(other));
        manifest.refused.extend(refused.map(|(path, entry)| (path.clone(), *entry)));
        let mut root = WorkspaceRoot { tree, manifest: self.give(manifest.to_object()) };
        if exists(&self.0, root, path)? {
            manifest.empty_directories.retain(|directory| !is_below(path, directory));
        } else if let Some(end) = path.iter().rposition(|byte| *byte == b'/')
            && !exists(&self.0, root, &path[..end])?
        {
            manifest.empty_directories.insert(path[..end].to_vec());
        }
        root.manifest = self.give(manifest.to_object());
        Ok(root)
    }

    /// Looks up a path in the tree and in the modes of a root.
    fn item(
        &self,
        root: WorkspaceRoot,
        modes: Option<ObjectId>,
        names: &[&[u8]],
    ) -> Result<GraftedItem, WorkspaceError> {
        let mut found = GraftedItem { tree: Some((TreeMode::Directory, root.tree)), mode: None, modes };
        for name in names {
            let below = match found.tree {
                Some((TreeMode::Directory, id)) => load_tree(&self.0, id)?,
                _ => Vec::new(),
            };
            let entry = below.into_iter().find(|entry| entry.name == *name);
            let modes = found.modes.map(|id| Modes::load(&self.0, id)).transpose()?.unwrap_or_default();
            found = GraftedItem {
                tree: entry.map(|entry| (entry.mode, entry.object)),
                mode: modes.files.get(*name).copied(),
                modes: modes.below.get(*name).copied(),
            };
        }
        Ok(found)
    }

    fn put_tree(
        &mut self,
        tree: Option<ObjectId>,
        names: &[&[u8]],
        item: &GraftedItem,
    ) -> Result<Option<ObjectId>, WorkspaceError> {
        let entries = tree.map(|id| load_tree(&self.0, id)).transpose()?.unwrap_or_default();
        let Some((name, rest)) = names.split_first() else { return Ok(tree) };
        let present =
            entries.iter().find(|entry| entry.name == *name).map(|entry| (entry.mode, entry.object));
        let new = match (rest.is_empty(), present) {
            (true, _) => item.tree,
            (false, present) => {
                let below = present.filter(|(mode, _)| *mode == TreeMode::Directory).map(|(_, id)| id);
                let below = self.put_tree(below, rest, item)?;
                below.map(|id| (TreeMode::Directory, id))
            }
        };
        let mut builder = TreeBuilder::default();
        for entry in entries.iter().filter(|entry| entry.name != *name) {
            builder.push(&entry.name, entry.mode, entry.object);
        }
        if let Some((mode, object)) = new {
            builder.push(name, mode, object);
        }
        Ok((!builder.is_empty()).then(|| self.give(builder.build())))
    }

    fn put_modes(
        &mut self,
        modes: Option<ObjectId>,
        names: &[&[u8]],
        item: &GraftedItem,
    ) -> Result<Option<ObjectId>, WorkspaceError> {
        let mut own = modes.map(|id| Modes::load(&self.0, id)).transpose()?.unwrap_or_default();
        let Some((name, rest)) = names.split_first() else { return Ok(modes) };
        let below = if rest.is_empty() {
            own.files.remove(*name);
            own.files.extend(item.mode.map(|mode| ((*name).into(), mode)));
            item.modes
        } else {
            self.put_modes(own.below.get(*name).copied(), rest, item)?
        };
        own.below.remove(*name);
        own.below.extend(below.map(|id| ((*name).into(), id)));
        let objects = own.to_objects();
        Ok(objects.into_iter().map(|object| self.give(object)).last())
    }
}

/// Whether a path lies below a directory.
/// Whether a root holds anything at a path.
fn exists(objects: &dyn Objects, root: WorkspaceRoot, path: &[u8]) -> Result<bool, WorkspaceError> {
    Ok(with_item(objects, root, path, |_| ())?.is_some())
}

/// Whether a root holds a file or a link at a path.
fn is_file(objects: &dyn Objects, root: WorkspaceRoot, path: &[u8]) -> Result<bool, WorkspaceError> {
    let is_file = with_item(objects, root, path, |item| !matches!(item, StoredItem::Directory(_)))?;
    Ok(is_file.unwrap_or_default())
}
