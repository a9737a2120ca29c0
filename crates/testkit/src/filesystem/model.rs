//! A plain filesystem to compare with: two sorted collections of paths, and simple rules.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::ports::{Filesystem, FilesystemError, Recursion, WriteMode};
use backstitch_filesystem::FilePath;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::tree::{Leaf, Tree, content, is_below, path};

/// One operation that changes files.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Writes a file.
    Write(String, Vec<u8>, WriteMode),
    /// Deletes a file or directory.
    Delete(String, Recursion),
    /// Creates a directory.
    MakeDirectory(String),
    /// Moves a file or directory.
    Rename(String, String),
}

/// Up to 30 operations on few different paths.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let mode = select(vec![WriteMode::Create, WriteMode::Overwrite, WriteMode::Append]);
    let operation = prop_oneof![
        4 => (path(), content(), mode).prop_map(|(path, bytes, mode)| Operation::Write(path, bytes, mode)),
        2 => (path(), select(vec![Recursion::None, Recursion::All]))
            .prop_map(|(path, recursion)| Operation::Delete(path, recursion)),
        1 => path().prop_map(Operation::MakeDirectory),
        2 => (path(), path()).prop_map(|(from, to)| Operation::Rename(from, to)),
    ];
    vec(operation, 0..30)
}

impl Operation {
    /// Applies the operation to a filesystem.
    pub fn apply(&self, filesystem: &dyn Filesystem) -> Result<(), FilesystemError> {
        let path = |text: &String| FilePath::new(text).expect("operations hold paths");
        match self {
            Self::Write(at, bytes, mode) => filesystem.write_bytes(&path(at), bytes, *mode),
            Self::Delete(at, recursion) => filesystem.delete(&path(at), *recursion),
            Self::MakeDirectory(at) => filesystem.make_directory(&path(at)),
            Self::Rename(from, to) => filesystem.rename(&path(from), &path(to)),
        }
    }
}

/// A model of a filesystem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    files: BTreeMap<String, Vec<u8>>,
    directories: BTreeSet<String>,
}

impl Model {
    /// Applies an operation. Returns whether it was possible.
    pub fn apply(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Write(path, bytes, mode) => {
                let taken = self.files.contains_key(path);
                if self.directories.contains(path)
                    || self.is_below_file(path)
                    || taken && *mode == WriteMode::Create
                {
                    return false;
                }
                self.make_above(path);
                let file = self.files.entry(path.clone()).or_default();
                if *mode != WriteMode::Append {
                    file.clear();
                }
                file.extend_from_slice(bytes);
                true
            }
            Operation::Delete(path, recursion) => {
                if *recursion == Recursion::None && self.holds_something(path) || !self.exists(path) {
                    return false;
                }
                self.files.retain(|other, _| !is_below(other, path));
                self.directories.retain(|other| !is_below(other, path));
                true
            }
            Operation::MakeDirectory(path) => {
                if self.files.contains_key(path) || self.is_below_file(path) {
                    return false;
                }
                self.make_above(path);
                self.directories.insert(path.clone());
                true
            }
            Operation::Rename(from, to) => {
                let above = to.rsplit_once('/').map(|(above, _)| above);
                let has_place = above.is_none_or(|above| self.directories.contains(above));
                if !self.exists(from) || self.exists(to) || !has_place || is_below(to, from) {
                    return false;
                }
                let moved = |path: &String| {
                    if is_below(path, from) { format!("{to}{}", &path[from.len()..]) } else { path.clone() }
                };
                self.files = self.files.iter().map(|(path, bytes)| (moved(path), bytes.clone())).collect();
                self.directories = self.directories.iter().map(moved).collect();
                true
            }
        }
    }

    /// The files and empty directories as a tree.
    pub fn tree(&self) -> Tree {
        let files = self.files.iter().map(|(path, bytes)| (path.clone(), Leaf::file(bytes.clone())));
        let empty = self.directories.iter().filter(|path| !self.holds_something(path));
        files.chain(empty.map(|path| (path.clone(), Leaf::EmptyDirectory))).collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains(path)
    }

    fn holds_something(&self, path: &str) -> bool {
        let mut all = self.files.keys().chain(&self.directories);
        all.any(|other| other != path && is_below(other, path))
    }

    fn is_below_file(&self, path: &str) -> bool {
        self.files.keys().any(|file| file != path && is_below(path, file))
    }

    fn make_above(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
        self.directories.extend(ends);
    }
}
