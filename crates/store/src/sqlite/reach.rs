//! Reachability: from records to roots, and from roots to everything below them.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::error::Failure;
use super::objects::{self, Presence, presence};
use crate::references::{below, named_in_manifest};

/// Marks everything reachable from the added references.
pub(super) struct Walk<'a> {
    connection: &'a Connection,
    /// Reached objects that are stored.
    pub(super) seen: HashSet<ObjectId>,
    /// The same in the order of discovery, since the caller last drained it.
    pub(super) fresh: Vec<ObjectId>,
    /// Objects that a stored object names and that are not stored.
    pub(super) missing: BTreeSet<ObjectId>,
    /// Objects that a stored object names and that an earlier salvage lost.
    pub(super) lost: BTreeSet<ObjectId>,
    /// Objects that a stored object names and whose content was redacted.
    pub(super) redacted: BTreeSet<ObjectId>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self::resume(connection, HashSet::new())
    }

    /// Continues an earlier walk over a store that may have grown since then.
    pub(super) fn resume(connection: &'a Connection, seen: HashSet<ObjectId>) -> Self {
        Self {
            connection,
            seen,
            fresh: Vec::new(),
            missing: BTreeSet::new(),
            lost: BTreeSet::new(),
            redacted: BTreeSet::new(),
        }
    }

    /// Adds a reference of a record and everything below it. An id that is not stored is ignored, because it
    /// may not be an object at all.
    pub(super) fn add(&mut self, id: ObjectId) -> Result<(), Failure> {
        match objects::stored_kind(self.connection, id)? {
            Some(_) => self.descend(id),
            None => Ok(()),
        }
    }

    /// Adds a workspace root and everything below it.
    pub(super) fn add_root(&mut self, root: WorkspaceRoot) -> Result<(), Failure> {
        self.add(root.tree)?;
        // A blob that was reached as a file may also be a manifest, so it is read even if it was seen.
        if objects::stored_kind(self.connection, root.manifest)?.is_none() {
            return Ok(());
        }
        self.mark(root.manifest);
        let Some(manifest) = objects::get(self.connection, root.manifest)? else { return Ok(()) };
        let named = named_in_manifest(manifest.bytes());
        let reason = || "it is not a workspace manifest".to_owned();
        let named =
            named.ok_or_else(|| StoreError::DamagedObject { object: root.manifest, reason: reason() })?;
        named.into_iter().try_for_each(|id| self.descend(id))
    }

    fn mark(&mut self, id: ObjectId) {
        if self.seen.insert(id) {
            self.fresh.push(id);
        }
    }

    fn descend(&mut self, id: ObjectId) -> Result<(), Failure> {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.seen.contains(&id) {
                continue;
            }
            match objects::stored_kind(self.connection, id)? {
                None => match presence(self.connection, id)? {
                    Presence::Lost => drop(self.lost.insert(id)),
                    Presence::Redacted => drop(self.redacted.insert(id)),
                    _ => drop(self.missing.insert(id)),
                },
                Some(ObjectKind::Blob) => self.mark(id),
                Some(_) => {
                    if let Some(object) = objects::get(self.connection, id)? {
                        open.extend(below(&object)?);
                    }
                    self.mark(id);
                }
            }
        }
        Ok(())
    }
}
