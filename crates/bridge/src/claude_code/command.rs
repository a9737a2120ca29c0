//! The command line of Claude Code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{EngineError, EnginePoint, EngineResume, EngineStart};
use serde_json::json;

use super::{NAME, TITLE};
use crate::process::{ENGINE_VARIABLE, allow_state};
use crate::program::Program;
use crate::relay::SERVER;
use crate::settings::create_private;
use crate::transcript::ClaudeTranscript;

/// Variables by which the program recognizes that it was started by itself.
const NESTED: [&str; 4] =
    ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR"];

/// Returns the process to start. `relay` is the command of the server of the agent's tools.
pub(super) fn specification(
    program: &Path,
    start: &EngineStart,
    relay: Option<Vec<String>>,
) -> Result<ProcessSpec, EngineError> {
    let flags = ["-p", "--verbose", "--include-partial-messages", "--permission-prompt-tool", "stdio"];
    let formats = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut words: Vec<String> = flags.into_iter().chain(formats).map(str::to_owned).collect();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(model) = &start.model {
        option("--model", model.clone());
    }
    if let Some(system) = start.system.as_ref().filter(|system| !system.trim().is_empty()) {
        option("--append-system-prompt", system.clone());
    }
    if let Some(money) = start.money_micros {
        #[expect(clippy::cast_precision_loss, reason = "an amount of money that a person wrote")]
        option("--max-budget-usd", format!("{:.6}", money.max(1) as f64 / 1_000_000.0));
    }
    if let Some(relay) = relay {
        let (command, arguments) =
            relay.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let servers = json!({ "mcpServers": { SERVER: { "command": command, "args": arguments } } });
        option("--mcp-config", servers.to_string());
    }
    match &start.resume {
        None => option("--session-id", new_id()?),
        Some(resume) => {
            // By its id it is found in its own directory only.
            let transcript = resume.transcript.as_ref().filter(|_| resume.is_shared);
            let named = transcript.map(|path| path.to_string_lossy().into_owned());
            option("--resume", named.unwrap_or_else(|| resume.session.clone()));
            let record = record_of(resume)?;
            let is_copied = record.is_some() || resume.is_shared;
            if let Some(record) = record {
                option("--resume-session-at", record);
            }
            if is_copied {
                words.push("--fork-session".to_owned());
            }
        }
    }
    let mut spec = ProcessSpec::new(program.to_string_lossy()).args(words).env(ENGINE_VARIABLE, NAME);
    for name in NESTED {
        spec = spec.without_env(name);
    }
    if let Some(sandbox) = &start.sandbox {
        spec = spec.sandbox(with_state(sandbox.clone()));
    }
    Ok(spec)
}

/// Allows the program to write its own state.
fn with_state(mut sandbox: Sandbox) -> Sandbox {
    if sandbox.is_off() {
        return sandbox;
    }
    let own = Program::ClaudeCode.home();
    // What does not exist cannot be made writable. Without its directory the program forgets the conversation.
    if let Some(own) = &own {
        let _ = create_private(own);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let below = |name: &str| home.as_ref().map(|home| home.join(name));
    let state = [own, below(".claude"), below(".claude.json"), below(".cache/claude-cli-nodejs")];
    allow_state(&mut sandbox, state.into_iter().flatten());
    sandbox
}

/// Returns the record of the transcript after which a conversation continues. `None` is its end.
fn record_of(resume: &EngineResume) -> Result<Option<String>, EngineError> {
    // Without the place of the transcript, the program itself knows whether it has the conversation.
    let Some(path) = &resume.transcript else { return Ok(None) };
    let gone = || EngineError::SessionGone { title: TITLE.to_owned(), session: resume.session.clone() };
    let transcript = ClaudeTranscript::read(path).ok_or_else(gone)?;
    let undone = resume.after.iter().filter_map(|point| match point {
        EnginePoint::Before(call) => Some(call.as_str()),
        EnginePoint::Call(_) | EnginePoint::Answer(_) => None,
    });
    let undone: HashSet<&str> = undone.collect();
    let found = resume.after.iter().find_map(|point| match point {
        EnginePoint::Call(call) => transcript.record_of_result(call),
        EnginePoint::Before(call) => transcript.record_before(call, &undone),
        EnginePoint::Answer(prompt) => transcript.record_of_answer(prompt),
    });
    let record = found.ok_or_else(gone)?;
    Ok((!transcript.ends_with(&record)).then_some(record))
}

/// Returns a new id in the form that the program accepts.
fn new_id() -> Result<String, EngineError> {
    let clock = std::sync::Arc::new(backstitch_runtime::SystemClock::default());
    let failed = |reason: String| EngineError::Start { title: TITLE.to_owned(), reason };
    let ids = backstitch_runtime::fresh_ids(clock).map_err(|error| failed(error.to_string()))?;
    let id: backstitch_core::id::SessionId = ids.next();
    Ok(id.to_string())
}
