//! The tool runner over files: a failed call leaves them exactly as they were, and calls wait for each other
//! in order.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::{Effect, WorkspaceRoot};
use backstitch_core::ports::{Filesystem, Recursion, Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::{FileOperations, FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::CallOutcome;
use backstitch_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::harness::Harness;

#[derive(Deserialize, JsonSchema)]
struct File {
    path: String,
    text: String,
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

fn writing(name: &str, run: fn(ToolContext, File) -> Result<ToolResult, ToolError>) -> Tool {
    Tool::builder(name, "Writes a file.").unwrap().effect(Effect::Workspace).handler(
        move |context: ToolContext, file: File| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            run(context, file)
        },
    )
}

fn append(context: &ToolContext, file: &File) -> Result<(), ToolError> {
    let files = context.filesystem()?;
    files.write_bytes(&FilePath::new(&file.path)?, file.text.as_bytes(), WriteMode::Append)?;
    Ok(())
}

async fn harness(tools: Vec<Tool>) -> (Harness, Arc<MemoryWorkspace>) {
    let store = Arc::new(MemoryStore::new());
    let files = Arc::new(MemoryFilesystem::new());
    files.write_bytes(&path("notes/a.txt"), b"original", WriteMode::Create).unwrap();
    files.make_directory(&path("empty")).unwrap();
    let workspace = Arc::new(MemoryWorkspace::new(files, store.clone()));
    let harness = Harness::over(store, tools, Some(workspace.clone())).await;
    (harness, workspace)
}

fn root(workspace: &MemoryWorkspace) -> WorkspaceRoot {
    workspace.capture().unwrap().root
}

#[tokio::test]
async fn what_a_successful_call_wrote_stands_and_is_recorded() {
    let write = writing("write", |context, file| {
        append(&context, &file)?;
        Ok(ToolResult::ok("written"))
    });
    let (harness, workspace) = harness(vec![write]).await;
    let before = root(&workspace);
    let end = harness.run("write", json!({"path": "notes/a.txt", "text": " and more"})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert_eq!(workspace.filesystem().read_text(&path("notes/a.txt")).unwrap(), "original and more");
    let state = harness.live.state().await;
    let checkpoint = &state.view.checkpoints()[0];
    assert_eq!(checkpoint.before.root, Some(before));
    assert_eq!(checkpoint.after.as_ref().unwrap().root, Some(root(&workspace)));
    assert_ne!(before, root(&workspace));
}

#[tokio::test]
async fn a_failed_call_leaves_the_files_as_they_were_and_a_rescue_root() {
    let failing = [
        writing("error", |context, file| {
            append(&context, &file)?;
            Err(ToolError::new("no"))
        }),
        writing("unsuccessful", |context, file| {
            append(&context, &file)?;
            context.filesystem()?.delete(&path("notes"), Recursion::All)?;
            Ok(ToolResult::failed("no"))
        }),
        writing("panic", |context, file| {
            append(&context, &file)?;
            context.filesystem()?.delete(&path("empty"), Recursion::None)?;
            panic!("no")
        }),
        writing("expansion", |context, file| {
            append(&context, &file)?;
            let (sections, reason) = (vec!["details".to_owned()], "hidden".to_owned());
            Err(ToolError::VisibilityExpansionRequired { sections, reason })
        }),
    ];
    for tool in failing {
        let name = tool.name().as_str().to_owned();
        let (harness, workspace) = harness(vec![tool]).await;
        let before = root(&workspace);
        let messages = harness.live.state().await.view.transcript().unwrap().all().len();
        let end = harness.run(&name, json!({"path": "b.txt", "text": "half"})).await;
        assert_eq!(root(&workspace), before, "{name}");
        let state = harness.live.state().await;
        let call = state.view.calls().next().unwrap();
        let rescue = call.finished.as_ref().unwrap().record.rescue.unwrap();
        assert_ne!(rescue, before, "{name}: what was found is kept");
        let changes = workspace.diff(before, rescue).unwrap();
        assert!(changes.iter().any(|change| change.path == "b.txt"), "{name}: {changes:?}");
        let told = match end {
            CallOutcome::VisibilityExpansion { .. } => 1,
            _ => 2,
        };
        assert_eq!(state.view.transcript().unwrap().all().len(), messages + told, "{name}");
    }
}

#[tokio::test]
async fn what_a_person_edits_between_calls_is_not_undone() {
    let failing = writing("error", |context, file| {
        append(&context, &file)?;
        Err(ToolError::new("no"))
    });
    let (harness, workspace) = harness(vec![failing]).await;
    harness.run("error", json!({"path": "b.txt", "text": "half"})).await;
    workspace.filesystem().write_bytes(&path("mine.txt"), b"by hand", WriteMode::Create).unwrap();
    harness.run("error", json!({"path": "b.txt", "text": "half"})).await;
    assert_eq!(workspace.filesystem().read_text(&path("mine.txt")).unwrap(), "by hand");
    assert!(workspace.filesystem().stat(&path("b.txt")).is_err());
}

#[tokio::test]
async fn calls_of_one_turn_see_the_files_in_their_order() {
    let write = writing("write", |context, file| {
        append(&context, &file)?;
        Ok(ToolResult::ok("written"))
    });
    let read = Tool::builder("read", "Reads a file.").unwrap().effect(Effect::Pure).handler(
        |context: ToolContext, file: File| async move {
            let text = context.filesystem()?.read_text(&FilePath::new(&file.path)?)?;
            let refused = context.filesystem()?.write_bytes(&FilePath::new("x")?, b"", WriteMode::Create);
            assert!(refused.is_err(), "a tool that only reads cannot write");
            Ok(ToolResult::ok(text))
        },
    );
    let (harness, _) = harness(vec![write, read]).await;
    let mut calls = Vec::new();
    for (name, text) in [("write", "1"), ("read", ""), ("write", "2"), ("read", "")] {
        calls.push(harness.call(name, json!({"path": "c.txt", "text": text})).await);
    }
    let ends = harness.run_all(calls).await;
    let texts: Vec<_> = ends.iter().map(|end| end.message().unwrap().content()).collect();
    assert_eq!(texts, ["written", "1", "written", "12"]);
}

#[tokio::test]
async fn a_tool_without_files_gets_none() {
    let none = Tool::builder("none", "Has no files.").unwrap().workspace(WorkspaceUse::None).handler(
        |context: ToolContext, (): ()| async move {
            assert!(context.filesystem().is_err());
            Ok(ToolResult::ok("none"))
        },
    );
    let (harness, _) = harness(vec![none]).await;
    assert!(matches!(harness.run("none", json!({})).await, CallOutcome::Succeeded(_)));
}
