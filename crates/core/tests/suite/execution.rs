//! Execution state: one root, snapshots of all of it, and restores.

use std::sync::{Arc, Mutex};

use backstitch_core::execution::{
    CheckpointStore, CompositeSnapshot, ExecutionState, ExecutionStateError, PreparedRestore,
    ResourceSnapshot, Resources, SnapshotMetadata, SnapshotPhase, Snapshotable, ToolCheckpoint,
    WorkspaceState, snapshots_equivalent,
};
use backstitch_core::id::CallId;
use backstitch_core::json::JsonLimits;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{Filesystem, Objects, Workspace, WriteMode};
use backstitch_core::rng::Seed;
use backstitch_core::session::{BoxError, Session, Snapshot, SnapshotRestoreError};
use backstitch_core::time::Clock;
use backstitch_filesystem::{FileOperations, FilePath, MemoryFilesystem, MemoryWorkspace};
use serde_json::json;

use crate::samples::{Deed, Line, Note, clock, items, note, session, session_id};

/// An empty store of objects: needed objects have to be part of the snapshot.
struct Nothing;

impl Objects for Nothing {
    fn get(&self, _: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(None)
    }

    fn contains(&self, _: ObjectId) -> Result<bool, BoxError> {
        Ok(false)
    }
}

/// A number that can refuse to be restored. It is shared, so that a test can read it from outside.
#[derive(Default, Clone)]
struct Counter {
    number: Arc<Mutex<u64>>,
    refuses: Arc<Mutex<Refuses>>,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Refuses {
    #[default]
    Nothing,
    ToPrepare,
    ToCommit,
}

impl Counter {
    fn set(&self, number: u64) {
        *self.number.lock().unwrap() = number;
    }

    fn get(&self) -> u64 {
        *self.number.lock().unwrap()
    }
}

impl Snapshotable for Counter {
    fn snapshot_name(&self) -> &'static str {
        "counter"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        Ok(ResourceSnapshot::Stored(json!(self.get())))
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        let refuses = *self.refuses.lock().unwrap();
        if refuses == Refuses::ToPrepare {
            return Err("not now".into());
        }
        let number = snapshot.to_json()?.as_u64().ok_or("this is not a number")?;
        Ok(PreparedRestore::new(move |here: &mut Self| {
            if refuses == Refuses::ToCommit {
                return Err("it broke".into());
            }
            here.set(number);
            Ok(())
        }))
    }
}

struct Setup {
    state: ExecutionState,
    files: Arc<MemoryFilesystem>,
    workspace: Arc<MemoryFilesystem>,
    counter: Counter,
}

/// A state with every built-in resource, and a resource of a user.
fn setup(session: Session) -> Setup {
    setup_over(session, Arc::new(Nothing))
}

fn setup_over(session: Session, objects: Arc<dyn Objects>) -> Setup {
    let (files, workspace) = (Arc::new(MemoryFilesystem::new()), Arc::new(MemoryFilesystem::new()));
    let counter = Counter::default();
    let over: Arc<dyn Workspace> = Arc::new(MemoryWorkspace::new(workspace.clone(), objects));
    let resources = Resources::builder()
        .with_snapshotable(files.same_files())
        .with_snapshotable(counter.clone())
        .build()
        .unwrap()
        .with_workspace(Some(over));
    let mut state = ExecutionState::new(session, resources);
    state.rng = Some(Seed::new(7).rng_for(call(1)));
    Setup { state, files, workspace, counter }
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

fn call(number: u8) -> CallId {
    format!("01890a5d-ac96-774b-bcce-0000000000{number:02}").parse().unwrap()
}

fn manual() -> SnapshotMetadata {
    SnapshotMetadata::default()
}

impl Setup {
    fn work(&mut self, number: u32) {
        self.state.session.append(note(number, "note")).unwrap();
        self.state.session.append(Deed(number)).unwrap();
        for files in [&self.files, &self.workspace] {
            files.write_bytes(&path("number"), number.to_string().as_bytes(), WriteMode::Overwrite).unwrap();
            files.make_directory(&path(&format!("directory {number}"))).unwrap();
        }
        self.counter.set(number.into());
        self.state.rng.as_mut().unwrap().below(100);
    }

    fn snapshot(&self) -> CompositeSnapshot {
        self.state.snapshot(manual()).unwrap()
    }

    fn notes(&self) -> Vec<u32> {
        items::<Note>(&self.state.session).into_iter().map(|note| note.key).collect()
    }
}

#[test]
fn a_snapshot_covers_everything_and_restoring_brings_all_of_it_back() {
    let mut setup = setup(session());
    setup.work(1);
    let before = setup.snapshot();
    let names: Vec<_> = before.resources.keys().map(String::as_str).collect();
    assert_eq!(names, ["counter", "filesystem", "workspace"]);
    setup.work(2);
    assert!(!snapshots_equivalent(&before, &setup.snapshot()).unwrap());
    setup.state.restore(&before).unwrap();
    assert!(snapshots_equivalent(&before, &setup.snapshot()).unwrap());
    assert_eq!(setup.notes(), [1]);
    assert_eq!(setup.files.read_text(&path("number")).unwrap(), "1");
    assert_eq!(setup.workspace.read_text(&path("number")).unwrap(), "1");
    assert!(setup.workspace.stat(&path("directory 2")).is_err());
    assert_eq!(setup.counter.get(), 1);
    assert_eq!(items::<Deed>(&setup.state.session).len(), 2, "logs are kept");
}

#[test]
fn equivalence_is_about_content_and_not_about_ids_times_and_labels() {
    let mut setup = setup(session());
    setup.work(1);
    let one = setup.snapshot();
    let other =
        setup.state.snapshot(SnapshotMetadata::of_call(call(3), "read", SnapshotPhase::PreTool)).unwrap();
    assert_ne!(one.snapshot_id, other.snapshot_id);
    assert!(snapshots_equivalent(&one, &other).unwrap());
    let stored = CompositeSnapshot::from_json(&one.to_json().unwrap()).unwrap();
    assert!(snapshots_equivalent(&one, &stored).unwrap(), "as JSON it is the same");
    let mut known = one.clone();
    let state = one.resources["workspace"].downcast::<WorkspaceState>().unwrap();
    assert!(!state.objects.is_empty());
    let state = WorkspaceState::stored(state.root, state.coverage);
    known.resources.insert("workspace".to_owned(), ResourceSnapshot::live(state));
    assert!(snapshots_equivalent(&one, &known).unwrap(), "objects in the snapshot do not count");
    setup.counter.set(5);
    assert!(!snapshots_equivalent(&one, &setup.snapshot()).unwrap());
}

#[test]
fn a_snapshot_as_json_is_restored_where_nothing_else_is_known() {
    let mut here = setup(session());
    here.work(1);
    here.work(2);
    here.files.write_bytes(&path("bytes"), &[0, 255], WriteMode::Create).unwrap();
    let metadata = SnapshotMetadata {
        tag: Some("before the storm".to_owned()),
        ..SnapshotMetadata::of_call(call(3), "write", SnapshotPhase::PostTool)
    };
    let snapshot = here.state.snapshot(metadata.clone()).unwrap();
    let text = snapshot.to_json().unwrap();

    let read = CompositeSnapshot::from_json(&text).unwrap();
    assert_eq!(read.metadata, metadata);
    assert_eq!((read.snapshot_id, read.created_at), (snapshot.snapshot_id, snapshot.created_at));
    assert_eq!(read.to_json().unwrap(), text);
    let mut there = setup(Session::new(session_id(1), clock()));
    there.state.restore(&read).unwrap();
    assert_eq!(there.notes(), [1, 2]);
    assert_eq!(there.files.read_bytes(&path("bytes")).unwrap(), [0, 255]);
    assert_eq!(there.workspace.read_text(&path("number")).unwrap(), "2");
    assert!(there.workspace.stat(&path("directory 1")).is_ok(), "empty directories too");
    assert_eq!(there.counter.get(), 2);
    assert_eq!(there.state.rng, here.state.rng, "the generator continues where it was");
}

#[test]
fn what_cannot_be_read_is_refused() {
    let mut here = setup(session());
    here.work(1);
    let text = here.snapshot().to_json().unwrap();
    let newer = text.replacen("\"version\":2", "\"version\":99", 1);
    let error = CompositeSnapshot::from_json(&newer).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::UnknownVersion { stored: 99, known: 2 }), "{error}");
    let twice = text.replacen("{", r#"{"session":{},"#, 1);
    for text in ["", "[]", "{}", &text[..text.len() - 2], &twice] {
        assert!(CompositeSnapshot::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn a_part_that_refuses_calls_off_the_whole_restore() {
    let mut setup = setup(session());
    setup.state.session.append(Line(1)).unwrap();
    setup.work(1);
    let before = setup.snapshot();
    setup.work(2);
    let now = setup.snapshot();
    *setup.counter.refuses.lock().unwrap() = Refuses::ToPrepare;
    let error = setup.state.restore(&before).unwrap_err();
    assert!(
        matches!(error, ExecutionStateError::Unprepared { ref resource, .. } if resource == "counter"),
        "{error}"
    );
    let mut stranger = before.clone();
    stranger.resources.insert("stranger".to_owned(), ResourceSnapshot::Stored(json!(1)));
    *setup.counter.refuses.lock().unwrap() = Refuses::Nothing;
    let error = setup.state.restore(&stranger).unwrap_err();
    assert!(
        matches!(error, ExecutionStateError::UnknownResource { ref resource } if resource == "stranger"),
        "{error}"
    );
    let mut broken = before.clone();
    broken.resources.insert("workspace".to_owned(), ResourceSnapshot::Stored(json!({"root": 1})));
    assert!(matches!(setup.state.restore(&broken), Err(ExecutionStateError::Unprepared { .. })));
    let mut another = ExecutionState::new(Session::new(session_id(2), clock()), Resources::default());
    another.session.append(Line(9)).unwrap();
    let mut mismatched = before.clone();
    mismatched.session = another.snapshot(manual()).unwrap().session;
    let error = setup.state.restore(&mismatched).unwrap_err();
    assert!(matches!(error, ExecutionStateError::Mismatch(_)), "{error}");
    assert!(snapshots_equivalent(&now, &setup.snapshot()).unwrap(), "nothing was changed");
    assert!(!setup.state.is_poisoned());
}

#[test]
fn a_restore_that_breaks_half_way_poisons_the_state() {
    let mut setup = setup(session());
    setup.work(1);
    let before = setup.snapshot();
    setup.work(2);
    *setup.counter.refuses.lock().unwrap() = Refuses::ToCommit;
    let error = setup.state.restore(&before).unwrap_err();
    assert!(matches!(error, ExecutionStateError::RestoreFailed(_)), "{error}");
    assert!(setup.state.is_poisoned());
    assert!(matches!(setup.state.snapshot(manual()), Err(ExecutionStateError::Poisoned)));
    assert!(matches!(setup.state.restore(&before), Err(ExecutionStateError::Poisoned)));
}

fn checkpoint(setup: &Setup, call_id: CallId, success: bool) -> ToolCheckpoint {
    ToolCheckpoint {
        call_id,
        tool_name: "work".to_owned(),
        pre_snapshot: setup.snapshot(),
        post_snapshot: success.then(|| setup.snapshot()),
        result_summary: Some("worked".to_owned()),
        success,
        elapsed: None,
        recorded_at: clock().now(),
    }
}

#[test]
fn the_latest_calls_are_kept_and_a_missing_one_is_an_error() {
    let setup = setup(session());
    let mut store = CheckpointStore::with_capacity(3);
    for number in 1..=5 {
        store.record(checkpoint(&setup, call(number), number != 4));
    }
    let kept: Vec<_> = store.list_checkpoints().map(|one| one.call_id).collect();
    assert_eq!(kept, [call(3), call(4), call(5)]);
    assert!(store.get_pre_snapshot(call(3)).is_ok() && store.get_post_snapshot(call(3)).is_ok());
    assert!(
        matches!(store.get_pre_snapshot(call(2)), Err(ExecutionStateError::NoCheckpoint { call: missing }) if missing == call(2))
    );
    assert!(store.get_pre_snapshot(call(4)).is_ok());
    assert!(matches!(store.get_post_snapshot(call(4)), Err(ExecutionStateError::NoPostSnapshot { .. })));
    store.record(checkpoint(&setup, call(3), false));
    let kept: Vec<_> = store.list_checkpoints().map(|one| one.call_id).collect();
    assert_eq!(kept, [call(4), call(5), call(3)], "a call that ran again is its latest self");
    let mut none = CheckpointStore::with_capacity(0);
    none.record(checkpoint(&setup, call(1), true));
    assert_eq!(none.list_checkpoints().len(), 0);
}

#[test]
fn the_state_goes_back_to_before_a_call() {
    let mut setup = setup(session());
    for number in 1..=3u8 {
        let mut checkpoint = checkpoint(&setup, call(number), true);
        setup.work(number.into());
        checkpoint.post_snapshot = Some(setup.snapshot());
        setup.state.checkpoints.record(checkpoint);
    }
    setup.state.rollback_to_tool(call(2)).unwrap();
    assert_eq!(setup.notes(), [1]);
    assert_eq!(setup.workspace.read_text(&path("number")).unwrap(), "1");
    let after_first = setup.state.checkpoints.get_post_snapshot(call(1)).unwrap();
    assert!(snapshots_equivalent(after_first, &setup.snapshot()).unwrap());
    let error = setup.state.rollback_to_tool(call(9)).unwrap_err();
    assert!(matches!(error, ExecutionStateError::NoCheckpoint { .. }), "{error}");
}

#[test]
fn a_session_stands_in_a_snapshot_as_json_that_people_can_read() {
    let mut here = setup(session());
    here.work(1);
    let value: serde_json::Value = serde_json::from_str(&here.snapshot().to_json().unwrap()).unwrap();
    assert_eq!(value["version"], 2);
    assert!(value["session"].is_object(), "{}", value["session"]);
    assert!(value["session"].to_string().contains("note"));
}

#[test]
fn a_snapshot_of_version_1_is_read() {
    let text = include_str!("../fixtures/composite/v1.json");
    assert!(text.starts_with(r#"{"version":1,"#) && text.contains(r#""session":"{\""#), "{text}");
    let read = CompositeSnapshot::from_json(text).unwrap();
    let mut there = setup(Session::new(session_id(1), clock()));
    there.state.restore(&read).unwrap();
    assert_eq!(there.notes(), [1]);
    assert_eq!(there.counter.get(), 1);
    assert_eq!(there.workspace.read_text(&path("number")).unwrap(), "1");
    let again = CompositeSnapshot::from_json(&read.to_json().unwrap()).unwrap();
    assert!(snapshots_equivalent(&read, &again).unwrap());
}

#[test]
fn a_boundary_of_a_call_of_version_1_is_read_with_all_of_its_content() {
    let read = CompositeSnapshot::from_json(include_str!("../fixtures/composite/v1_call.json")).unwrap();
    let mut here = setup(session());
    here.work(1);
    here.work(2);
    here.state.session.append(Line(1)).unwrap();
    here.files.write_bytes(&path("bytes"), &[0, 255], WriteMode::Create).unwrap();
    assert!(snapshots_equivalent(&read, &here.snapshot()).unwrap(), "it was taken of this very state");
    assert_eq!(
        read.session.content_digest().unwrap(),
        here.state.session.snapshot().content_digest().unwrap()
    );
    assert_eq!(read.metadata.tag.as_deref(), Some("before the storm"));
    assert_eq!((read.metadata.tool_call_id, read.metadata.phase), (Some(call(3)), SnapshotPhase::PostTool));
    assert_eq!(read.metadata.tool_name.as_deref(), Some("write"));
    assert_eq!(read.rng, here.state.rng);
    assert_eq!(read.session.provenance(), None, "version 1 knew nothing of it");

    let mut there = setup(Session::new(session_id(1), clock()));
    there.state.restore(&read).unwrap();
    assert_eq!(there.notes(), [1, 2]);
    assert_eq!(items::<Line>(&there.state.session), [Line(1)]);
    assert_eq!(there.files.read_bytes(&path("bytes")).unwrap(), [0, 255]);
    assert!(there.workspace.stat(&path("directory 1")).is_ok());
    assert_eq!((there.counter.get(), there.state.rng), (2, here.state.rng));
}

#[test]
fn limits_hold_for_the_session_inside_of_a_snapshot() {
    let mut here = setup(session());
    here.work(1);
    let text = here.snapshot().to_json().unwrap();
    let limits = |bytes, depth| JsonLimits { bytes, depth };
    let read = |limits| CompositeSnapshot::from_json_within(text.as_bytes(), limits);
    assert!(read(limits(text.len(), 96)).is_ok());
    assert!(matches!(read(limits(text.len() - 1, 96)), Err(SnapshotRestoreError::Limit(_))));
    // The deepest part is in the session, to which the same limits apply.
    let depth = (1..96).find(|depth| read(limits(text.len(), *depth)).is_ok()).unwrap();
    let session = here.snapshot().session.to_json().unwrap();
    let alone = |depth| Snapshot::from_json_within(session.as_bytes(), limits(text.len(), depth));
    assert!(alone(depth).is_ok() && alone(depth - 1).is_err(), "{depth}");
    let nested = text.replacen(
        r#""session":{"#,
        &format!(r#""session":{{"x":{}1{},"#, "[".repeat(96), "]".repeat(96)),
        1,
    );
    assert!(matches!(CompositeSnapshot::from_json(&nested), Err(SnapshotRestoreError::Limit(_))));
}

/// A store of these objects.
#[derive(Default)]
struct Stored(Mutex<Vec<Object>>);

impl Objects for Stored {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.0.lock().unwrap().iter().find(|object| object.id() == id).cloned())
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.get(id)?.is_some())
    }
}

#[test]
fn files_of_which_something_is_not_stored_are_refused_before_anything_changes() {
    let stored = Arc::new(Stored::default());
    let mut here = setup_over(session(), stored.clone());
    here.work(1);
    let brought =
        here.snapshot().resources["workspace"].downcast::<WorkspaceState>().unwrap().objects.clone();
    *stored.0.lock().unwrap() = brought.clone();
    let text = here.snapshot().to_json().unwrap();
    let snapshot = CompositeSnapshot::from_json(&text).unwrap();
    assert!(!text.contains("base64"), "the objects are stored, so the snapshot holds none");

    // None of the objects is stored, or all but one.
    let missing = brought.iter().map(|object| object.id()).map(Some).chain([None]);
    for missing in missing {
        let there = Arc::new(Stored::default());
        let some = brought.iter().filter(|object| missing.is_some_and(|missing| missing != object.id()));
        there.0.lock().unwrap().extend(some.cloned());
        let mut other = setup_over(session(), there);
        other.work(7);
        let before = other.snapshot();
        let error = other.state.restore(&snapshot).unwrap_err();
        assert!(
            matches!(error, ExecutionStateError::Unprepared { ref resource, .. } if resource == "workspace"),
            "{missing:?}: {error}"
        );
        assert!(!other.state.is_poisoned());
        assert!(snapshots_equivalent(&before, &other.snapshot()).unwrap(), "{missing:?}: something changed");
    }
    here.work(2);
    here.state.restore(&snapshot).unwrap();
    assert_eq!(here.workspace.read_text(&path("number")).unwrap(), "1");
}

#[test]
fn boundaries_of_calls_are_labelled() {
    let of = |phase| SnapshotMetadata::of_call(call(3), "read", phase).tag;
    assert_eq!(of(SnapshotPhase::PreTool), Some(format!("pre:{}", call(3))));
    assert_eq!(of(SnapshotPhase::PostTool), Some(format!("post:{}", call(3))));
}
