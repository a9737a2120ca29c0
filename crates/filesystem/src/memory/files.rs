//! The files of an in-memory filesystem, as a value.

use std::fmt;
use std::sync::Arc;

use super::node::{Directory, FileNode, Lookup};
use crate::FilePath;

/// An immutable snapshot of files in memory. Cloning shares everything.
///
/// It outlives the filesystem that it was taken from: it can be [stored](Self::to_json) and loaded into
/// another one, in another process.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    pub(super) root: Arc<Directory>,
    files: usize,
    bytes: u64,
}

impl MemoryFiles {
    /// Creates an empty set of files.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn from_root(root: Arc<Directory>) -> Self {
        let (files, bytes) = FileNode::Directory(root.clone()).size();
        Self { root, files, bytes }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files
    }

    /// Returns whether there is neither a file nor a directory.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Total size of the files in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Content of the file at a path, if there is one.
    pub fn get(&self, path: &FilePath) -> Option<&Arc<[u8]>> {
        match self.find(path) {
            Lookup::File(file) => Some(&file.bytes),
            Lookup::Directory(_) | Lookup::Nothing | Lookup::BelowFile => None,
        }
    }

    pub(super) fn find(&self, path: &FilePath) -> Lookup<'_> {
        self.root.find(path)
    }

    /// See [`Directory::put`].
    pub(super) fn put(&mut self, path: &FilePath, node: FileNode) {
        let (files, bytes) = node.size();
        let before = self.root.put(path, node);
        self.files += files;
        self.bytes += bytes;
        self.leave(before.as_ref());
    }

    pub(super) fn take(&mut self, path: &FilePath) -> Option<FileNode> {
        let node = self.root.take(path);
        self.leave(node.as_ref());
        node
    }

    fn leave(&mut self, node: Option<&FileNode>) {
        let (files, bytes) = node.map_or((0, 0), FileNode::size);
        self.files -= files;
        self.bytes -= bytes;
    }

    /// Lists every file and every empty directory, in order of their paths' segments.
    pub(super) fn leaves(&self) -> Vec<(String, FileNode)> {
        let mut leaves = Vec::new();
        let mut open = vec![(String::new(), FileNode::Directory(self.root.clone()))];
        while let Some((path, node)) = open.pop() {
            match &node {
                FileNode::Directory(directory) if path.is_empty() || !directory.is_empty() => {
                    let below: Vec<_> = directory
                        .iter()
                        .map(|(name, node)| (super::joined(&path, name), node.clone()))
                        .collect();
                    open.extend(below.into_iter().rev());
                }
                FileNode::Directory(_) | FileNode::File(_) => leaves.push((path, node)),
            }
        }
        leaves
    }
}

impl PartialEq for MemoryFiles {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
            || (self.files, self.bytes) == (other.files, other.bytes) && self.root == other.root
    }
}

impl fmt::Debug for MemoryFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for (path, node) in self.leaves() {
            match node {
                FileNode::File(file) => map.entry(&path, &format_args!("{} bytes", file.bytes.len())),
                FileNode::Directory(_) => map.entry(&path, &format_args!("empty directory")),
            };
        }
        map.finish()
    }
}
