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
use crate::format::{Manifest, RefusedEntry, TreeBuilder, TreeMode, empty_tree, git_refuses};

/// Collects the objects below a root that are not stored yet.
pub(super) struct Capture<'a> {
    /// Where objects are looked up. Without it, everything counts as stored.
    objects: Option<&'a dyn Objects>,
    /// Ids that are known to be stored.
    stored: &'a mut HashSet<ObjectId>,
    pub(super) new: Vec<Object>,
    given: HashSet<ObjectId>,
    manifest: Manifest,
}

/// Computes the root of files without collecting its objects.
pub(super) fn root_of(files: &MemoryFiles) -> WorkspaceRoot {
    let root = Capture::new(None, &mut HashSet::new()).root(files);
    root.expect("invariant: no lookup fails if everything counts as stored")
}

impl<'a> Capture<'a> {
    pub(super) fn new(objects: Option<&'a dyn Objects>, stored: &'a mut HashSet<ObjectId>) -> Self {
        Self { objects, stored, new: Vec::new(), given: HashSet::new(), manifest: Manifest::default() }
    }

    /// Computes the root of files and collects its objects.
    pub(super) fn root(&mut self, files: &MemoryFiles) -> Result<WorkspaceRoot, WorkspaceError> {
        self.manifest = Manifest::default();
        self.ordinary(&files.root)?;
        let tree = match summary(&files.root).tree {
            Some(tree) => tree,
            // Git represents an empty directory only at the root.
            None => self.give(empty_tree())?,
        };
        self.exceptions(&files.root, "")?;
        let manifest = self.give(self.manifest.to_object())?;
        Ok(WorkspaceRoot { tree, manifest })
    }

    fn is_stored(&mut self, id: ObjectId) -> Result<bool, WorkspaceError> {
        if self.stored.contains(&id) {
            return Ok(true);
        }
        let stored = self.objects.map_or(Ok(true), |objects| objects.contains(id));
        let stored = stored.map_err(WorkspaceError::Objects)?;
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
        self.give(ordinary_entries(directory).0.build())?;
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
        let mut builder = TreeBuilder::default();
        for (name, node) in directory.iter() {
            if let Some(entry) = self.capture_refused(node, &super::joined(path, name))? {
                builder.push(name.as_bytes(), entry.mode, entry.object);
            }
        }
        if builder.is_empty() {
            return Ok(None);
        }
        let object = self.give(builder.build())?;
        Ok(Some(RefusedEntry { mode: TreeMode::Directory, object }))
    }
}

/// Computes the summary of a directory.
pub(super) fn summary(directory: &Directory) -> Summary {
    directory.summary(|| {
        let (builder, exceptional) = ordinary_entries(directory);
        let tree = (!builder.is_empty()).then(|| builder.build().id());
        Summary { tree, exceptional }
    })
}

/// Entries that git accepts, and whether there are others, here or below.
fn ordinary_entries(directory: &Directory) -> (TreeBuilder, bool) {
    let (mut builder, mut exceptional) = (TreeBuilder::default(), false);
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
            Some(object) => builder.push(name.as_bytes(), mode, object),
            None => exceptional = true,
        }
    }
    (builder, exceptional)
}

fn is_refused(name: &str, node: &FileNode) -> bool {
    let mode = match node {
        FileNode::File(file) => file.mode(),
        FileNode::Directory(_) => TreeMode::Directory,
    };
    git_refuses(name.as_bytes(), mode)
}
