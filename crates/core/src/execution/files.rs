//! Files as a part of execution state.
//!
//! A [`WorkspaceResource`] makes any [`Workspace`] snapshotable by its root. Objects of the root that no
//! store holds yet are part of the snapshot, so it can be restored wherever the objects of the store can be
//! read.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::snapshotable::{LiveSnapshot, PreparedRestore, ResourceSnapshot, Snapshotable};
use crate::journal::WorkspaceRoot;
use crate::object::{Object, ObjectId, ObjectKind};
use crate::ports::{Workspace, WorkspaceCapture};
use crate::session::BoxError;

/// The state of a workspace's files: everything that another process needs in addition to the objects of the
/// store.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceState {
    /// State of the files.
    pub root: WorkspaceRoot,
    /// The object that lists the paths that the root does not cover.
    pub coverage: Option<ObjectId>,
    /// Objects of the root that were not stored when it was captured.
    pub objects: Vec<Object>,
}

#[derive(Serialize, Deserialize)]
struct StoredState {
    root: WorkspaceRoot,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coverage: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<StoredObject>,
}

#[derive(Serialize, Deserialize)]
struct StoredObject {
    kind: ObjectKind,
    base64: String,
}

impl WorkspaceState {
    /// Creates a state whose objects are stored.
    pub fn stored(root: WorkspaceRoot, coverage: Option<ObjectId>) -> Self {
        Self { root, coverage, objects: Vec::new() }
    }

    /// Decodes the output of [`LiveSnapshot::to_json`].
    pub fn from_json(value: Value) -> Result<Self, BoxError> {
        let StoredState { root, coverage, objects } = serde_json::from_value(value)?;
        let objects = objects.into_iter().map(|one| Ok(Object::new(one.kind, STANDARD.decode(one.base64)?)));
        Ok(Self { root, coverage, objects: objects.collect::<Result<_, base64::DecodeError>>()? })
    }
}

impl From<WorkspaceCapture> for WorkspaceState {
    fn from(captured: WorkspaceCapture) -> Self {
        let WorkspaceCapture { root, mut objects, coverage, .. } = captured;
        let id = coverage.as_ref().map(Object::id);
        objects.extend(coverage);
        Self { root, coverage: id, objects }
    }
}

impl LiveSnapshot for WorkspaceState {
    fn to_json(&self) -> Result<Value, BoxError> {
        let objects = self.objects.iter();
        let objects =
            objects.map(|one| StoredObject { kind: one.kind(), base64: STANDARD.encode(one.bytes()) });
        let stored = StoredState { root: self.root, coverage: self.coverage, objects: objects.collect() };
        Ok(serde_json::to_value(stored)?)
    }
}

/// A workspace as a part of execution state. Clones share one workspace.
#[derive(Clone)]
pub struct WorkspaceResource {
    workspace: Arc<dyn Workspace>,
}

impl WorkspaceResource {
    /// Stored name of the state.
    pub const NAME: &'static str = "workspace";

    /// Creates a resource for this workspace.
    pub fn new(workspace: Arc<dyn Workspace>) -> Self {
        Self { workspace }
    }
}

impl Snapshotable for WorkspaceResource {
    fn snapshot_name(&self) -> &'static str {
        Self::NAME
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        Ok(ResourceSnapshot::live(WorkspaceState::from(self.workspace.capture()?)))
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        let state = match snapshot.downcast::<WorkspaceState>() {
            Some(state) => state.clone(),
            None => WorkspaceState::from_json(snapshot.to_json()?)?,
        };
        // Missing objects are detected before anything is changed.
        self.workspace.check_restorable(state.root, state.coverage, &state.objects)?;
        Ok(PreparedRestore::new(move |here: &mut Self| {
            here.workspace.restore_bringing(state.root, state.coverage, &state.objects)?;
            Ok(())
        }))
    }
}
