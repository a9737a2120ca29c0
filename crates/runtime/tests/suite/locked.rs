//! A store that another process keeps locked: no call is blamed for it, and no session is poisoned.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::execution::Resources;
use backstitch_core::journal::{Effect, Position, Record, RecordBody};
use backstitch_core::ports::{Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_runtime::{SystemClock, read_records};
use serde_json::{Value, json};

use crate::counting::CountingStore;
use crate::disk::Disk;
use crate::harness::Harness;

/// Runs a call in a directory, and returns the code of its error and the records of its session.
async fn run(disk: &Disk, store: &Arc<CountingStore>, tool: Tool) -> (ErrorCode, Vec<Record>) {
    let (clock, name) = (Arc::new(SystemClock::new()), tool.name().to_string());
    let workspace = Some(disk.workspace.clone() as Arc<dyn Workspace>);
    let harness = Harness::with(store.clone(), clock, Resources::default(), [tool], workspace, |_| {}).await;
    let call = harness.call(&name, json!({})).await;
    let error = harness.runner.run(call).await.expect_err("the store was locked");
    let records = read_records(&**store, harness.live.id(), Position::START, None).await.unwrap();
    (error.code(), records)
}

/// The call is still open, and the session can be opened again.
fn assert_is_interrupted(records: &[Record]) {
    assert!(records.iter().any(|record| matches!(record.body, RecordBody::CallStarted(_))), "{records:?}");
    let ends = |body: &RecordBody| matches!(body, RecordBody::CallFinished(_) | RecordBody::Paused(_));
    assert!(!records.iter().any(|record| ends(&record.body)), "{records:?}");
}

#[tokio::test]
async fn a_step_that_is_not_recorded_is_no_failure_of_its_tool() {
    let disk = Disk::new();
    let store = Arc::new(CountingStore::noting(disk.store.clone(), |_, _, _| {}));
    let locked = store.clone();
    let pay = Tool::builder("pay", "Pays.").unwrap().effect(Effect::External).workspace(WorkspaceUse::None);
    let pay = pay.handler(move |context: ToolContext, _: Value| {
        let locked = locked.clone();
        async move {
            let paid: u64 = context
                .step("pay", async {
                    locked.lock_for_append();
                    Ok(5)
                })
                .await?;
            Ok(ToolResult::ok(format!("paid {paid}")))
        }
    });
    let (code, records) = run(&disk, &store, pay).await;
    assert_eq!(code, ErrorCode::WriteUnknown);
    assert_is_interrupted(&records);
}

#[tokio::test]
async fn files_that_are_not_restored_poison_no_session() {
    let disk = Disk::new();
    let store = Arc::new(CountingStore::noting(disk.store.clone(), |_, _, _| {}));
    let locked = store.clone();
    let tear = Tool::builder("tear", "Fails half-way.").unwrap().effect(Effect::Workspace);
    let tear = tear.handler(move |context: ToolContext, _: Value| {
        let locked = locked.clone();
        async move {
            let path = FilePath::new("cloth.txt")?;
            context.filesystem()?.write_bytes(&path, b"torn", WriteMode::Create)?;
            // Before files are restored, the store is asked for the sessions that work beside this one.
            locked.lock_for_query();
            Err::<ToolResult, _>(ToolError::new("it tore"))
        }
    });
    let (code, records) = run(&disk, &store, tear).await;
    assert_eq!(code, ErrorCode::StoreBusy);
    assert_is_interrupted(&records);
    assert!(disk.path("cloth.txt").exists(), "the next process restores it");
}
