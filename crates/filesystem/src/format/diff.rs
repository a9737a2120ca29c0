//! Compares two roots by path.
//!
//! Only trees and manifests are read, and equal directories are not entered. The result lists files, links
//! and empty directories; a directory with entries is listed only if its own mode changed.

use std::collections::BTreeSet;

use backstitch_core::journal::WorkspaceRoot;
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
    if from == to {
        return Ok(Vec::new());
    }
    let (from, to) = (Root::load(objects, from)?, Root::load(objects, to)?);
    let mut diff = Diff { objects, changes: Vec::new() };
    diff.folders(&[], Some(from.folder()), Some(to.folder()), 0)?;
    diff.changes.sort_unstable();
    Ok(path_changes(&diff.changes))
}

/// Merges changes at the same path: a removal and an addition, such as a file in place of an empty directory,
/// become one change.
fn path_changes(changes: &[(Vec<u8>, ChangeKind)]) -> Vec<PathChange> {
    let same_path = changes.chunk_by(|(left, _), (right, _)| left == right);
    let change = |changes: &[(Vec<u8>, ChangeKind)]| match changes {
        [(_, change)] => *change,
        _ => ChangeKind::Modified,
    };
    same_path.map(|changes| PathChange { path: shown(&changes[0].0), change: change(changes) }).collect()
}

struct Diff<'a> {
    objects: &'a dyn Objects,
    changes: Vec<(Vec<u8>, ChangeKind)>,
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
            (Some(before), Some(after)) if before.mode != after.mode => self.add(path, ChangeKind::Mode)?,
            (None, Some(after)) if after.entries.is_empty() => self.add(path, ChangeKind::Added)?,
            (Some(before), None) if before.entries.is_empty() => self.add(path, ChangeKind::Deleted)?,
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
        let is_leaf = |item: Option<&StoredItem<'_>>| item.is_some_and(|item| item.directory().is_none());
        match (is_leaf(from), is_leaf(to)) {
            (false, true) => self.add(path, ChangeKind::Added)?,
            (true, false) => self.add(path, ChangeKind::Deleted)?,
            (true, true) => match (from, to) {
                (Some(File { id: before, .. }), Some(File { id: after, .. })) if before == after => {
                    self.add(path, ChangeKind::Mode)?;
                }
                _ => self.add(path, ChangeKind::Modified)?,
            },
            (false, false) => {}
        }
        let folder = |item: Option<&StoredItem<'a>>| item.and_then(|item| item.directory());
        self.folders(path, folder(from), None, depth + 1)?;
        self.folders(path, None, folder(to), depth + 1)
    }

    fn add(&mut self, path: &[u8], change: ChangeKind) -> Result<(), WorkspaceError> {
        if self.changes.len() >= MOST_CHANGES {
            return Err(WorkspaceError::Limit { reason: format!("more than {MOST_CHANGES} paths differ") });
        }
        self.changes.push((path.to_vec(), change));
        Ok(())
    }
}
