//! Reachability: from records to roots, and from roots to everything below them.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;

use crate::packed::Presence;
use crate::references::{below, named_in_manifest};

/// The objects of a store, for reading.
pub(crate) trait StoredObjects {
    /// Kind of an object, or `None` if it has no stored content.
    fn stored_kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError>;

    /// State of an object.
    fn presence(&self, id: ObjectId) -> Result<Presence, StoreError>;

    /// Content of an object, or `None` if there is no such object.
    fn stored_object(&self, id: ObjectId) -> Result<Option<Object>, StoreError>;
}

/// Marks everything reachable from the added references.
pub(crate) struct Walk<'a> {
    objects: &'a dyn StoredObjects,
    /// Reached objects that are stored.
    pub(crate) seen: HashSet<ObjectId>,
    /// The same in the order of discovery, since the caller last drained it.
    pub(crate) fresh: Vec<ObjectId>,
    /// Objects that a stored object names and that are not stored.
    pub(crate) missing: BTreeSet<ObjectId>,
    /// Objects that a stored object names and that an earlier salvage lost.
    pub(crate) lost: BTreeSet<ObjectId>,
    /// Objects that a stored object names and whose content was redacted.
    pub(crate) redacted: BTreeSet<ObjectId>,
    /// Manifests that were read, with everything that they name.
    manifests: HashSet<ObjectId>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(objects: &'a dyn StoredObjects) -> Self {
        Self::resume(objects, HashSet::new())
    }

    /// Continues an earlier walk over a store that may have grown since then.
    pub(crate) fn resume(objects: &'a dyn StoredObjects, seen: HashSet<ObjectId>) -> Self {
        Self {
            objects,
            seen,
            fresh: Vec::new(),
            missing: BTreeSet::new(),
            lost: BTreeSet::new(),
            redacted: BTreeSet::new(),
            manifests: HashSet::new(),
        }
    }

    /// Adds a reference of a record and everything below it. An id that is not stored is ignored, because it
    /// may not be an object at all.
    pub(crate) fn add(&mut self, id: ObjectId) -> Result<(), StoreError> {
        match self.objects.stored_kind(id)? {
            Some(_) => self.descend(id),
            None => Ok(()),
        }
    }

    /// Adds a workspace root and everything below it.
    pub(crate) fn add_root(&mut self, root: WorkspaceRoot) -> Result<(), StoreError> {
        self.add(root.tree)?;
        // A blob that was reached as a file may also be a manifest, so it is read even if it was seen, but only once.
        if self.manifests.contains(&root.manifest) {
            return Ok(());
        }
        if self.objects.stored_kind(root.manifest)?.is_none() {
            return Ok(());
        }
        self.mark(root.manifest);
        let Some(manifest) = self.objects.stored_object(root.manifest)? else { return Ok(()) };
        let named = named_in_manifest(manifest.bytes());
        let reason = || "it is not a workspace manifest".to_owned();
        let named =
            named.ok_or_else(|| StoreError::DamagedObject { object: root.manifest, reason: reason() })?;
        named.into_iter().try_for_each(|id| self.descend(id))?;
        self.manifests.insert(root.manifest);
        Ok(())
    }

    fn mark(&mut self, id: ObjectId) {
        if self.seen.insert(id) {
            self.fresh.push(id);
        }
    }

    fn descend(&mut self, id: ObjectId) -> Result<(), StoreError> {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.seen.contains(&id) {
                continue;
            }
            match self.objects.stored_kind(id)? {
                None => match self.objects.presence(id)? {
                    Presence::Lost => drop(self.lost.insert(id)),
                    Presence::Redacted => drop(self.redacted.insert(id)),
                    _ => drop(self.missing.insert(id)),
                },
                Some(ObjectKind::Blob) => self.mark(id),
                Some(_) => {
                    if let Some(object) = self.objects.stored_object(id)? {
                        open.extend(below(&object)?);
                    }
                    self.mark(id);
                }
            }
        }
        Ok(())
    }
}
