//! The checkpoint store of a session agrees with its journal, whatever happened to the session.

use backstitch_core::execution::{CheckpointStore, ExecutionState, WorkspaceResource, WorkspaceState};
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Effect, WorkspaceRevision};
use backstitch_core::session::Snapshot;
use backstitch_core::view::{Boundary, CallStatus};
use backstitch_runtime::{Driver, PointSpec, Runtime, load_view};

use crate::findings::Finding;
use crate::history::{Setting, before, call};

/// Compares the checkpoint store with what the runtime reads from the journal: the calls, their outcomes, and
/// the state at each boundary.
async fn assert_of_journal(runtime: &Runtime, driver: &Driver, what: &str) -> CheckpointStore {
    let live = driver.session();
    let store = live.checkpoints().await.unwrap();
    let mut journaled = runtime.checkpoints(live.id()).await.unwrap();
    journaled.retain(|checkpoint| checkpoint.after.is_some());
    assert_eq!(store.list_checkpoints().len(), journaled.len(), "{what}");
    for (held, journaled) in store.list_checkpoints().zip(&journaled) {
        assert_eq!(held.call_id, journaled.call_id, "{what}");
        assert_eq!(held.tool_name, journaled.tool_name, "{what}");
        assert_eq!(held.success, journaled.status == CallStatus::Completed, "{what}");
        assert_eq!(held.result_summary, journaled.result_summary, "{what}");
        assert_eq!(
            held.elapsed.map(|elapsed| elapsed.as_micros() as u64),
            journaled.elapsed_micros,
            "{what}"
        );
        assert_eq!(Some(held.recorded_at), journaled.recorded_at, "{what}");

        let pre = store.get_pre_snapshot(held.call_id).unwrap();
        assert_eq!(digest(&pre.session), digest_at(driver, journaled.before).await, "{what}: before");
        let files = pre.resources[WorkspaceResource::NAME].downcast::<WorkspaceState>().unwrap();
        assert_eq!(Some(files.root), journaled.before.root, "{what}: files before");
        let post = store.get_post_snapshot(held.call_id).unwrap();
        let after = journaled.after.unwrap();
        assert_eq!(digest(&post.session), digest_at(driver, after).await, "{what}: after");
        let files = post.resources[WorkspaceResource::NAME].downcast::<WorkspaceState>().unwrap();
        assert_eq!(
            WorkspaceRevision::of(Some(files.root), files.coverage),
            WorkspaceRevision::of(after.root, after.coverage),
            "{what}"
        );
    }
    store
}

fn digest(snapshot: &Snapshot) -> backstitch_core::digest::Digest {
    snapshot.content_digest().unwrap()
}

async fn digest_at(driver: &Driver, boundary: Boundary) -> backstitch_core::digest::Digest {
    let live = driver.session();
    let view = load_view(&**live.store(), boundary.session, Some(boundary.position)).await.unwrap();
    digest(&view.session(live.clock().clone()).snapshot())
}

fn findings(snapshot: &Snapshot) -> Vec<String> {
    snapshot.all::<Finding>().unwrap().iter().map(|finding| finding.0.clone()).collect()
}

async fn reopened(setting: &Setting, driver: Driver) -> Driver {
    let session: SessionId = driver.session().id();
    driver.session().release().await.unwrap();
    setting.runtime.open(session, setting.agent(Effect::Workspace), setting.options()).await.unwrap()
}

#[tokio::test]
async fn checkpoints_are_those_of_the_journal_after_rewinds_and_in_another_process() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let (runtime, session) = (&setting.runtime, driver.session().id());
    let store = assert_of_journal(runtime, &driver, "after the calls").await;
    assert_eq!(store.list_checkpoints().len(), 3);
    let second = call(runtime, session, 1).await;
    assert_eq!(findings(&store.get_pre_snapshot(second).unwrap().session), ["one"]);
    assert_eq!(findings(&store.get_post_snapshot(second).unwrap().session), ["one", "two"]);

    driver.session().rewind(&before(second), None).await.unwrap();
    let store = assert_of_journal(runtime, &driver, "after a rewind").await;
    assert_eq!(store.list_checkpoints().len(), 1);
    assert!(store.get_pre_snapshot(second).is_err());

    driver.session().undo().await.unwrap();
    assert_eq!(assert_of_journal(runtime, &driver, "after undoing it").await.list_checkpoints().len(), 3);

    let driver = reopened(&setting, driver).await;
    let store = assert_of_journal(runtime, &driver, "opened again").await;
    assert_eq!(store.list_checkpoints().len(), 3);
    // Each query returns the same.
    let again = driver.session().checkpoints().await.unwrap();
    for (one, other) in store.list_checkpoints().zip(again.list_checkpoints()) {
        assert_eq!(one.pre_snapshot.to_json().unwrap(), other.pre_snapshot.to_json().unwrap());
    }

    driver.session().rewind(&PointSpec::Start, None).await.unwrap();
    assert_eq!(assert_of_journal(runtime, &driver, "at the start").await.list_checkpoints().len(), 0);
}

#[tokio::test]
async fn a_state_without_a_journal_can_be_restored_to_a_checkpoint_of_a_journal() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let (second, store) = (call(&setting.runtime, live.id(), 1).await, live.checkpoints().await.unwrap());
    let state = live.state().await;
    let mut bare = ExecutionState::new(state.session.clone(), state.resources.clone());
    bare.restore(store.get_pre_snapshot(second).unwrap()).unwrap();
    assert_eq!(findings(&bare.session.snapshot()), ["one"]);
    assert_eq!(setting.names(), ["one"]);
}
