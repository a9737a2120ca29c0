//! References from records to objects, and from objects to objects.
//!
//! A missed reference loses data, so references are recognised generously. Every string in a record that is
//! an object id, alone or as a `blob:` address, counts as a reference, regardless of its field. Every pair of
//! a `tree` and a `manifest` counts as a workspace root. The same holds for strings in a manifest, so nothing
//! here depends on the kind of workspace that wrote it. Unreadable data is an error, not an empty result.
//!
//! The changed paths of a call are the one exception: they name content of its roots, and keep none of it.

use backstitch_core::journal::{RecordBody, WorkspaceRoot};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use backstitch_filesystem::format::decode_tree;
use serde_json::Value;

/// References in a JSON text.
#[derive(Debug, Default)]
pub(crate) struct References {
    pub(crate) roots: Vec<WorkspaceRoot>,
    pub(crate) objects: Vec<ObjectId>,
    /// Those of `objects` that list the paths which a root does not cover.
    pub(crate) coverages: Vec<ObjectId>,
}

impl References {
    /// Finds the references in a record. Text that is not JSON has none.
    pub(crate) fn in_text(text: &str) -> Self {
        let mut named = Self::default();
        if let Ok(mut value) = serde_json::from_str::<Value>(text) {
            forget_changes(&mut value);
            named.visit(&value);
        }
        named
    }

    fn visit(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let id = text.strip_prefix("blob:").unwrap_or(text);
                self.objects.extend(id.parse::<ObjectId>());
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(item)),
            Value::Object(fields) => {
                let id = |name: &str| fields.get(name).and_then(Value::as_str).and_then(|id| id.parse().ok());
                let root = id("tree").zip(id("manifest"));
                self.roots.extend(root.map(|(tree, manifest)| WorkspaceRoot { tree, manifest }));
                self.coverages.extend(id("coverage"));
                let rest = fields
                    .iter()
                    .filter(|(name, _)| root.is_none() || !matches!(name.as_str(), "tree" | "manifest"));
                rest.for_each(|(_, field)| self.visit(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Removes the changed paths from the end of a call. The roots of the call keep that content for as long as it is kept; if the
/// paths did too, nothing could be pruned.
fn forget_changes(record: &mut Value) {
    if record.get("kind").and_then(Value::as_str) == Some("call_finished")
        && let Some(Value::Object(data)) = record.get_mut("data")
    {
        data.remove("changes");
    }
}

/// Workspace roots in a record: the files before it, after it, or as observed.
fn roots_of(body: &RecordBody) -> [Option<WorkspaceRoot>; 2] {
    match body {
        RecordBody::CallStarted(call) => [call.root, None],
        RecordBody::CallFinished(call) => [call.root, call.rescue],
        RecordBody::Rewound(rewound) => [rewound.root, rewound.rescue],
        RecordBody::WorkspaceObserved(observed) => [Some(observed.root), observed.restored],
        _ => [None, None],
    }
}

/// Manifests of the workspace roots in a record.
pub(crate) fn manifests_of(body: &RecordBody) -> impl Iterator<Item = ObjectId> + use<> {
    roots_of(body).into_iter().flatten().map(|root| root.manifest)
}

/// Finds all object ids in a manifest, or returns `None` if it is not JSON.
pub(crate) fn named_in_manifest(bytes: &[u8]) -> Option<Vec<ObjectId>> {
    let mut named = References::default();
    named.visit(&serde_json::from_slice(bytes).ok()?);
    let roots = named.roots.into_iter().flat_map(|root| [root.tree, root.manifest]);
    Some(roots.chain(named.objects).collect())
}

/// The tree of exact modes that a manifest names.
pub(crate) fn modes_in_manifest(bytes: &[u8]) -> Option<ObjectId> {
    let manifest: Value = serde_json::from_slice(bytes).ok()?;
    manifest.get("modes")?.as_str()?.parse().ok()
}

/// Direct references of an object.
pub(crate) fn below(object: &Object) -> Result<Vec<ObjectId>, StoreError> {
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
