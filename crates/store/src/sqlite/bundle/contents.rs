//! The objects of a selection, in the order in which they are written: each after those that it names.
//!
//! Every stored object is complete then, whenever the writing is interrupted. Objects without content (pruned,
//! redacted, lost) are moved as the marks that say so.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{BundleError, StoreError};
use backstitch_filesystem::format::{MAX_DEPTH, TreeMode, decode_tree};
use rusqlite::Connection;

use super::error::invalid;
use super::selection::{NamedObjects, Selection};
use crate::references::{below, named_in_manifest};
use crate::sqlite::objects::{self, Presence, StoredSize, presence, stored_size};

/// Limits for content of unknown origin.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentLimits {
    /// Maximum size of one object in bytes.
    pub(super) object: u64,
    /// Maximum size of all objects in bytes.
    pub(super) total: u64,
    /// Maximum number of paths below one workspace root, and of bytes in them.
    pub(super) paths: u64,
    pub(super) files: u64,
}

impl ContentLimits {
    pub(super) const NONE: Self =
        Self { object: u64::MAX, total: u64::MAX, paths: u64::MAX, files: u64::MAX };

    /// Limits for a bundle of this size in bytes. A bundle is compressed, so its content is larger, but not
    /// without limit.
    pub(super) fn of_bundle(size: u64) -> Self {
        let total = size.saturating_mul(100).max(4 << 30);
        Self { object: 1 << 30, total, paths: 10_000_000, files: total }
    }
}

/// An object to move.
#[derive(Debug, Clone, Copy)]
pub(super) struct MovedObject {
    pub(super) id: ObjectId,
    pub(super) presence: Presence,
}

/// All objects of a selection.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// In the order of writing.
    pub(super) objects: Vec<MovedObject>,
    /// Total size of the objects in bytes.
    pub(super) bytes: u64,
}

/// Size of a tree if it were written to a directory.
#[derive(Debug, Clone, Copy, Default)]
struct ExpandedTree {
    depth: usize,
    paths: u64,
    bytes: u64,
}

struct Walk<'a> {
    connection: &'a Connection,
    limits: ContentLimits,
    manifests: BTreeSet<ObjectId>,
    found: Contents,
    seen: HashSet<ObjectId>,
    sizes: HashMap<ObjectId, u64>,
    trees: HashMap<ObjectId, ExpandedTree>,
}

impl Contents {
    /// Finds all objects of a selection. Fails if one is missing, or if a limit is exceeded.
    pub(super) fn of(
        connection: &Connection,
        selection: &Selection,
        limits: ContentLimits,
    ) -> Result<Self, BundleError> {
        let NamedObjects { roots, needed, mentioned } = &selection.named;
        let mut walk = Walk {
            connection,
            limits,
            manifests: roots.iter().map(|(_, manifest)| *manifest).collect(),
            found: Self::default(),
            seen: HashSet::new(),
            sizes: HashMap::new(),
            trees: HashMap::new(),
        };
        for (id, (session, position)) in needed {
            if presence(connection, *id)? == Presence::Absent {
                let reason =
                    format!("record {position} of session {session} needs object {id}, which is missing");
                return Err(invalid(reason));
            }
            walk.add(*id)?;
        }
        let roots = roots.iter().flat_map(|(tree, manifest)| [tree, manifest]);
        for id in roots.chain(mentioned) {
            // An id that is not stored may be no object at all.
            if presence(connection, *id)? != Presence::Absent {
                walk.add(*id)?;
            }
        }
        Ok(walk.found)
    }
}

impl Walk<'_> {
    /// Adds an object after everything below it.
    fn add(&mut self, id: ObjectId) -> Result<(), BundleError> {
        let mut open = vec![(id, None::<Object>)];
        while let Some((id, read)) = open.pop() {
            if let Some(object) = read {
                // Everything below it was added.
                self.finish(&object)?;
                continue;
            }
            if !self.seen.insert(id) {
                continue;
            }
            let Some(size) = self.size(id)? else {
                let found = presence(self.connection, id)?;
                if found == Presence::Absent {
                    return Err(StoreError::MissingObject { object: id }.into());
                }
                self.found.objects.push(MovedObject { id, presence: found });
                continue;
            };
            let is_manifest = self.manifests.contains(&id);
            if size.kind == ObjectKind::Blob && !is_manifest {
                self.found.objects.push(MovedObject { id, presence: Presence::Stored });
                continue;
            }
            let object = objects::get(self.connection, id)?;
            let object = object.ok_or(StoreError::MissingObject { object: id })?;
            let mut named = below(&object)?;
            if is_manifest {
                let reason = "it is not a workspace manifest".to_owned();
                let damaged = StoreError::DamagedObject { object: id, reason };
                named.extend(named_in_manifest(object.bytes()).ok_or(damaged)?);
            }
            open.push((id, Some(object)));
            open.extend(named.into_iter().filter(|id| !self.seen.contains(id)).map(|id| (id, None)));
        }
        Ok(())
    }

    /// Returns the size of an object, or `None` if it has no content.
    fn size(&mut self, id: ObjectId) -> Result<Option<StoredSize>, BundleError> {
        let Some(size) = stored_size(self.connection, id)? else { return Ok(None) };
        check(|| format!("object {id}"), size.length, "bytes", self.limits.object)?;
        self.sizes.insert(id, size.length);
        self.found.bytes = self.found.bytes.saturating_add(size.length);
        check(|| "its content".to_owned(), self.found.bytes, "bytes", self.limits.total)?;
        Ok(Some(size))
    }

    fn finish(&mut self, object: &Object) -> Result<(), BundleError> {
        let id = object.id();
        if object.kind() == ObjectKind::Tree {
            let expanded = self.expanded(object)?;
            let what = || format!("tree {id}");
            check(what, expanded.depth as u64, "levels", MAX_DEPTH as u64 + 1)?;
            check(what, expanded.paths, "paths", self.limits.paths)?;
            check(what, expanded.bytes, "bytes of files", self.limits.files)?;
            self.trees.insert(id, expanded);
        }
        self.found.objects.push(MovedObject { id, presence: Presence::Stored });
        Ok(())
    }

    /// Computes the size of a tree in a directory. A small number of trees that name each other several times
    /// would fill any disk.
    fn expanded(&self, tree: &Object) -> Result<ExpandedTree, BundleError> {
        let entries = decode_tree(tree.bytes())
            .map_err(|error| StoreError::DamagedObject { object: tree.id(), reason: error.to_string() })?;
        let mut sum = ExpandedTree { depth: 1, ..ExpandedTree::default() };
        for entry in entries {
            let one = match entry.mode {
                TreeMode::Directory => self.trees.get(&entry.object).copied().unwrap_or_default(),
                _ => {
                    let bytes = self.sizes.get(&entry.object).copied().unwrap_or_default();
                    ExpandedTree { bytes, ..ExpandedTree::default() }
                }
            };
            sum.depth = sum.depth.max(one.depth + 1);
            sum.paths = sum.paths.saturating_add(one.paths).saturating_add(1);
            sum.bytes = sum.bytes.saturating_add(one.bytes);
        }
        Ok(sum)
    }
}

fn check(what: impl FnOnce() -> String, found: u64, unit: &str, limit: u64) -> Result<(), BundleError> {
    if found <= limit {
        return Ok(());
    }
    Err(BundleError::Excessive { what: what(), found: format!("{found} {unit}"), limit })
}
