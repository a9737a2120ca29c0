//! What differs between two roots.
//!
//! Only trees and manifests are read, and directories that are equal are not entered. What is compared are leaves: files,
//! links, and directories that hold nothing. A directory that holds something has no existence of its own, so it is not
//! reported that one became empty or ceased to be, next to the files that tell so.

use std::collections::BTreeMap;

use super::manifest::Refused;
use super::stored::{manifest_at, tree_at};
use super::tree::{TreeEntry, TreeMode};
use crate::journal::WorkspaceRoot;
use crate::object::ObjectId;
use crate::ports::{ChangeKind, Objects, PathChange, WorkspaceError};

/// A tree can name the same directory often, so a small object can stand for more than can be compared.
const MOST_ENTRIES: usize = 1024 * 1024;

/// What differs between two roots, in order of the paths' bytes. Both must be stored with all their trees.
pub fn diff_roots(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
) -> Result<Vec<PathChange>, WorkspaceError> {
    let mut diff = Diff { objects, before: BTreeMap::new(), after: BTreeMap::new(), entries: 0 };
    diff.trees(Vec::new(), Some(from.tree), Some(to.tree))?;
    if from.manifest != to.manifest {
        diff.manifests(from.manifest, to.manifest)?;
    }
    Ok(diff.changes())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    File(TreeMode, ObjectId),
    EmptyDirectory,
}

/// The leaves of either side that are not the same on the other.
struct Diff<'a> {
    objects: &'a dyn Objects,
    before: BTreeMap<Vec<u8>, Leaf>,
    after: BTreeMap<Vec<u8>, Leaf>,
    entries: usize,
}

impl Diff<'_> {
    fn trees(
        &mut self,
        path: Vec<u8>,
        from: Option<ObjectId>,
        to: Option<ObjectId>,
    ) -> Result<(), WorkspaceError> {
        let mut open = vec![(path, from, to)];
        while let Some((path, from, to)) = open.pop() {
            if from == to {
                continue;
            }
            let mut names: BTreeMap<Vec<u8>, [Option<(TreeMode, ObjectId)>; 2]> = BTreeMap::new();
            for (side, tree) in [from, to].into_iter().enumerate() {
                let entries = tree.map(|tree| tree_at(self.objects, tree)).transpose()?.unwrap_or_default();
                self.count(entries.len())?;
                for TreeEntry { name, mode, object } in entries {
                    names.entry(name).or_default()[side] = Some((mode, object));
                }
            }
            for (name, [from, to]) in names {
                let mut path = path.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(&name);
                let trees = self.entry(&path, from, to);
                open.extend(trees.map(|(from, to)| (path, from, to)));
            }
        }
        Ok(())
    }

    /// Notes the leaves of two entries at the same path, and gives the trees that are to be compared.
    fn entry(
        &mut self,
        path: &[u8],
        from: Option<(TreeMode, ObjectId)>,
        to: Option<(TreeMode, ObjectId)>,
    ) -> Option<(Option<ObjectId>, Option<ObjectId>)> {
        if from == to {
            return None;
        }
        let tree_or_leaf = |entry: Option<(TreeMode, ObjectId)>| match entry {
            Some((TreeMode::Directory, tree)) => (Some(tree), None),
            Some((mode, object)) => (None, Some(Leaf::File(mode, object))),
            None => (None, None),
        };
        let (from, before) = tree_or_leaf(from);
        let (to, after) = tree_or_leaf(to);
        self.before.extend(before.map(|leaf| (path.to_vec(), leaf)));
        self.after.extend(after.map(|leaf| (path.to_vec(), leaf)));
        (from.is_some() || to.is_some()).then_some((from, to))
    }

    fn manifests(&mut self, from: ObjectId, to: ObjectId) -> Result<(), WorkspaceError> {
        let from = manifest_at(self.objects, from)?;
        let to = manifest_at(self.objects, to)?;
        self.count(from.empty_directories.len() + to.empty_directories.len())?;
        for path in from.empty_directories.difference(&to.empty_directories) {
            self.before.insert(path.as_str().into(), Leaf::EmptyDirectory);
        }
        for path in to.empty_directories.difference(&from.empty_directories) {
            self.after.insert(path.as_str().into(), Leaf::EmptyDirectory);
        }
        let mut paths: Vec<_> = from.refused.keys().chain(to.refused.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let of = |refused: Option<&Refused>| refused.map(|refused| (refused.mode, refused.object));
            let bytes = path.as_str().as_bytes();
            if let Some((from, to)) = self.entry(bytes, of(from.refused.get(path)), of(to.refused.get(path)))
            {
                self.trees(bytes.to_vec(), from, to)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, entries: usize) -> Result<(), WorkspaceError> {
        self.entries += entries;
        match self.entries > MOST_ENTRIES {
            true => Err(WorkspaceError::Limit { reason: format!("more than {MOST_ENTRIES} entries differ") }),
            false => Ok(()),
        }
    }

    fn changes(&self) -> Vec<PathChange> {
        let mut changes: BTreeMap<&[u8], ChangeKind> = BTreeMap::new();
        for (path, before) in &self.before {
            let change = match (before, self.after.get(path)) {
                (Leaf::EmptyDirectory, None) if has_below(&self.after, path) => continue,
                (_, None) => ChangeKind::Deleted,
                (before, Some(after)) if before == after => continue,
                (Leaf::File(from, before), Some(Leaf::File(to, after)))
                    if before == after && *from != TreeMode::Link && *to != TreeMode::Link =>
                {
                    ChangeKind::Mode
                }
                (_, Some(_)) => ChangeKind::Modified,
            };
            changes.insert(path, change);
        }
        for (path, after) in &self.after {
            let kept = *after == Leaf::EmptyDirectory && has_below(&self.before, path);
            if !kept && !self.before.contains_key(path) {
                changes.insert(path, ChangeKind::Added);
            }
        }
        let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        changes.into_iter().map(|(path, change)| PathChange { path: shown(path), change }).collect()
    }
}

/// Whether there is a leaf below a path.
fn has_below(leaves: &BTreeMap<Vec<u8>, Leaf>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    leaves.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
}
