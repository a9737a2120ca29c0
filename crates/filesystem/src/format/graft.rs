//! Combines two roots: one root, with single paths as they are in another.
//!
//! Only the trees along the paths are read and written. A path is a file, a link or a directory with everything
//! below it. A path that the other root does not hold is removed. The directories above a removed path stay.

use std::collections::BTreeMap;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::Object;
use backstitch_core::ports::{
    FilePath, GraftedCapture, ObjectOverlay, Objects, WorkspaceCapture, WorkspaceError,
};

use super::TreeMode;
use super::build::{NewEntry, RootBuilder};
use super::diff::diff;
use super::manifest::Manifest;
use super::names::{Name, is_below, join, shown};
use super::stored::{DirectoryHandle, Root, StoredItem, with_item};

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
    let mut known = ObjectOverlay::new([], objects);
    let (mut root, mut missing) = (onto, Vec::new());
    for path in paths {
        if exists(&known, root, path)? || exists(&known, from, path)? {
            let (grafted, new) = put(&known, root, from, path)?;
            new.into_iter().for_each(|object| known.insert(object));
            root = grafted;
        } else {
            missing.push(path.to_vec());
        }
    }
    Ok(GraftedRoot { root, objects: known.into_new().collect(), missing })
}

/// Returns a capture with `paths` as they are in `from`.
pub fn grafted(
    mut captured: WorkspaceCapture,
    objects: &dyn Objects,
    from: WorkspaceRoot,
    paths: &[FilePath],
) -> Result<GraftedCapture, WorkspaceError> {
    let mut known = ObjectOverlay::new(captured.objects.iter().cloned(), objects);
    let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_str().as_bytes()).collect();
    let GraftedRoot { root, objects, missing } = graft(&known, captured.root, from, &paths)?;
    objects.iter().for_each(|object| known.insert(object.clone()));
    let changes = diff(&known, captured.root, root)?;
    let found = std::mem::replace(&mut captured.root, root);
    captured.objects.extend(objects);
    let missing = missing.iter().map(|path| shown(path)).collect();
    Ok(GraftedCapture { captured, found, changes, missing })
}

/// Returns a root with a path as it is in another, and its new objects.
fn put(
    objects: &dyn Objects,
    onto: WorkspaceRoot,
    from: WorkspaceRoot,
    path: &[u8],
) -> Result<(WorkspaceRoot, Vec<Object>), WorkspaceError> {
    let load = |root: WorkspaceRoot| -> Result<_, WorkspaceError> {
        Ok((Root::load(objects, root)?, Manifest::load(objects, root.manifest)?))
    };
    let ((onto, onto_manifest), (from, from_manifest)) = (load(onto)?, load(from)?);
    for refused in onto_manifest.refused.keys().chain(from_manifest.refused.keys()) {
        if is_below(path, refused) {
            let reason = format!("it belongs to {}, which is only restored as a whole", shown(refused));
            return Err(WorkspaceError::Blocked { path: shown(path), reason });
        }
    }
    let builder = RootBuilder::new(objects);
    let mut graft = Graft { objects, onto: onto_manifest, from: from_manifest, builder };
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let top = graft.directory(&[], Some(onto.folder()), Some(from.folder()), &names)?;
    Ok(graft.builder.finish(top))
}

struct Graft<'a> {
    objects: &'a dyn Objects,
    onto: Manifest,
    from: Manifest,
    builder: RootBuilder<'a>,
}

impl Graft<'_> {
    /// Builds a directory with the path of these names as it is in the other root.
    fn directory(
        &mut self,
        path: &[u8],
        onto: Option<DirectoryHandle<'_>>,
        from: Option<DirectoryHandle<'_>>,
        names: &[&[u8]],
    ) -> Result<DirectoryHandle<'static>, WorkspaceError> {
        let onto = onto.map(|directory| directory.load(self.objects)).transpose()?;
        let from = from.map(|directory| directory.load(self.objects)).transpose()?;
        let mode = onto.as_ref().map_or(TreeMode::Directory.permissions(), |onto| onto.mode);
        let mut others = onto.map(|onto| onto.entries).unwrap_or_default();
        let mut entries: BTreeMap<Name, NewEntry> = BTreeMap::new();
        if let Some((name, rest)) = names.split_first() {
            let theirs = from.and_then(|from| from.entries.get(*name).copied());
            let entry = self.entry(&join(path, name), others.remove(*name), theirs, rest)?;
            entries.extend(entry.map(|entry| ((*name).into(), entry)));
        }
        for (name, item) in others {
            let entry = self.builder.take(&self.onto, &join(path, &name), item);
            entries.insert(name, entry);
        }
        Ok(self.builder.directory(path, mode, &entries, false))
    }

    /// Takes the entry at a path from the other root, or, if there are more names, what is below it.
    fn entry(
        &mut self,
        path: &[u8],
        ours: Option<StoredItem<'_>>,
        theirs: Option<StoredItem<'_>>,
        rest: &[&[u8]],
    ) -> Result<Option<NewEntry>, WorkspaceError> {
        let blocked =
            |reason: &str| Err(WorkspaceError::Blocked { path: shown(path), reason: reason.to_owned() });
        if !rest.is_empty() {
            if ours.is_some_and(|item| item.directory().is_none()) {
                return blocked("it is a file now, and no directory");
            }
            let [ours, theirs] = [ours, theirs].map(|item| item.and_then(StoredItem::directory));
            return Ok(Some(NewEntry::Directory(self.directory(path, ours, theirs, rest)?)));
        }
        match theirs {
            Some(StoredItem::File { id, .. } | StoredItem::Link { id })
                if self.objects.is_redacted(id).map_err(WorkspaceError::Objects)? =>
            {
                blocked("its content was redacted")
            }
            theirs => Ok(theirs.map(|item| self.builder.take(&self.from, path, item))),
        }
    }
}

/// Whether a root holds anything at a path.
fn exists(objects: &dyn Objects, root: WorkspaceRoot, path: &[u8]) -> Result<bool, WorkspaceError> {
    Ok(with_item(objects, root, path, |_| ())?.is_some())
}
