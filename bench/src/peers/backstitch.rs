//! The job on Backstitch, in a process of its own, as `job.py` describes it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch_core::journal::Effect;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{ScriptedCall, ScriptedReply};
use backstitch_runtime::{Agent, ResumeOptions, Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use serde_json::Map;

use super::{DIRECTORY, MODE, TURNS};
use crate::agent::{Failed, scripted};
use crate::report::Report;

/// The arguments of the tool.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Row {
    row: usize,
}

/// Does a job for each line of standard input.
pub(super) fn run(_: &mut Report) {
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failed::from)
        .and_then(|runtime| runtime.block_on(work()));
    if let Err(error) = done {
        eprintln!("peers: {error}");
    }
}

async fn work() -> Result<(), Failed> {
    let (directory, mode) = (PathBuf::from(std::env::var(DIRECTORY)?), std::env::var(MODE)?);
    let runtime = Runtime::new(Arc::new(SqliteStore::open(directory.join("store/store.db"))?));
    for name in std::io::stdin().lines() {
        let (agent, file) = (agent(&directory, &mode)?, directory.join(name?));
        let driver = if mode == "resume" {
            let session = std::fs::read_to_string(&file)?.parse()?;
            let driver = runtime.open(session, agent, SessionOptions::default()).await?;
            driver.resume(ResumeOptions::default()).await?;
            driver
        } else {
            let driver = runtime.create(agent, SessionOptions::default()).await?;
            if mode == "hang" {
                std::fs::write(&file, driver.session().id().to_string())?;
            }
            driver.start("Sew the coat.").await?;
            driver
        };
        driver.session().release().await?;
        println!("done");
    }
    Ok(())
}

/// The agent with its scripted model.
fn agent(directory: &Path, mode: &str) -> Result<Agent, Failed> {
    static HAS_CALLED: AtomicBool = AtomicBool::new(false);
    let text = |row: usize| format!("Row {row} is next. {}", "So it goes. ".repeat(10));
    let call = |row: usize| {
        let arguments = Map::from_iter([("row".to_owned(), row.into())]);
        ScriptedReply::text(text(row)).call(ScriptedCall::new("sew", arguments))
    };
    let replies = (0..TURNS).map(call).chain([ScriptedReply::text(text(TURNS))]).collect();
    let (calls, mode) = (directory.join("calls"), mode.to_owned());
    let tool = Tool::builder("sew", "Sews a row.")?
        .effect(Effect::Idempotent)
        .workspace(WorkspaceUse::None)
        .handler(move |_, Row { row }: Row| {
            let (calls, mode) = (calls.clone(), mode.clone());
            async move {
                let mut log = std::fs::OpenOptions::new().create(true).append(true).open(calls)?;
                writeln!(log, "{mode} {row}")?;
                if !HAS_CALLED.swap(true, Ordering::SeqCst) {
                    println!("call");
                }
                if mode == "hang" && row == TURNS / 2 {
                    println!("hangs");
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                }
                Ok(ToolResult::ok(format!("Row {row} is sewn. {}", "Stitch. ".repeat(25))))
            }
        });
    scripted(replies, tool)
}
