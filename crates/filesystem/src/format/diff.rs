//! Compares two roots by path.
//!
//! Only trees and manifests are read, and equal directories are not entered. The result lists files, links
//! and empty directories; a directory with entries is listed only if its own mode changed.

use std::collections::BTreeSet;

use backstitch_core::journal::{CallChanges, ChangeCounts, ChangedPath, FileContent, WorkspaceRoot};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{ChangeKind, Objects, PathChange, WorkspaceError};

use super::names::{join, shown};
use super::stored::{DirectoryHandle, MAX_DEPTH, Root, StoredItem};

/// Maximum number of changes. Trees can name one directory many times, so small objects can describe more
/// changes than fit in memory.
const MOST_CHANGES: usize = 1024 * 1024;

/// Lists the differences between two roots, in byte order of the paths. Both must be stored with all their
/// trees.
pub fn diff(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
) -> Result<Vec<PathChange>, WorkspaceError> {
    let differences = find(objects, from, to)?;
    Ok(differences
        .iter()
        .map(|found| PathChange { path: shown(&found.path), change: found.change })
        .collect())
}

/// Lists the differences between two roots as a call records them, with the contents on both sides. Paths
/// that are too many, or not UTF-8, are only counted.
pub fn changes(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
) -> Result<CallChanges, WorkspaceError> {
    let differences = find(objects, from, to)?;
    let counts = ChangeCounts::of(differences.iter().map(|found| found.change));
    if differences.len() > CallChanges::MOST_PATHS {
        return Ok(CallChanges::Counts(counts));
    }
    let content = |object: ObjectId| FileContent { object, bytes: None };
    let changed = |found: Difference| -> Option<ChangedPath> {
        let path = String::from_utf8(found.path).ok()?;
        let (before, after) = (found.before.map(content), found.after.map(content));
        Some(ChangedPath { path, change: found.change, before, after })
    };
    let Some(paths) = differences.into_iter().map(changed).collect::<Option<Vec<_>>>() else {
        return Ok(CallChanges::Counts(counts));
    };
    let mut changes = CallChanges::new(paths);
    if let CallChanges::Paths(paths) = &mut changes {
        for content in paths.iter_mut().flat_map(|path| [&mut path.before, &mut path.after]).flatten() {
            // A size that cannot be read is left out: the content may be redacted, or not kept any more.
            content.bytes = objects.length(content.object).ok().flatten();
        }
    }
    Ok(changes)
}

/// Finds the differences between two roots, in byte order of the paths.
fn find(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
) -> Result<Vec<Difference>, WorkspaceError> {
    if from == to {
        return Ok(Vec::new());
    }
    let (from, to) = (Root::load(objects, from)?, Root::load(objects, to)?);
    let mut diff = Diff { objects, changes: Vec::new() };
    diff.folders(&[], Some(from.folder()), Some(to.folder()), 0)?;
    diff.changes.sort_unstable();
    Ok(merge_same_paths(diff.changes))
}

/// Merges changes at the same path: a removal and an addition, such as a file in place of an empty directory,
/// become one change.
fn merge_same_paths(changes: Vec<Difference>) -> Vec<Difference> {
    let mut merged: Vec<Difference> = Vec::with_capacity(changes.len());
    for change in changes {
        match merged.last_mut() {
            Some(last) if last.path == change.path => {
                last.change = ChangeKind::Modified;
                last.before = last.before.or(change.before);
                last.after = last.after.or(change.after);
            }
            _ => merged.push(change),
        }
    }
    merged
}

/// A path that differs, with the contents of the file or link on both sides.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    path: Vec<u8>,
    change: ChangeKind,
    before: Option<ObjectId>,
    after: Option<ObjectId>,
}

struct Diff<'a> {
    objects: &'a dyn Objects,
    changes: Vec<Difference>,
}

impl Diff<'_> {
    fn folders(
        &mut self,
        path: &[u8],
        from: Option<DirectoryHandle<'_>>,
        to: Option<DirectoryHandle<'_>>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if from == to {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(WorkspaceError::Limit {
                reason: format!("directories nest deeper than {MAX_DEPTH}"),
            });
        }
        let before = from.map(|folder| folder.load(self.objects)).transpose()?;
        let after = to.map(|folder| folder.load(self.objects)).transpose()?;
        match (&before, &after) {
            (Some(before), Some(after)) if before.mode != after.mode => {
                self.add(path, ChangeKind::Mode, [None; 2])?;
            }
            (None, Some(after)) if after.entries.is_empty() => {
                self.add(path, ChangeKind::Added, [None; 2])?;
            }
            (Some(before), None) if before.entries.is_empty() => {
                self.add(path, ChangeKind::Deleted, [None; 2])?;
            }
            _ => {}
        }
        let before = before.map(|contents| contents.entries).unwrap_or_default();
        let after = after.map(|contents| contents.entries).unwrap_or_default();
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for name in names {
            self.items(&join(path, name), before.get(name), after.get(name), depth)?;
        }
        Ok(())
    }

    fn items<'a>(
        &mut self,
        path: &[u8],
        from: Option<&StoredItem<'a>>,
        to: Option<&StoredItem<'a>>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        use StoredItem::File;
        if from == to {
            return Ok(());
        }
        if let (Some(StoredItem::Directory(from)), Some(StoredItem::Directory(to))) = (from, to) {
            return self.folders(path, Some(*from), Some(*to), depth + 1);
        }
        let contents = [from, to].map(content);
        match contents {
            [None, Some(_)] => self.add(path, ChangeKind::Added, contents)?,
            [Some(_), None] => self.add(path, ChangeKind::Deleted, contents)?,
            [Some(_), Some(_)] => match (from, to) {
                (Some(File { id: before, .. }), Some(File { id: after, .. })) if before == after => {
                    self.add(path, ChangeKind::Mode, contents)?;
                }
                _ => self.add(path, ChangeKind::Modified, contents)?,
            },
            [None, None] => {}
        }
        let folder = |item: Option<&StoredItem<'a>>| item.and_then(|item| item.directory());
        self.folders(path, folder(from), None, depth + 1)?;
        self.folders(path, None, folder(to), depth + 1)
    }

    fn add(
        &mut self,
        path: &[u8],
        change: ChangeKind,
        [before, after]: [Option<ObjectId>; 2],
    ) -> Result<(), WorkspaceError> {
        if self.changes.len() >= MOST_CHANGES {
            return Err(WorkspaceError::Limit { reason: format!("more than {MOST_CHANGES} paths differ") });
        }
        self.changes.push(Difference { path: path.to_vec(), change, before, after });
        Ok(())
    }
}

/// The content of a file, or the target of a link; none for a directory.
fn content(item: Option<&StoredItem<'_>>) -> Option<ObjectId> {
    match item {
        Some(StoredItem::File { id, .. } | StoredItem::Link { id }) => Some(*id),
        Some(StoredItem::Directory(_)) | None => None,
    }
}
