//! How Codex is started: its command line, and the thread that it works in.

use std::path::{Path, PathBuf};

use backstitch_core::ports::Sandbox;
use backstitch_runtime::{EngineError, EngineResume, EngineStart};
use serde_json::{Map, Value, json};

use super::point::{Continuation, continuation};
use crate::codex::TITLE;
use crate::codex::server::{AppServer, AppServerSpec, incomplete};
use crate::codex::thread::{ThreadId, thread_of};
use crate::process::allow_state;
use crate::program::Program;
use crate::relay::SERVER;

/// Returns how to start the app-server. `relay` is the command of the server of the agent's tools.
pub(super) fn specification(
    program: &Path,
    start: &EngineStart,
    relay: Option<Vec<String>>,
) -> AppServerSpec {
    let mut settings = Vec::new();
    if let Some((command, arguments)) = relay.as_deref().and_then(<[String]>::split_first) {
        // Strings of JSON are strings of TOML.
        settings.push(format!("mcp_servers.{SERVER}.command={}", json!(command)));
        settings.push(format!("mcp_servers.{SERVER}.args={}", json!(arguments)));
        // A call may wait for a person.
        settings.push(format!("mcp_servers.{SERVER}.tool_timeout_sec=86400"));
        settings.push(format!("mcp_servers.{SERVER}.required=true"));
    }
    let mut spec = AppServerSpec {
        program: program.to_string_lossy().into_owned(),
        settings,
        sandbox: start.sandbox.clone().map_or_else(Sandbox::off, with_state),
        mark: Some(start.mark),
        ..AppServerSpec::new(&start.directory)
    };
    spec.environment.insert("CODEX_THREAD_ID".to_owned(), None);
    spec
}

/// Allows the program to write its own state.
fn with_state(mut sandbox: Sandbox) -> Sandbox {
    if sandbox.is_off() {
        return sandbox;
    }
    allow_state(&mut sandbox, Program::Codex.home());
    sandbox
}

/// A thread that is open.
pub(super) struct OpenThread {
    pub(super) id: ThreadId,
    pub(super) transcript: Option<PathBuf>,
    pub(super) model: Option<String>,
}

/// Begins a thread, continues one, or continues with a fork of one.
pub(super) async fn open_thread(
    server: &mut AppServer,
    start: &EngineStart,
) -> Result<OpenThread, EngineError> {
    let (method, named) = match &start.resume {
        None => ("thread/start", Map::new()),
        Some(resume) => continue_thread(server, resume).await?,
    };
    let mut params = Map::from_iter([
        ("cwd".to_owned(), json!(start.directory)),
        ("approvalPolicy".to_owned(), json!("untrusted")),
        ("approvalsReviewer".to_owned(), json!("user")),
        ("sandbox".to_owned(), json!("danger-full-access")),
    ]);
    params.extend(named);
    params.extend(start.model.as_ref().map(|model| ("model".to_owned(), json!(model))));
    let system = start.system.as_ref().filter(|system| !system.trim().is_empty());
    params.extend(system.map(|system| ("developerInstructions".to_owned(), json!(system))));
    let answer = match (server.request(method, Value::Object(params)).await, &start.resume) {
        (Err(EngineError::Failed { .. }), Some(resume)) => return Err(gone(resume)),
        (answer, _) => answer?,
    };
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(OpenThread {
        id: thread_of(&answer).ok_or_else(|| incomplete(method, "thread.id"))?,
        transcript: text("/thread/path").map(PathBuf::from).filter(|path| path.is_absolute()),
        model: text("/model").or_else(|| text("/thread/model")),
    })
}

/// Returns the request that continues a conversation, and its parameters.
async fn continue_thread(
    server: &mut AppServer,
    resume: &EngineResume,
) -> Result<(&'static str, Map<String, Value>), EngineError> {
    let thread = ThreadId::new(&resume.session).ok_or_else(|| gone(resume))?;
    let params = json!({"threadId": thread.as_str(), "includeTurns": true});
    let read = match server.request("thread/read", params).await {
        Err(EngineError::Failed { .. }) => return Err(gone(resume)),
        read => read?,
    };
    match continuation(&read, &resume.after).ok_or_else(|| gone(resume))? {
        Continuation::Whole => {
            let named = ("threadId".to_owned(), json!(thread.as_str()));
            let method = if resume.is_shared { "thread/fork" } else { "thread/resume" };
            Ok((method, Map::from_iter([named])))
        }
        Continuation::Cut(cut) => Ok(("thread/fork", cut.params(&thread))),
    }
}

fn gone(resume: &EngineResume) -> EngineError {
    EngineError::SessionGone { title: TITLE.to_owned(), session: resume.session.clone() }
}
