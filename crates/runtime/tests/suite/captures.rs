//! Files that cannot be captured when a call starts: only that call fails, and it leaves no trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{CallChanges, Effect, RecordBody, WorkspaceRoot};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    Filesystem, PathChange, RestoreReport, Workspace, WorkspaceCapture, WorkspaceError, WriteMode,
};
use backstitch_core::tool::{Tool, ToolContext, ToolResult};
use backstitch_core::view::CallStatus;
use backstitch_filesystem::{FileOperations as _, FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{CallOutcome, Runtime, SessionOptions, SubAgent, Tools};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::harness::Harness;
use crate::tailor::{kinds, reply, scripted};

/// Files in memory, of which one capture fails.
struct Flaky {
    files: MemoryWorkspace,
    /// Captures until one fails, counting that one; at 0 none fails.
    until_failure: AtomicUsize,
}

impl Flaky {
    fn over(store: Arc<MemoryStore>) -> Arc<Self> {
        let files = MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), store);
        Arc::new(Self { files, until_failure: AtomicUsize::new(0) })
    }

    /// Makes the nth capture from now on fail.
    fn fail(&self, nth: usize) {
        self.until_failure.store(nth, Ordering::SeqCst);
    }

    fn text(&self) -> String {
        self.filesystem().read_text(&path()).unwrap()
    }
}

impl Workspace for Flaky {
    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.files.filesystem()
    }

    fn capture(&self) -> Result<WorkspaceCapture, WorkspaceError> {
        let count = |left: usize| left.checked_sub(1);
        let left = self.until_failure.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
        match left {
            Ok(1) => Err(WorkspaceError::Limit { reason: "the disk is full".into() }),
            _ => self.files.capture(),
        }
    }

    fn capture_covering(&self, coverage: Option<ObjectId>) -> Result<WorkspaceCapture, WorkspaceError> {
        self.files.capture_covering(coverage)
    }

    fn restore(&self, root: WorkspaceRoot) -> Result<RestoreReport, WorkspaceError> {
        self.files.restore(root)
    }

    fn check_restorable(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<(), WorkspaceError> {
        self.files.check_restorable(root, coverage, brought)
    }

    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError> {
        self.files.diff(from, to)
    }

    fn changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        brought: &[Object],
    ) -> Result<CallChanges, WorkspaceError> {
        self.files.changes(from, to, brought)
    }
}

fn path() -> FilePath {
    FilePath::new("seams.txt").unwrap()
}

/// A tool that appends its argument to a file.
fn sew(ran: Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Seam {
        seam: String,
    }
    Tool::builder("sew", "Sews.").unwrap().effect(Effect::Workspace).handler(
        move |context: ToolContext, Seam { seam }: Seam| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                context.filesystem()?.write_bytes(&path(), seam.as_bytes(), WriteMode::Append)?;
                Ok(ToolResult::ok("sewn"))
            }
        },
    )
}

#[tokio::test]
async fn a_call_whose_files_cannot_be_captured_fails_alone_and_leaves_nothing() {
    let store = Arc::new(MemoryStore::new());
    let (files, ran) = (Flaky::over(store.clone()), Arc::new(AtomicUsize::new(0)));
    let harness = Harness::over(store, [sew(ran.clone())], Some(files.clone())).await;
    let mut calls = Vec::new();
    for seam in ["a", "b", "c"] {
        calls.push(harness.call("sew", json!({ "seam": seam })).await);
    }
    let failing = calls[1].call_id;
    files.fail(2);
    let ends = harness.run_all(calls).await;
    let [CallOutcome::Succeeded(_), CallOutcome::Failed(message), CallOutcome::Succeeded(_)] = &ends[..]
    else {
        panic!("{ends:?}")
    };
    let result = message.message.option_result().unwrap();
    assert_eq!(result.error_type.as_deref(), Some("capture_failed"));
    assert_eq!(result.retryable, Some(true), "nothing has happened");
    assert!(result.error_message.as_ref().unwrap().contains("the disk is full"), "{result:?}");
    assert_eq!((files.text().as_str(), ran.load(Ordering::SeqCst)), ("ac", 2), "it did not run");
    {
        let state = harness.live.state().await;
        let call = state.view.call(failing).unwrap();
        assert!(call.intent.is_none() && call.finished.is_none() && !call.is_open(), "{call:?}");
        assert_eq!(call.status(), CallStatus::Failed);
        assert_eq!(state.view.files().unwrap().root, files.capture().unwrap().root);
        assert_eq!(state.view.pending_calls().count(), 0);
    }
    // The next call acquires the files, and starts from their current state.
    let end = harness.run("sew", json!({"seam": "d"})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert_eq!(files.text(), "acd");
}

#[tokio::test]
async fn an_evaluation_continues_after_a_call_whose_files_could_not_be_captured() {
    let store = Arc::new(MemoryStore::new());
    let (files, ran) = (Flaky::over(store.clone()), Arc::new(AtomicUsize::new(0)));
    let runtime = Runtime::new(store.clone());
    let replies = vec![
        reply("", &[("sew", json!({"seam": "a"}))]),
        reply("", &[("sew", json!({"seam": "b"}))]),
        reply("done", &[]),
    ];
    let agent = scripted(replies).tools(Tools::new([sew(ran.clone())]).unwrap());
    let options = SessionOptions::with_workspace(files.clone());
    let driver = runtime.create(agent, options).await.unwrap();
    // The session captures its files once when it starts.
    files.fail(2);
    let answered = driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!((answered.text.as_str(), files.text().as_str()), ("done", "b"));
    let kinds = kinds(&runtime, driver.session().id()).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "call_started").count(), 1, "{kinds:?}");
    assert!(!kinds.contains(&"paused"), "{kinds:?}");
}

#[tokio::test]
async fn a_sub_agent_whose_files_cannot_be_captured_is_not_started() {
    let store = Arc::new(MemoryStore::new());
    let (files, ran) = (Flaky::over(store.clone()), Arc::new(AtomicUsize::new(0)));
    let runtime = Runtime::new(store.clone());
    let child = scripted(vec![reply("", &[("sew", json!({"seam": "a"}))]), reply("sewn", &[])]);
    let child = child.tools(Tools::new([sew(ran.clone())]).unwrap());
    let child = SubAgent::new("tailor", "Sews.", child).unwrap().into_tool();
    let replies = vec![reply("", &[("tailor", json!({"mission": "sew"}))]), reply("done", &[])];
    let agent = scripted(replies).tools(Tools::new([child]).unwrap());
    let driver = runtime.create(agent, SessionOptions::with_workspace(files.clone())).await.unwrap();
    files.fail(2);
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let sessions = backstitch_core::ports::Store::sessions(&*store).await.unwrap();
    assert_eq!(sessions, [driver.session().id()], "no child session is left without a mission");
    for record in runtime.records(driver.session().id()).await.unwrap() {
        assert!(!matches!(record.body, RecordBody::CallStarted(_)), "{record:?}");
    }
}
