//! Restores of composite snapshots with files of a directory, where some objects of the files are missing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use backstitch_core::execution::{
    CompositeSnapshot, ExecutionState, ExecutionStateError, Resources, SnapshotMetadata, WorkspaceState,
    snapshots_equivalent,
};
use backstitch_core::id::IdStream;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{Objects, Workspace};
use backstitch_core::session::{BoxError, Session};
use backstitch_core::time::FixedClock;
use backstitch_runtime::{Runtime, RuntimeError, SessionOptions};
use backstitch_store::MemoryStore;
use backstitch_testkit::tool::Counter;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

use crate::crash::collect;
use crate::tailor::scripted;

/// The objects of a capture, optionally without one of them.
#[derive(Clone, Default)]
struct Stored {
    objects: BTreeMap<ObjectId, Object>,
    without: Option<ObjectId>,
}

impl Objects for Stored {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.objects.get(&id).filter(|_| self.without != Some(id)).cloned())
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.get(id)?.is_some())
    }
}

/// A directory with these files, as a workspace over these objects.
fn host(files: &[(&str, &str)], objects: Arc<dyn Objects>) -> (TempDir, Arc<dyn Workspace>) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("files");
    for (path, text) in files {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text).unwrap();
    }
    let mut options = OpenOptions::new(&root, directory.path().join("store"), objects);
    options.locks = Some(directory.path().join("locks"));
    (directory, Arc::new(HostWorkspace::open(options).unwrap()))
}

fn resources(counter: u64, workspace: Arc<dyn Workspace>) -> Resources {
    Counter::at(counter).resources().with_workspace(Some(workspace))
}

fn state(resources: Resources) -> ExecutionState {
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let ids = IdStream::from_seed([7; 32], clock.clone());
    ExecutionState::new(Session::new(ids.next(), clock), resources)
}

fn on_disk(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(&directory.join("files"), "", &mut found);
    found
}

const THERE: [(&str, &str); 2] = [("a/seam.txt", "as it is there"), ("mine.txt", "by hand")];

/// A snapshot of a directory and a counter, as JSON without objects, and its objects.
fn exported() -> (CompositeSnapshot, Stored) {
    let files = [("a/seam.txt", "sewn"), ("a/b/hem.txt", "hemmed"), ("thread.txt", "blue")];
    let (_directory, workspace) = host(&files, Arc::new(Stored::default()));
    let snapshot = state(resources(7, workspace)).snapshot(SnapshotMetadata::tag("export")).unwrap();
    let captured = snapshot.resources["workspace"].downcast::<WorkspaceState>().unwrap();
    let objects = captured.objects.iter().map(|object| (object.id(), object.clone())).collect();
    let mut value: serde_json::Value = serde_json::from_str(&snapshot.to_json().unwrap()).unwrap();
    assert!(value["resources"]["workspace"].as_object_mut().unwrap().remove("objects").is_some());
    (CompositeSnapshot::from_json(&value.to_string()).unwrap(), Stored { objects, without: None })
}

#[test]
fn files_with_missing_objects_are_refused_before_anything_changes() {
    let (snapshot, stored) = exported();
    assert!(stored.objects.len() > 5, "trees, files and the manifest");
    let nothing = [Stored::default()];
    let all_but_one =
        stored.objects.keys().map(|missing| Stored { without: Some(*missing), ..stored.clone() });
    for there in all_but_one.chain(nothing) {
        let missing = there.without;
        let (directory, workspace) = host(&THERE, Arc::new(there));
        let mut state = state(resources(99, workspace));
        let before = state.snapshot(SnapshotMetadata::default()).unwrap();
        let error = state.restore(&snapshot).unwrap_err();
        assert!(
            matches!(&error, ExecutionStateError::Unprepared { resource, .. } if resource == "workspace"),
            "{missing:?}: {error}"
        );
        assert!(!state.is_poisoned(), "{missing:?}");
        let after = state.snapshot(SnapshotMetadata::default()).unwrap();
        assert!(snapshots_equivalent(&before, &after).unwrap(), "{missing:?}: something has changed");
        let expected = THERE.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(on_disk(directory.path()), BTreeMap::from(expected), "{missing:?}");
    }

    // With all objects stored, the restore succeeds.
    let (directory, workspace) = host(&THERE, Arc::new(stored));
    let mut state = state(resources(99, workspace));
    state.restore(&snapshot).unwrap();
    assert_eq!(state.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap(), 7);
    let paths: Vec<_> = on_disk(directory.path()).into_keys().collect();
    assert_eq!(paths, ["a/b/hem.txt", "a/seam.txt", "thread.txt"]);
}

#[tokio::test]
async fn a_session_is_not_created_for_files_without_objects() {
    let (snapshot, _) = exported();
    let store = Arc::new(MemoryStore::new());
    let (directory, workspace) = host(&THERE, store.clone());
    let before = on_disk(directory.path());
    let options = SessionOptions {
        resources: Counter::at(99).resources(),
        ..SessionOptions::with_workspace(workspace.clone())
    };
    let counter = options.resources.clone();
    let runtime = Runtime::new(store.clone());
    let refused = runtime.adopt_state(scripted(Vec::new()), &snapshot, options).await;
    let Err(RuntimeError::State(ExecutionStateError::Unprepared { resource, .. })) = refused else {
        panic!("it was adopted")
    };
    assert_eq!(resource, "workspace");
    assert!(backstitch_core::ports::Store::sessions(&*store).await.unwrap().is_empty());
    assert_eq!(on_disk(directory.path()), before);
    assert_eq!(counter.inspect(|counter: &Counter| counter.number).unwrap().unwrap(), 99);
}
