//! Files that were changed, deleted or pruned while no process held their session.

use std::sync::Arc;

use backstitch_core::journal::{Effect, PauseReason};
use backstitch_core::ports::{Filesystem as _, WriteMode};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    DriftPolicy, DriveOutcome, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools,
};
use serde_json::json;

use crate::history::{Setting, before, sew};
use crate::tailor::{reply, scripted};

#[tokio::test]
async fn deleted_files_are_restored() {
    let setting = Setting::new();
    let turn = |name: &str| reply(name, &[("sew", json!({"name": name}))]);
    let tools = || Tools::new([sew(Effect::Workspace, setting.ran.clone())]).unwrap();
    let short = scripted(vec![turn("one")]).tools(tools());
    let driver = setting.runtime.create(short, setting.options()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let files = Arc::new(MemoryFilesystem::new());
    let empty = Arc::new(MemoryWorkspace::new(files.clone(), setting.store.clone()));
    let agent = scripted(vec![turn("one"), reply("done", &[])]).tools(tools());
    let options = SessionOptions::with_workspace(empty);
    let driver = setting.runtime.open(session, agent, options).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert!(files.read_bytes(&FilePath::new("one").unwrap()).is_ok());
}

/// A clock whose boot time can be set.
#[derive(Debug)]
struct Restarted {
    clock: backstitch_runtime::SystemClock,
    booted: std::sync::Mutex<Option<backstitch_core::time::Timestamp>>,
}

impl backstitch_core::time::Clock for Restarted {
    fn now(&self) -> backstitch_core::time::Timestamp {
        self.clock.now()
    }

    fn monotonic(&self) -> std::time::Duration {
        self.clock.monotonic()
    }

    fn booted_at(&self) -> Option<backstitch_core::time::Timestamp> {
        *self.booted.lock().unwrap()
    }
}

#[tokio::test]
async fn files_that_changed_across_a_restart_are_asked_about() {
    use backstitch_core::time::Clock as _;
    let setting = Setting::new();
    let clock = Arc::new(Restarted { clock: Default::default(), booted: Default::default() });
    let runtime = setting.runtime.clone().with_clock(clock.clone());
    let turn = |name: &str| reply(name, &[("sew", json!({"name": name}))]);
    let tools = || Tools::new([sew(Effect::Workspace, setting.ran.clone())]).unwrap();
    let driver = runtime.create(scripted(vec![turn("one")]).tools(tools()), setting.options()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let edited = FilePath::new("one").unwrap();
    let edit = || setting.files.write_bytes(&edited, b"edited", WriteMode::Overwrite).unwrap();
    edit();
    let agent = || scripted(vec![turn("one")]).tools(tools());
    let resume = async |drift| {
        let driver = runtime.open(session, agent(), setting.options()).await.unwrap();
        let ended = driver.resume(ResumeOptions { drift, ..ResumeOptions::default() }).await;
        driver.session().release().await.unwrap();
        ended
    };
    *clock.booted.lock().unwrap() = Some(clock.now());
    let ended = resume(None).await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Asked, detail, .. } if detail.contains("restarted"))
    );
    assert_eq!(setting.files.read_bytes(&edited).unwrap(), b"edited", "nothing is decided yet");
    // The script has no more replies, so each of these ends with its error. The files show what was done.
    resume(Some(DriftPolicy::Restore)).await.unwrap_err();
    assert_eq!(setting.files.read_bytes(&edited).unwrap(), b"sewn");
    edit();
    resume(Some(DriftPolicy::Adopt)).await.unwrap_err();
    assert_eq!(setting.files.read_bytes(&edited).unwrap(), b"edited");
}

#[tokio::test]
async fn a_rewind_to_pruned_files_is_refused_and_nothing_is_lost() {
    use backstitch_core::ports::{GcMode, Retention, StoreError};
    use backstitch_store::SqliteStore;
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db")).unwrap());
    let runtime = Runtime::new(store.clone());
    let files = Arc::new(MemoryFilesystem::new());
    let workspace = Arc::new(MemoryWorkspace::new(files, store.clone()));
    let setting = Setting::new();
    let agent = setting.agent(Effect::Workspace);
    let driver = runtime.create(agent, SessionOptions::with_workspace(workspace)).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
    let session = driver.session().id();
    let checkpoints = runtime.checkpoints(session).await.unwrap();
    assert_eq!(checkpoints.len(), 3);
    store.gc(Retention::keep_all().keep_boundaries(1), GcMode::Now).unwrap();
    let error = driver.session().rewind(&before(checkpoints[1].call_id), None).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Store(StoreError::Pruned { .. })), "{error}");
    // The session is unchanged, and can be resumed.
    driver.session().rewind(&before(checkpoints[2].call_id), None).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
}
