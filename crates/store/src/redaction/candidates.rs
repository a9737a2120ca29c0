//! Objects that hold a value, and the ways to them.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_filesystem::format::{TreeEntry, TreeMode, decode_tree};

use super::Contents;
use crate::references::{modes_in_manifest, named_in_manifest};

/// All objects of a store that hold a value, in their content or in the names of files.
pub(crate) struct Candidates(HashMap<ObjectId, ObjectKind>);

impl Candidates {
    pub(crate) fn new(found: HashMap<ObjectId, ObjectKind>) -> Self {
        Self(found)
    }

    pub(super) fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter().filter(|(_, kind)| **kind == ObjectKind::Blob).map(|(id, _)| *id)
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter().filter(|(_, kind)| **kind != ObjectKind::Blob).map(|(id, _)| *id)
    }
}

/// Candidates below a workspace root.
#[derive(Default)]
pub(super) struct RootTraces {
    /// Files, and trees with the value in a name.
    pub(super) files: BTreeSet<ObjectId>,
    /// Manifests and lists of modes with the value in a name.
    pub(super) names: BTreeSet<ObjectId>,
}

/// Finds the candidates below trees and roots, each of which is read once.
pub(super) struct CandidateReach<'a> {
    contents: &'a dyn Contents,
    candidates: &'a Candidates,
    trees: HashMap<ObjectId, Rc<BTreeSet<ObjectId>>>,
    roots: HashMap<WorkspaceRoot, Rc<RootTraces>>,
}

impl<'a> CandidateReach<'a> {
    pub(super) fn new(contents: &'a dyn Contents, candidates: &'a Candidates) -> Self {
        Self { contents, candidates, trees: HashMap::new(), roots: HashMap::new() }
    }

    /// Returns whether there are no candidates at all.
    pub(super) fn is_trivial(&self) -> bool {
        self.candidates.0.is_empty()
    }

    /// Returns the object if it is a candidate.
    pub(super) fn candidate(&self, id: ObjectId) -> Option<ObjectId> {
        self.candidates.0.contains_key(&id).then_some(id)
    }

    /// Candidates below a workspace root. What was pruned or lost has none.
    pub(super) fn root(&mut self, root: WorkspaceRoot) -> Result<Rc<RootTraces>, StoreError> {
        if let Some(known) = self.roots.get(&root) {
            return Ok(known.clone());
        }
        let mut found = RootTraces::default();
        found.files.extend(self.tree(root.tree)?.iter());
        found.names.extend(self.candidate(root.manifest));
        if self.contents.kind(root.manifest)?.is_some()
            && let Some(manifest) = self.contents.object(root.manifest)?
        {
            let modes = modes_in_manifest(manifest.bytes());
            if let Some(modes) = modes {
                found.names.extend(self.tree(modes)?.iter());
            }
            let named = named_in_manifest(manifest.bytes()).unwrap_or_default();
            for id in named.into_iter().filter(|id| Some(*id) != modes) {
                match self.contents.kind(id)? {
                    Some(ObjectKind::Blob) => found.files.extend(self.candidate(id)),
                    Some(_) => found.files.extend(self.tree(id)?.iter()),
                    None => {}
                }
            }
        }
        let found = Rc::new(found);
        self.roots.insert(root, found.clone());
        Ok(found)
    }

    /// Candidates in a tree and below it.
    fn tree(&mut self, id: ObjectId) -> Result<Rc<BTreeSet<ObjectId>>, StoreError> {
        let mut open = vec![(id, None::<Vec<TreeEntry>>)];
        while let Some((id, entries)) = open.pop() {
            if self.trees.contains_key(&id) {
                continue;
            }
            let entries = match entries {
                Some(entries) => entries,
                None => self.entries(id)?,
            };
            let is_tree = |entry: &&TreeEntry| entry.mode == TreeMode::Directory;
            let unknown: Vec<ObjectId> = entries
                .iter()
                .filter(is_tree)
                .map(|entry| entry.object)
                .filter(|id| !self.trees.contains_key(id))
                .collect();
            if !unknown.is_empty() {
                open.push((id, Some(entries)));
                open.extend(unknown.into_iter().map(|id| (id, None)));
                continue;
            }
            let mut found: BTreeSet<ObjectId> = self.candidate(id).into_iter().collect();
            for entry in &entries {
                match self.trees.get(&entry.object).filter(|_| entry.mode == TreeMode::Directory) {
                    Some(below) => found.extend(below.iter()),
                    None => found.extend(self.candidate(entry.object)),
                }
            }
            self.trees.insert(id, Rc::new(found));
        }
        Ok(self.trees.get(&id).cloned().unwrap_or_default())
    }

    /// Entries of a tree; none if it is not stored.
    fn entries(&self, id: ObjectId) -> Result<Vec<TreeEntry>, StoreError> {
        if self.contents.kind(id)? != Some(ObjectKind::Tree) {
            return Ok(Vec::new());
        }
        let Some(tree) = self.contents.object(id)? else { return Ok(Vec::new()) };
        let damaged = |error: String| StoreError::DamagedObject { object: id, reason: error };
        decode_tree(tree.bytes()).map_err(|error| damaged(error.to_string()))
    }

    /// Adds the paths of chosen objects in a tree.
    pub(super) fn paths(
        &mut self,
        tree: ObjectId,
        is_chosen: &dyn Fn(&ObjectId) -> bool,
        paths: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut open = vec![(tree, String::new())];
        while let Some((tree, path)) = open.pop() {
            if !self.tree(tree)?.iter().any(is_chosen) {
                continue;
            }
            for entry in self.entries(tree)? {
                let name = String::from_utf8_lossy(&entry.name);
                let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
                match entry.mode {
                    TreeMode::Directory => open.push((entry.object, path)),
                    _ if is_chosen(&entry.object) => drop(paths.insert(path)),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
