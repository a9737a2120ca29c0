//! Reachability: from records to roots, and from roots to everything below them.
//!
//! A missed reference loses data, so references are recognised generously. Every string in a record that is
//! an object id, alone or as a `blob:` address, counts as a reference, regardless of its field. Every pair of
//! a `tree` and a `manifest` counts as a workspace root. The same holds for strings in a manifest, so nothing
//! here depends on the kind of workspace that wrote it. Unreadable data is an error, not an empty result.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::journal::{RecordBody, WorkspaceRoot};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_filesystem::format::decode_tree;
use rusqlite::Connection;
use serde_json::Value;

use super::error::Failure;
use super::objects::{self, Presence, presence};

/// References in a JSON text.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) roots: Vec<WorkspaceRoot>,
    pub(super) objects: Vec<ObjectId>,
}

impl References {
    /// Finds the references in a record. Text that is not JSON has none.
    pub(super) fn in_text(text: &str) -> Self {
        let mut named = Self::default();
        if let Ok(value) = serde_json::from_str(text) {
            named.look(&value);
        }
        named
    }

    fn look(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let id = text.strip_prefix("blob:").unwrap_or(text);
                self.objects.extend(id.parse::<ObjectId>());
            }
            Value::Array(items) => items.iter().for_each(|item| self.look(item)),
            Value::Object(fields) => {
                let id = |name: &str| fields.get(name).and_then(Value::as_str).and_then(|id| id.parse().ok());
                let root = id("tree").zip(id("manifest"));
                self.roots.extend(root.map(|(tree, manifest)| WorkspaceRoot { tree, manifest }));
                let rest = fields
                    .iter()
                    .filter(|(name, _)| root.is_none() || !matches!(name.as_str(), "tree" | "manifest"));
                rest.for_each(|(_, field)| self.look(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Workspace roots in a record: the files before it, after it, or as observed.
fn roots_of(body: &RecordBody) -> [Option<WorkspaceRoot>; 2] {
    match body {
        RecordBody::CallStarted(call) => [call.root, None],
        RecordBody::CallFinished(call) => [call.root, call.rescue],
        RecordBody::Rewound(rewound) => [rewound.root, rewound.rescue],
        RecordBody::WorkspaceObserved(observed) => [Some(observed.root), None],
        _ => [None, None],
    }
}

/// Manifests of the workspace roots in a record.
pub(super) fn manifests_of(body: &RecordBody) -> impl Iterator<Item = ObjectId> + use<> {
    roots_of(body).into_iter().flatten().map(|root| root.manifest)
}

/// Finds all object ids in a manifest, or returns `None` if it is not JSON.
pub(super) fn named_in_manifest(bytes: &[u8]) -> Option<Vec<ObjectId>> {
    let mut named = References::default();
    named.look(&serde_json::from_slice(bytes).ok()?);
    let roots = named.roots.into_iter().flat_map(|root| [root.tree, root.manifest]);
    Some(roots.chain(named.objects).collect())
}

/// Direct references of an object.
pub(super) fn below(object: &Object) -> Result<Vec<ObjectId>, Failure> {
    let damaged = |reason: String| StoreError::DamagedObject { object: object.id(), reason };
    match object.kind() {
        ObjectKind::Tree => {
            let entries = decode_tree(object.bytes()).map_err(|error| damaged(error.to_string()))?;
            Ok(entries.into_iter().map(|entry| entry.object).collect())
        }
        ObjectKind::Commit => {
            let text = String::from_utf8_lossy(object.bytes());
            let header = text.lines().take_while(|line| !line.is_empty());
            let names = header.filter_map(|line| line.split_once(' '));
            let names = names.filter(|(word, _)| matches!(*word, "tree" | "parent"));
            Ok(names.filter_map(|(_, id)| id.parse().ok()).collect())
        }
        _ => Ok(Vec::new()),
    }
}

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
}

impl<'a> Walk<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self::resume(connection, HashSet::new())
    }

    /// Continues an earlier walk over a store that may have grown since then.
    pub(super) fn resume(connection: &'a Connection, seen: HashSet<ObjectId>) -> Self {
        Self { connection, seen, fresh: Vec::new(), missing: BTreeSet::new(), lost: BTreeSet::new() }
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
