//! Sub-agents: a shop with a caller and its sub-agent, a tailor, over files in memory.

mod budgets;
mod moved;
mod resources;
mod sessions;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::SessionId;
use backstitch_core::journal::Effect;
use backstitch_core::ports::WriteMode;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{Agent, Driver, Runtime, SessionOptions, SubAgent, Tools, read_records};
use backstitch_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tailor::scripted;

#[derive(Deserialize, JsonSchema)]
struct Write {
    path: String,
    text: String,
}

/// A tool that writes a file, and counts its runs. With the text `wait` the first attempt waits until it is
/// cancelled; with `fail` it fails.
pub(super) fn write(effect: Effect, ran: &Arc<AtomicUsize>) -> Tool {
    let ran = ran.clone();
    Tool::builder("write", "Writes a file.").unwrap().effect(effect).workspace(WorkspaceUse::Write).handler(
        move |context: ToolContext, write: Write| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                let path = FilePath::new(&write.path)?;
                context.filesystem()?.write_bytes(&path, write.text.as_bytes(), WriteMode::Overwrite)?;
                match write.text.as_str() {
                    "wait" if context.attempt() == 1 => context.cancelled().await,
                    "fail" => return Err(ToolError::new("it tore")),
                    _ => {}
                }
                Ok(ToolResult::ok(format!("wrote {}", write.path)))
            }
        },
    )
}

/// A call that writes a file.
pub(super) fn writes(path: &str, text: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "text": text}))
}

/// A call of the sub-agent.
pub(super) fn asks(mission: &str) -> (&'static str, Value) {
    ("tailor", json!({"mission": mission}))
}

/// The environment of a caller and its sub-agent, with files in memory.
pub(super) struct Shop {
    pub(super) runtime: Runtime,
    pub(super) files: Arc<MemoryFilesystem>,
    pub(super) options: Box<dyn Fn() -> SessionOptions + Send + Sync>,
    pub(super) ran: Arc<AtomicUsize>,
}

impl Shop {
    pub(super) fn new() -> Self {
        let (store, files) = (Arc::new(MemoryStore::new()), Arc::new(MemoryFilesystem::new()));
        let workspace = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
        let options = Box::new(move || SessionOptions::with_workspace(workspace.clone()));
        Self { runtime: Runtime::new(store), files, options, ran: Arc::default() }
    }

    /// The sub-agent.
    pub(super) fn tailor(&self, effect: Effect, replies: Vec<ScriptedReply>) -> Agent {
        let mut tailor = scripted(replies).tools(Tools::new([write(effect, &self.ran)]).unwrap());
        tailor.key = "helper".into();
        tailor
    }

    pub(super) async fn create(&self, caller: Agent) -> Driver {
        self.runtime.create(caller, (self.options)()).await.unwrap()
    }

    pub(super) fn file(&self, path: &str) -> Option<String> {
        use backstitch_core::ports::Filesystem as _;
        let bytes = self.files.read_bytes(&FilePath::new(path).unwrap()).ok()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The child sessions of a session, in the order of its calls.
    pub(super) async fn children(&self, session: SessionId) -> Vec<SessionId> {
        let view = self.runtime.view(session).await.unwrap();
        view.calls().filter_map(|call| call.session()).collect()
    }

    pub(super) async fn kinds(&self, session: SessionId) -> Vec<&'static str> {
        let start = backstitch_core::journal::Position::START;
        let records = read_records(&**self.runtime.store(), session, start, None).await.unwrap();
        records.iter().map(|record| record.body.kind()).collect()
    }
}

/// A caller with a sub-agent.
pub(super) fn with_agent(caller: Vec<ScriptedReply>, agent: SubAgent) -> Agent {
    scripted(caller).tools(Tools::new([agent.into_tool()]).unwrap())
}

/// The agent as a tool of its caller.
pub(super) fn sub_agent(agent: Agent) -> SubAgent {
    SubAgent::new("tailor", "Mends clothes.", agent).unwrap()
}

/// The results of the caller's calls.
pub(super) async fn results(driver: &Driver) -> Vec<String> {
    let transcript = driver.session().state().await.view.transcript().unwrap();
    let results = transcript.all().iter().filter(|message| message.tool_call_id().is_some());
    results.map(|message| message.content()).collect()
}
