//! Claude Code as an engine, driven over its control protocol.
//!
//! `claude -p` reads and writes lines of JSON. Before the prompt, `initialize` registers callbacks for its hook events,
//! which the program awaits. So each call is held until the files before it are captured and the rules about calls have
//! been applied, without any command in the settings of the user. Those settings stay as they are: what they deny stays
//! denied.

mod command;
mod protocol;
mod run;
mod usage;

use std::path::PathBuf;

use backstitch_runtime::{Engine, EngineError, EngineFuture, EngineRun, EngineStart};

use crate::installed::find_command;
use crate::program::Program;
use crate::relay::RelayCommand;

/// Tools that change nothing. The calls of a sub-agent are asked about one by one.
const READS: [&str; 14] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskOutput",
    "Task",
    "Agent",
    "Skill",
];

/// The variables with the API key, or with the token of a gateway.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];

/// The engine.
#[derive(Clone)]
pub(crate) struct ClaudeCode {
    program: PathBuf,
    /// The variables with keys, which are not in the environment of this process.
    keys: Vec<(&'static str, String)>,
    relay: RelayCommand,
}

impl ClaudeCode {
    const NAME: &str = Program::ClaudeCode.name();
    const TITLE: &str = Program::ClaudeCode.title();

    /// What a user does about a key or login that is refused.
    const LOGIN: &str = "Log in with `claude`, or set another ANTHROPIC_API_KEY";

    /// Finds the program. `key` returns the API key in an environment variable.
    pub(crate) fn find(key: fn(&str) -> Option<String>, relay: RelayCommand) -> Result<Self, EngineError> {
        let keys = KEYS.iter().filter_map(|name| Some((*name, key(name)?))).collect();
        Ok(Self { program: find_command(Program::ClaudeCode)?, keys, relay })
    }
}

impl Engine for ClaudeCode {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn title(&self) -> &str {
        Self::TITLE
    }

    fn only_reads(&self, tool: &str) -> bool {
        READS.contains(&tool)
    }

    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>> {
        Box::pin(async move {
            let run = run::ClaudeRun::start(self, start).await?;
            Ok(Box::new(run) as Box<dyn EngineRun>)
        })
    }
}
