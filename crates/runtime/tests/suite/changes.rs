//! The end of every kind of call records the paths that it changed.

use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{
    CallChanges, CallFinished, CallVerdict, ChangeKind, ChangedPath, Decision, Effect, FileContent,
};
use backstitch_core::message::PolicyName;
use backstitch_core::object::Object;
use backstitch_core::ports::{Filesystem as _, Recursion, Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolResult};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{CallOutcome, ObservedCall, ObservedResult, ObservedSession};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::harness::Harness;

/// What the tool does to the files, in order.
#[derive(Clone, serde::Deserialize, schemars::JsonSchema)]
struct Work {
    #[serde(default)]
    writes: Vec<(String, String)>,
    #[serde(default)]
    deletes: Vec<String>,
    #[serde(default)]
    fails: bool,
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

fn work(effect: Effect) -> Tool {
    Tool::builder("work", "Changes files.").unwrap().effect(effect).handler(
        |context: ToolContext, work: Work| async move {
            let files = context.filesystem()?;
            for (name, text) in &work.writes {
                files.write_bytes(&path(name), text.as_bytes(), WriteMode::Overwrite)?;
            }
            for name in &work.deletes {
                files.delete(&path(name), Recursion::All)?;
            }
            Ok(if work.fails { ToolResult::failed("torn") } else { ToolResult::ok("done") })
        },
    )
}

struct Shop {
    harness: Harness,
    files: Arc<MemoryFilesystem>,
}

impl Shop {
    async fn open() -> Self {
        let store = Arc::new(MemoryStore::new());
        let files = Arc::new(MemoryFilesystem::new());
        files.write_bytes(&path("coat.txt"), b"cloth", WriteMode::Create).unwrap();
        files.write_bytes(&path("pins/old.txt"), b"pin", WriteMode::Create).unwrap();
        let workspace: Arc<dyn Workspace> = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
        let harness = Harness::over(store, [work(Effect::Workspace)], Some(workspace)).await;
        Self { harness, files }
    }

    async fn run(&self, arguments: serde_json::Value) -> CallFinished {
        let call = self.harness.call("work", arguments).await;
        let id = call.call_id;
        let ended = self.harness.runner.run(call).await.unwrap();
        assert!(matches!(ended, CallOutcome::Succeeded(_) | CallOutcome::Failed(_)), "{ended:?}");
        self.finished(id).await
    }

    async fn finished(&self, call: CallId) -> CallFinished {
        let state = self.harness.live.state().await;
        (*state.view.call(call).unwrap().finished.as_ref().unwrap().record).clone()
    }
}

fn content(text: &str) -> Option<FileContent> {
    let object = Object::blob(text.as_bytes().to_vec());
    Some(FileContent { object: object.id(), bytes: Some(text.len() as u64) })
}

#[tokio::test]
async fn a_call_records_the_paths_that_it_changed() {
    let shop = Shop::open().await;
    let writes = json!([["coat.txt", "cloth and hem"], ["new/thread.txt", "red"]]);
    let finished = shop.run(json!({ "writes": writes, "deletes": ["pins/old.txt"] })).await;
    assert_eq!(finished.outcome, CallVerdict::Succeeded);
    let changes = finished.changes.unwrap();
    // The directory of the deleted file is left empty; whether it is listed does not matter here.
    let listed: Vec<&ChangedPath> =
        changes.paths().unwrap().iter().filter(|changed| changed.path != "pins").collect();
    let expected = [
        ChangedPath {
            before: content("cloth"),
            after: content("cloth and hem"),
            ..ChangedPath::new("coat.txt", ChangeKind::Modified)
        },
        ChangedPath { after: content("red"), ..ChangedPath::new("new/thread.txt", ChangeKind::Added) },
        ChangedPath { before: content("pin"), ..ChangedPath::new("pins/old.txt", ChangeKind::Deleted) },
    ];
    assert_eq!(listed, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_failed_call_records_what_was_rolled_back() {
    let shop = Shop::open().await;
    let finished = shop.run(json!({ "writes": [["coat.txt", "torn"]], "fails": true })).await;
    assert_eq!((finished.outcome, finished.root), (CallVerdict::Failed, None));
    assert!(finished.rescue.is_some());
    let expected = ChangedPath {
        before: content("cloth"),
        after: content("torn"),
        ..ChangedPath::new("coat.txt", ChangeKind::Modified)
    };
    assert_eq!(finished.changes, Some(CallChanges::Paths(vec![expected])));
    assert_eq!(shop.files.read_bytes(&path("coat.txt")).unwrap(), b"cloth");
}

#[tokio::test]
async fn a_call_that_changes_nothing_records_no_changes() {
    let shop = Shop::open().await;
    for fails in [false, true] {
        let finished = shop.run(json!({ "writes": [["coat.txt", "cloth"]], "fails": fails })).await;
        assert_eq!(finished.changes, None);
    }
}

#[tokio::test]
async fn very_many_changed_paths_are_counted() {
    let shop = Shop::open().await;
    let count = CallChanges::MOST_PATHS + 1;
    let writes: Vec<_> = (0..count).map(|number| (format!("seams/{number}"), "x")).collect();
    let changes = shop.run(json!({ "writes": writes })).await.changes.unwrap();
    assert_eq!(changes.paths(), None);
    assert_eq!(changes.counts().added, count as u64);
}

#[tokio::test]
async fn a_call_of_another_program_records_the_paths_that_it_changed() {
    let shop = Shop::open().await;
    let observed = ObservedSession::new(shop.harness.live.clone(), PolicyName::new("loom").unwrap());
    let call = ObservedCall::new("toolu_1", "Edit", json!({}));
    let id = observed.record_call_start(call.clone()).await.unwrap();
    shop.files.write_bytes(&path("coat.txt"), b"sewn", WriteMode::Overwrite).unwrap();
    let result = ObservedResult { outcome: Ok(json!("done")), elapsed_micros: None };
    observed.record_call_end(call, result).await.unwrap();
    let expected = ChangedPath {
        before: content("cloth"),
        after: content("sewn"),
        ..ChangedPath::new("coat.txt", ChangeKind::Modified)
    };
    assert_eq!(shop.finished(id).await.changes, Some(CallChanges::Paths(vec![expected])));

    // A call without a reported end is closed at a barrier, with the files of then.
    let lost = ObservedCall::new("toolu_2", "Bash", json!({}));
    let id = observed.record_call_start(lost).await.unwrap();
    shop.files.write_bytes(&path("b.txt"), b"b", WriteMode::Create).unwrap();
    observed.barrier(None).await.unwrap();
    let changes = shop.finished(id).await.changes.unwrap();
    assert_eq!(changes.paths().unwrap()[0].path, "b.txt");
}

#[tokio::test]
async fn a_decision_about_an_interrupted_call_records_what_it_left() {
    let shop = Shop::open().await;
    let observed = ObservedSession::new(shop.harness.live.clone(), PolicyName::new("loom").unwrap());
    let call = ObservedCall::new("toolu_1", "work", json!({}));
    let id = observed.record_call_start(call).await.unwrap();
    shop.files.write_bytes(&path("coat.txt"), b"half", WriteMode::Overwrite).unwrap();
    let decision = Decision::Fail { reason: None };
    shop.harness.live.resolve(Some(id), decision, None).await.unwrap();
    let finished = shop.finished(id).await;
    assert_eq!(finished.outcome, CallVerdict::Failed);
    let changes = finished.changes.unwrap();
    assert_eq!(changes.paths().unwrap()[0].after, content("half"));
    assert_eq!(shop.files.read_bytes(&path("coat.txt")).unwrap(), b"cloth");
}
