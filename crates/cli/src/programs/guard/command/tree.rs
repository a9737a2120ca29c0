//! The directories of a workspace that are covered, for watching and for a quick look.
//!
//! This decides only when to capture. What is captured, and what is covered, the workspace decides itself.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, Metadata};
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A directory with what is not looked at in it.
#[derive(Debug, Clone)]
pub(super) struct CoveredTree {
    root: PathBuf,
    /// The directory of the store, which may lie inside.
    store: PathBuf,
    uncovered: HashSet<PathBuf>,
}

impl CoveredTree {
    pub(super) fn new(root: &Path, store: &Path, uncovered: &[String]) -> Self {
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        let mut tree = Self { root: root.to_owned(), store, uncovered: HashSet::new() };
        tree.set_uncovered(uncovered);
        tree
    }

    /// Replaces the paths that are not covered.
    pub(super) fn set_uncovered(&mut self, paths: &[String]) {
        self.uncovered = paths.iter().map(|path| self.root.join(path)).collect();
        self.uncovered.insert(self.root.join(".git"));
        self.uncovered.insert(self.store.clone());
    }

    /// Whether a directory is looked at.
    pub(super) fn covers(&self, path: &Path) -> bool {
        !path.ancestors().take_while(|above| *above != self.root).any(|above| self.uncovered.contains(above))
    }

    /// Returns all directories that are covered, the root first.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.directories_below(&self.root)
    }

    /// Returns a directory and those below it.
    pub(super) fn directories_below(&self, directory: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        self.visit(directory, |path, found| {
            if found.is_dir() {
                all.push(path.to_owned());
            }
        });
        all
    }

    /// Returns a number that differs if a file was added, removed or changed, as far as its metadata shows.
    pub(super) fn stamp(&self) -> u64 {
        let mut sum = 0_u64;
        self.visit(&self.root, |path, found| {
            let mut hasher = DefaultHasher::new();
            path.hash(&mut hasher);
            (found.ino(), found.mode()).hash(&mut hasher);
            if !found.is_dir() {
                (found.size(), found.mtime(), found.mtime_nsec()).hash(&mut hasher);
                (found.ctime(), found.ctime_nsec()).hash(&mut hasher);
            }
            // Directories are read in no certain order.
            sum = sum.wrapping_add(hasher.finish());
        });
        sum
    }

    /// Visits a directory and everything below it that is covered. What cannot be read is left out.
    fn visit(&self, directory: &Path, mut visitor: impl FnMut(&Path, &Metadata)) {
        let mut open = vec![directory.to_owned()];
        while let Some(path) = open.pop() {
            if self.uncovered.contains(&path) {
                continue;
            }
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            visitor(&path, &found);
            if found.is_dir()
                && let Ok(entries) = fs::read_dir(&path)
            {
                open.extend(entries.flatten().map(|entry| entry.path()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_covered_changes_the_stamp() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for directory in ["src/deep", ".git/objects", "target", "own"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        let tree = CoveredTree::new(&root, &root.join("own"), &["target".to_owned()]);
        let mut known = tree.directories();
        known.sort();
        assert_eq!(known, [root.clone(), root.join("src"), root.join("src/deep")]);
        assert!(tree.covers(&root.join("src/deep")) && !tree.covers(&root.join("target/debug")));
        let before = tree.stamp();
        fs::write(root.join("target/x"), "x").unwrap();
        fs::write(root.join(".git/x"), "x").unwrap();
        fs::write(root.join("own/x"), "x").unwrap();
        assert_eq!(tree.stamp(), before);
        fs::write(root.join("src/x"), "x").unwrap();
        let added = tree.stamp();
        assert_ne!(added, before);
        fs::remove_file(root.join("src/x")).unwrap();
        assert_ne!(tree.stamp(), added);
    }
}
