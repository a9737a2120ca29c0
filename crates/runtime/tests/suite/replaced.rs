//! A session whose own tools remove its store stops with an error that names the store and the salvaged copy.

use std::path::Path;
use std::sync::Arc;

use backstitch_core::journal::{Effect, Position, RecordBody};
use backstitch_core::ports::{ProcessSpec, Store as _, StoreError};
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_runtime::{Runtime, RuntimeError, SessionOptions, Tools, read_records};
use backstitch_store::SqliteStore;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::tailor::{reply, scripted};

#[derive(Deserialize, JsonSchema)]
struct Command {
    command: String,
}

fn shell() -> Tool {
    let builder = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::Workspace);
    builder.workspace(WorkspaceUse::Write).handler(|context: ToolContext, command: Command| async move {
        let outcome = context.run_process(ProcessSpec::shell(command.command)).await?;
        Ok(ToolResult::ok(outcome.exit.to_string()))
    })
}

/// Runs a session that calls the shell once, with its store inside of its files. Returns its answer.
async fn run(directory: &Path, command: &str) -> Result<String, RuntimeError> {
    std::fs::write(directory.join("file"), "content").unwrap();
    let path = directory.join(".backstitch/store.db");
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let mut options = OpenOptions::new(directory, directory.join(".backstitch"), store.clone());
    options.locks = Some(directory.with_extension("locks"));
    let workspace = Arc::new(HostWorkspace::open(options).unwrap());
    let replies = vec![reply("first", &[("shell", json!({"command": command}))]), reply("Done.", &[])];
    let agent = scripted(replies).tools(Tools::new([shell()]).unwrap());
    let runtime = Runtime::new(store);
    let driver = runtime.create(agent, SessionOptions::with_workspace(workspace)).await?;
    let ended = driver.start("sew").await?;
    Ok(ended.answer().unwrap().text.to_string())
}

#[tokio::test]
async fn a_session_stops_when_its_store_is_removed_or_replaced() {
    let ways = [
        "rm -rf .backstitch",
        "git init -q && git clean -fdxq",
        "mv .backstitch elsewhere",
        "rm .backstitch/store.db-wal",
        "rm .backstitch/store.db && touch .backstitch/store.db",
    ];
    for way in ways {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("files");
        std::fs::create_dir(&directory).unwrap();
        let error = run(&directory, way).await.unwrap_err();
        let RuntimeError::Store(StoreError::Replaced { path, copy: Some(copy), .. }) = &error else {
            panic!("{way}: {error:?}")
        };
        assert_eq!(*path, directory.join(".backstitch/store.db"), "{way}");
        let saved = SqliteStore::open(copy).unwrap();
        let [session] = saved.sessions().await.unwrap()[..] else { panic!("{way}") };
        let records = read_records(&saved, session, Position::START, None).await.unwrap();
        let started = |body: &RecordBody| matches!(body, RecordBody::CallStarted(_));
        assert!(records.iter().any(|record| started(&record.body)), "{way}: the copy has the records");
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("files");
    std::fs::create_dir(&directory).unwrap();
    assert_eq!(run(&directory, "rm file").await.unwrap(), "Done.");
}
