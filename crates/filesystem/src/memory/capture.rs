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
        let tree = match self.directory(&files.root, "", false)? {
            Some(tree) => tree,
            // Git represents an empty directory only at the root.
            None => self.give(empty_tree())?,
        };
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

    /// Collects the objects of a directory and what the manifest has to say about it. Returns its tree, if git represents
    /// anything of it. `in_refused` is true below a name that git refuses, where all names are accepted.
    fn directory(
        &mut self,
        directory: &Directory,
        path: &str,
        in_refused: bool,
    ) -> Result<Option<ObjectId>, WorkspaceError> {
        let Summary { tree, exceptional } = summary(directory);
        let is_known = match tree.filter(|_| !in_refused) {
            Some(tree) => self.given.contains(&tree) || self.is_stored(tree)?,
            None => false,
        };
        if is_known && !exceptional {
            return Ok(tree);
        }
        if directory.is_empty() && !path.is_empty() {
            self.manifest.empty_directories.insert(path.as_bytes().to_vec());
        }
        let mut builder = TreeBuilder::default();
        for (name, node) in directory.iter() {
            let path = super::joined(path, name);
            let is_refused = !in_refused && is_refused(name, node);
            let (mode, object) = match node {
                FileNode::File(file) if is_known && !is_refused => (file.mode(), Some(file.blob().id())),
                FileNode::File(file) => (file.mode(), Some(self.give(file.blob().clone())?)),
                FileNode::Directory(below) => {
                    (TreeMode::Directory, self.directory(below, &path, in_refused || is_refused)?)
                }
            };
            let Some(object) = object else { continue };
            if is_refused {
                self.manifest.refused.insert(path.into_bytes(), RefusedEntry { mode, object });
            } else {
                builder.push(name.as_bytes(), mode, object);
            }
        }
        if builder.is_empty() {
            return Ok(None);
        }
        self.give(builder.build()).map(Some)
    }
}

/// Computes the summary of a directory.
pub(super) fn summary(directory: &Directory) -> Summary {
    directory.summary(|| {
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
        let tree = (!builder.is_empty()).then(|| builder.build().id());
        Summary { tree, exceptional }
    })
}

fn is_refused(name: &str, node: &FileNode) -> bool {
    let mode = match node {
        FileNode::File(file) => file.mode(),
        FileNode::Directory(_) => TreeMode::Directory,
    };
    git_refuses(name.as_bytes(), mode)
}
