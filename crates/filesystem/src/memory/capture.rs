//! Captures files in memory as a root and its objects.
//!
//! Each directory caches the id of its tree, so a capture costs only the changes since the last one. A tree
//! that is stored already is not entered: everything below it was stored with it.

use std::collections::HashSet;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::MemoryFiles;
use super::node::{Directory, FileNode, Summary};
use crate::format::{Manifest, RefusedEntry, TreeEntry, TreeMode, git_refuses, tree_object};

/// Collects the objects below a root that are not stored yet.
pub(super) struct Capture<'a> {
    pub(super) objects: &'a dyn Objects,
    /// Ids that are known to be stored.
    pub(super) stored: &'a mut HashSet<ObjectId>,
    pub(super) new: Vec<Object>,
    given: HashSet<ObjectId>,
    manifest: Manifest,
}

/// Computes the root of files without collecting its objects.
pub(super) fn root_of(files: &MemoryFiles) -> WorkspaceRoot {
    struct Everything;
    impl Objects for Everything {
        fn get(&self, _: ObjectId) -> Result<Option<Object>, backstitch_core::session::BoxError> {
            Ok(None)
        }

        fn contains(&self, _: ObjectId) -> Result<bool, backstitch_core::session::BoxError> {
            Ok(true)
        }
    }
    Capture::new(&Everything, &mut HashSet::new())
        .root(files)
        .expect("invariant: no lookup fails if everything counts as stored")
}

impl<'a> Capture<'a> {
    pub(super) fn new(objects: &'a dyn Objects, stored: &'a mut HashSet<ObjectId>) -> Self {
        Self { objects, stored, new: Vec::new(), given: HashSet::new(), manifest: Manifest::default() }
    }

    /// Computes the root of files and collects its objects.
    pub(super) fn root(&mut self, files: &MemoryFiles) -> Result<WorkspaceRoot, WorkspaceError> {
        self.manifest = Manifest::default();
        self.ordinary(&files.root)?;
        let tree = match summary(&files.root).tree {
            Some(tree) => tree,
            // Git represents an empty directory only at the root.
            None => self.give(tree_of(&[]))?,
        };
        self.exceptions(&files.root, "")?;
        let manifest = self.give(self.manifest.to_object())?;
        Ok(WorkspaceRoot { tree, manifest })
    }

    fn is_stored(&mut self, id: ObjectId) -> Result<bool, WorkspaceError> {
        if self.stored.contains(&id) {
            return Ok(true);
        }
        let stored = self.objects.contains(id).map_err(WorkspaceError::Objects)?;
        if stored {
            self.stored.insert(id);
        }
        Ok(stored)
    }

    fn give(&mut self, object: Object) -> Result<ObjectId, WorkspaceError> {
        let id = object.id();
        if self.given.insert(id) && !self.is_stored(id)? {
            self.new.push(object);
        }
        Ok(id)
    }

    /// Collects the objects of a directory that git accepts.
    fn ordinary(&mut self, directory: &Directory) -> Result<(), WorkspaceError> {
        let Some(tree) = summary(directory).tree else { return Ok(()) };
        if self.given.contains(&tree) || self.is_stored(tree)? {
            return Ok(());
        }
        for (name, node) in directory.iter() {
            match node {
                _ if is_refused(name, node) => {}
                FileNode::File(file) => drop(self.give(file.blob().clone())?),
                FileNode::Directory(below) => self.ordinary(below)?,
            }
        }
        self.give(tree_of(&ordinary_entries(directory).0))?;
        Ok(())
    }

    /// Finds and collects the entries that git cannot represent.
    fn exceptions(&mut self, directory: &Directory, path: &str) -> Result<(), WorkspaceError> {
        if !summary(directory).exceptional {
            return Ok(());
        }
        for (name, node) in directory.iter() {
            let path = super::joined(path, name);
            match node {
                _ if is_refused(name, node) => {
                    if let Some(refused) = self.capture_refused(node, &path)? {
                        self.manifest.refused.insert(path.into_bytes(), refused);
                    }
                }
                FileNode::File(_) => {}
                FileNode::Directory(below) if below.is_empty() => {
                    self.manifest.empty_directories.insert(path.into_bytes());
                }
                FileNode::Directory(below) => self.exceptions(below, &path)?,
            }
        }
        Ok(())
    }

    /// Collects an entry and everything below it, regardless of names.
    fn capture_refused(
        &mut self,
        node: &FileNode,
        path: &str,
    ) -> Result<Option<RefusedEntry>, WorkspaceError> {
        let directory = match node {
            FileNode::File(file) => {
                let object = self.give(file.blob().clone())?;
                return Ok(Some(RefusedEntry { mode: file.mode(), object }));
            }
            FileNode::Directory(directory) => directory,
        };
        if directory.is_empty() {
            self.manifest.empty_directories.insert(path.as_bytes().to_vec());
        }
        let mut entries = Vec::new();
        for (name, node) in directory.iter() {
            if let Some(RefusedEntry { mode, object }) =
                self.capture_refused(node, &super::joined(path, name))?
            {
                entries.push(TreeEntry { name: name.as_bytes().to_vec(), mode, object });
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let object = self.give(tree_of(&entries))?;
        Ok(Some(RefusedEntry { mode: TreeMode::Directory, object }))
    }
}

/// Computes the summary of a directory.
pub(super) fn summary(directory: &Directory) -> Summary {
    directory.summary(|| {
        let (entries, exceptional) = ordinary_entries(directory);
        let tree = (!entries.is_empty()).then(|| tree_of(&entries).id());
        Summary { tree, exceptional }
    })
}

/// Entries that git accepts, and whether there are others, here or below.
fn ordinary_entries(directory: &Directory) -> (Vec<TreeEntry>, bool) {
    let (mut entries, mut exceptional) = (Vec::new(), false);
    for (name, node) in directory.iter() {
        let (mode, object) = match node {
            _ if is_refused(name, node) => (TreeMode::File, None),
            FileNode::File(file) => (file.mode(), Some(file.blob().id())),
            FileNode::Directory(below) => {
                let summary = summary(below);
                exceptional |= summary.exceptional;
                (TreeMode::Directory, summary.tree)
            }
        };
        match object {
            Some(object) => entries.push(TreeEntry { name: name.as_bytes().to_vec(), mode, object }),
            None => exceptional = true,
        }
    }
    (entries, exceptional)
}

fn is_refused(name: &str, node: &FileNode) -> bool {
    let mode = match node {
        FileNode::File(file) => file.mode(),
        FileNode::Directory(_) => TreeMode::Directory,
    };
    git_refuses(name.as_bytes(), mode)
}

fn tree_of(entries: &[TreeEntry]) -> Object {
    tree_object(entries).expect("invariant: names in paths are valid in trees")
}
