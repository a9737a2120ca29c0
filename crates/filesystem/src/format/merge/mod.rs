//! Merges two roots that were made from a third.
//!
//! Only directories that both sides changed are read; all others are taken from one side as they are. A directory is no
//! conflict by itself: its entries are merged one by one, and it exists afterwards if it has an entry, or if the side that
//! changed that says so.

mod lines;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{ConflictKind, ConflictResolution, MergeConflict, Objects, WorkspaceError};

use self::lines::MergedText;
use super::build::{NewEntry, RootBuilder};
use super::manifest::Manifest;
use super::names::{is_below, join, shown};
use super::stored::{DirectoryHandle, MAX_DEPTH, Root, StoredDirectory, StoredItem};
use super::{TreeMode, fetch, git_refuses};

/// Roots to merge. All must be stored with all their trees.
#[derive(Debug, Clone)]
pub struct Merge<'a> {
    /// State that both sides started from.
    pub base: WorkspaceRoot,
    /// The files that the changes are merged into.
    pub ours: WorkspaceRoot,
    /// The files with the changes.
    pub theirs: WorkspaceRoot,
    /// Paths to merge. If there are none, everything is merged.
    pub paths: &'a [&'a [u8]],
    /// Paths that one side does not cover. They stay as they are.
    pub excluded: &'a BTreeSet<Vec<u8>>,
    /// What to do about conflicts.
    pub resolution: ConflictResolution,
}

/// Decides which paths are ignored. The files with its patterns are passed in the order of a walk.
pub trait IgnoreRules {
    /// Enters a directory with a `.gitignore` of this content.
    fn enter(&mut self, directory: &[u8], content: &Object);

    /// Leaves the directory that was entered last.
    fn leave(&mut self);

    /// Returns whether a path is ignored, and so stays as it is.
    fn is_ignored(&self, path: &[u8], is_directory: bool) -> bool;
}

/// A merged root, with the objects that are not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedRoot {
    /// The root. Where a conflict is listed, it is that of `ours`.
    pub root: WorkspaceRoot,
    /// New files, trees and manifests.
    pub objects: Vec<Object>,
    /// Conflicts that are not decided.
    pub conflicts: Vec<MergeConflict>,
    /// Conflicts that the resolution decided.
    pub decided: Vec<MergeConflict>,
    /// Excluded and ignored paths that `theirs` changed.
    pub left_out: Vec<Vec<u8>>,
}

/// Merges the changes from `base` to `theirs` into `ours`. Ignored paths stay as they are, unless `paths` names them.
pub fn merge<'a>(
    objects: &'a dyn Objects,
    merge: &'a Merge<'a>,
    ignores: Option<&'a mut dyn IgnoreRules>,
) -> Result<MergedRoot, WorkspaceError> {
    let load =
        |root: WorkspaceRoot| Ok((Root::load(objects, root)?, Manifest::load(objects, root.manifest)?));
    let (base, _) = load(merge.base)?;
    let ((ours, our_manifest), (theirs, their_manifest)) = (load(merge.ours)?, load(merge.theirs)?);
    let mut merging = Merging {
        objects,
        merge,
        ignores,
        our_manifest,
        their_manifest,
        builder: RootBuilder::new(objects),
        conflicts: Vec::new(),
        decided: Vec::new(),
        left_out: Vec::new(),
    };
    let sides = Sides {
        base: Some(StoredItem::Directory(base.folder())),
        ours: Some(StoredItem::Directory(ours.folder())),
        theirs: Some(StoredItem::Directory(theirs.folder())),
    };
    let top = merging.entry(&[], sides, Place::default())?;
    let Some(NewEntry::Directory(top)) = top else {
        return Err(WorkspaceError::Limit { reason: "the top directory is gone".to_owned() });
    };
    let Merging { builder, mut conflicts, mut decided, left_out, .. } = merging;
    conflicts.sort_unstable();
    decided.sort_unstable();
    let (root, objects) = builder.finish(top);
    Ok(MergedRoot { root, objects, conflicts, decided, left_out })
}

struct Merging<'a> {
    objects: &'a dyn Objects,
    merge: &'a Merge<'a>,
    ignores: Option<&'a mut dyn IgnoreRules>,
    our_manifest: Manifest,
    their_manifest: Manifest,
    builder: RootBuilder<'a>,
    conflicts: Vec<MergeConflict>,
    decided: Vec<MergeConflict>,
    left_out: Vec<Vec<u8>>,
}

/// An entry in the three roots.
#[derive(Clone, Copy)]
struct Sides<'a> {
    base: Option<StoredItem<'a>>,
    ours: Option<StoredItem<'a>>,
    theirs: Option<StoredItem<'a>>,
}

/// Where an entry lies.
#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    /// Below a name that git refuses.
    in_refused: bool,
    /// At or below a path to merge.
    is_chosen: bool,
    /// At or below a path that the merge names.
    is_named: bool,
}

impl<'a> Merging<'a> {
    /// Merges an entry and everything below it.
    fn entry(
        &mut self,
        path: &[u8],
        sides: Sides<'_>,
        place: Place,
    ) -> Result<Option<NewEntry>, WorkspaceError> {
        let Sides { base, ours, theirs } = sides;
        if theirs == base || theirs == ours {
            return Ok(self.take_ours(path, ours));
        }
        if self.merge.excluded.contains(path) {
            self.left_out.push(path.to_vec());
            return Ok(self.take_ours(path, ours));
        }
        let paths = self.merge.paths;
        let is_directory = [base, ours, theirs].into_iter().any(is_directory);
        let is_named = place.is_named || paths.contains(&path);
        if !is_named
            && !path.is_empty()
            && self.ignores.as_ref().is_some_and(|ignores| ignores.is_ignored(path, is_directory))
        {
            // A path to merge may lie below.
            if !paths.iter().any(|chosen| is_below(chosen, path)) {
                self.left_out.push(path.to_vec());
                return Ok(self.take_ours(path, ours));
            }
        }
        let place = Place { is_named, ..place };
        let place =
            Place { is_chosen: place.is_chosen || paths.is_empty() || paths.contains(&path), ..place };
        let is_above = paths.iter().any(|chosen| path.is_empty() || is_below(chosen, path));
        let excluded = self.merge.excluded.range::<[u8], _>((Bound::Excluded(path), Bound::Unbounded));
        let excludes_below = excluded
            .take_while(|other| other.starts_with(path))
            .any(|other| path.is_empty() || is_below(other, path));
        if !place.is_chosen && !is_above {
            return Ok(self.take_ours(path, ours));
        }
        // Something below a directory may be ignored.
        let is_whole = !is_directory || is_named || self.ignores.is_none();
        if place.is_chosen && ours == base && !excludes_below && is_whole {
            return Ok(self.take_theirs(path, theirs));
        }
        let below = [base, ours, theirs].map(|side| side.and_then(StoredItem::directory));
        let are_directories = match below {
            [_, Some(_), Some(_)] => true,
            [Some(_), Some(_), None] => theirs.is_none(),
            // A file that is unchanged here has become a directory.
            [_, None, Some(_)] => ours.is_none() || ours == base,
            _ => false,
        };
        if are_directories {
            return self.directory(path, below, place);
        }
        if !place.is_chosen {
            // A path to merge lies below something that is not a directory here.
            return self.conflict(path, sides, ConflictKind::TypeChanged, None);
        }
        if let (Some(StoredItem::Directory(before)), Some(StoredItem::File { .. } | StoredItem::Link { .. })) =
            (base, theirs)
            && !excludes_below
            && self.only_lacks(before, ours, place.depth)?
        {
            // Both deleted what was in the directory, and one of them has replaced it.
            return Ok(self.take_theirs(path, theirs));
        }
        self.leaf(path, sides)
    }

    /// Returns whether an entry is what remains of a directory of which some files were deleted, and nothing else was changed.
    fn only_lacks(
        &self,
        before: DirectoryHandle<'_>,
        now: Option<StoredItem<'_>>,
        depth: usize,
    ) -> Result<bool, WorkspaceError> {
        let now = match now {
            None => return Ok(true),
            Some(StoredItem::Directory(now)) if depth <= MAX_DEPTH => now,
            Some(_) => return Ok(false),
        };
        if now == before {
            return Ok(true);
        }
        let (before, now) = (before.load(self.objects)?, now.load(self.objects)?);
        // A restore lets its owner into a directory before it deletes what is in it.
        if now.mode != before.mode && now.mode != before.mode | 0o700 {
            return Ok(false);
        }
        for (name, now) in &now.entries {
            let lacks = match before.entries.get(name) {
                Some(before) if before == now => true,
                Some(StoredItem::Directory(before)) => self.only_lacks(*before, Some(*now), depth + 1)?,
                _ => false,
            };
            if !lacks {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Merges the entries of directories. One that is missing counts as empty.
    fn directory(
        &mut self,
        path: &[u8],
        [base, ours, theirs]: [Option<DirectoryHandle<'_>>; 3],
        place: Place,
    ) -> Result<Option<NewEntry>, WorkspaceError> {
        if place.depth > MAX_DEPTH {
            let reason = format!("directories nest deeper than {MAX_DEPTH}");
            return Err(WorkspaceError::Limit { reason });
        }
        let objects = self.objects;
        let base = base.map(|side| side.load(objects)).transpose()?;
        let ours = ours.map(|side| side.load(objects)).transpose()?;
        let theirs = theirs.map(|side| side.load(objects)).transpose()?;
        let all = [&base, &ours, &theirs].into_iter().flatten();
        let names: BTreeSet<_> = all.flat_map(|side| side.entries.keys().cloned()).collect();
        let rules = [&ours, &theirs].into_iter().find_map(|side| entry_of(side.as_ref(), b".gitignore"));
        let rules = match (&mut self.ignores, rules) {
            (Some(ignores), Some(StoredItem::File { id, .. })) => {
                ignores.enter(path, &fetch(objects, id, ObjectKind::Blob)?);
                true
            }
            _ => false,
        };
        let mut entries = BTreeMap::new();
        for name in names {
            let sides = Sides {
                base: entry_of(base.as_ref(), &name),
                ours: entry_of(ours.as_ref(), &name),
                theirs: entry_of(theirs.as_ref(), &name),
            };
            let is_directory = [sides.base, sides.ours, sides.theirs].into_iter().any(is_directory);
            let refused = is_directory && git_refuses(&name, TreeMode::Directory);
            let below = Place { depth: place.depth + 1, in_refused: place.in_refused || refused, ..place };
            if let Some(entry) = self.entry(&join(path, &name), sides, below)? {
                entries.insert(name, entry);
            }
        }
        if let Some(ignores) = self.ignores.as_mut().filter(|_| rules) {
            ignores.leave();
        }
        let modes = [&base, &ours, &theirs].map(|side| side.as_ref().map(|side| side.mode));
        let exists = match modes.map(|mode| mode.is_some()) {
            [base, ours, theirs] if theirs == base || !place.is_chosen => ours,
            [_, _, theirs] => theirs,
        };
        if entries.is_empty() && !exists && !path.is_empty() {
            return Ok(None);
        }
        let mode = match modes {
            _ if !place.is_chosen => modes[1],
            [base, ours, theirs] => self.mode(path, base, ours, theirs),
        };
        let mode = mode.or(modes[2]).unwrap_or(TreeMode::Directory.permissions());
        let built = self.builder.directory(path, mode, &entries, place.in_refused);
        Ok(Some(NewEntry::Directory(built)))
    }

    /// Merges files and links, and whatever cannot be merged.
    fn leaf(&mut self, path: &[u8], sides: Sides<'_>) -> Result<Option<NewEntry>, WorkspaceError> {
        use StoredItem::File;
        let Sides { base, ours, theirs } = sides;
        let (Some(our_item), Some(their_item)) = (ours, theirs) else {
            let kind = match ours {
                Some(_) => ConflictKind::DeletedInResult,
                None => ConflictKind::DeletedInDirectory,
            };
            return self.conflict(path, sides, kind, None);
        };
        let (File { id: our_id, mode: our_mode }, File { id: their_id, mode: their_mode }) =
            (our_item, their_item)
        else {
            let are_links = [our_item, their_item].iter().all(|item| matches!(item, StoredItem::Link { .. }));
            let kind = match base {
                _ if !are_links => ConflictKind::TypeChanged,
                None => ConflictKind::BothAdded,
                Some(_) => ConflictKind::BothChangedBinary,
            };
            return self.conflict(path, sides, kind, None);
        };
        let base_file = match base {
            Some(File { id, mode }) => Some((id, mode)),
            _ => None,
        };
        let base_id = base_file.map(|(id, _)| id);
        let id = if our_id == their_id || base_id == Some(their_id) {
            our_id
        } else if base_id == Some(our_id) {
            their_id
        } else {
            let objects = self.objects;
            let read = |id: ObjectId| fetch(objects, id, ObjectKind::Blob);
            let mut is_redacted = false;
            for id in [our_id, their_id].into_iter().chain(base_id) {
                is_redacted |= objects.is_redacted(id).map_err(WorkspaceError::Objects)?;
            }
            let merged = if is_redacted {
                // Content that was removed cannot be compared.
                None
            } else {
                let of_base = base_id.map(read).transpose()?;
                let of_base = of_base.as_ref().map_or(&[][..], |base| base.bytes());
                lines::merged(of_base, read(our_id)?.bytes(), read(their_id)?.bytes())
            };
            match merged {
                Some(MergedText::Clean(text)) if base_id.is_some() => self.builder.give(Object::blob(text)),
                merged => {
                    let kind = match merged {
                        _ if base_id.is_none() => ConflictKind::BothAdded,
                        Some(_) => ConflictKind::BothChanged,
                        None => ConflictKind::BothChangedBinary,
                    };
                    let marked = merged.map(|(MergedText::Clean(text) | MergedText::Marked(text))| text);
                    return self.conflict(path, sides, kind, marked);
                }
            }
        };
        let mode = self.mode(path, base_file.map(|(_, mode)| mode), Some(our_mode), Some(their_mode));
        Ok(Some(NewEntry::File { id, mode: mode.unwrap_or(our_mode) }))
    }

    /// Merges modes.
    fn mode(
        &mut self,
        path: &[u8],
        base: Option<u32>,
        ours: Option<u32>,
        theirs: Option<u32>,
    ) -> Option<u32> {
        if theirs == base || theirs == ours || theirs.is_none() {
            return ours;
        }
        if ours == base || ours.is_none() {
            return theirs;
        }
        let conflict = MergeConflict { path: shown(path), kind: ConflictKind::ModeChanged };
        match self.merge.resolution {
            ConflictResolution::List => self.conflicts.push(conflict),
            _ => self.decided.push(conflict),
        }
        if self.merge.resolution == ConflictResolution::Theirs { theirs } else { ours }
    }

    /// Lists a conflict, or decides it. `marked` is a text with markers, where there is one.
    fn conflict(
        &mut self,
        path: &[u8],
        sides: Sides<'_>,
        kind: ConflictKind,
        marked: Option<Vec<u8>>,
    ) -> Result<Option<NewEntry>, WorkspaceError> {
        let conflict = MergeConflict { path: shown(path), kind };
        match (self.merge.resolution, marked, sides.ours) {
            (ConflictResolution::Theirs, _, _) => {
                self.decided.push(conflict);
                return Ok(self.take_theirs(path, sides.theirs));
            }
            (ConflictResolution::Ours, _, _) => self.decided.push(conflict),
            (ConflictResolution::Markers, Some(text), Some(StoredItem::File { mode, .. })) => {
                self.decided.push(conflict);
                let id = self.builder.give(Object::blob(text));
                return Ok(Some(NewEntry::File { id, mode }));
            }
            (ConflictResolution::List | ConflictResolution::Markers, _, _) => self.conflicts.push(conflict),
        }
        Ok(self.take_ours(path, sides.ours))
    }

    fn take_ours(&mut self, path: &[u8], item: Option<StoredItem<'_>>) -> Option<NewEntry> {
        Some(self.builder.take(&self.our_manifest, path, item?))
    }

    fn take_theirs(&mut self, path: &[u8], item: Option<StoredItem<'_>>) -> Option<NewEntry> {
        Some(self.builder.take(&self.their_manifest, path, item?))
    }
}

/// Returns the entry of a directory that may be missing.
fn entry_of<'a>(directory: Option<&StoredDirectory<'a>>, name: &[u8]) -> Option<StoredItem<'a>> {
    directory?.entries.get(name).copied()
}

fn is_directory(item: Option<StoredItem<'_>>) -> bool {
    matches!(item, Some(StoredItem::Directory(_)))
}
