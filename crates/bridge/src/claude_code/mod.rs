//! Claude Code as an engine, driven over its control protocol.
//!
//! `claude -p` reads and writes lines of JSON. Before the prompt, `initialize` registers callbacks for its hook events,
//! which the program awaits. So each call is held until the files before it are captured and the rules about calls have
//! been applied, without any command in the settings of the user. Those settings stay as they are: what they deny stays
//! denied.

mod command;
mod protocol;
mod run;
mod transcript;
mod usage;

use std::path::PathBuf;

use backstitch_runtime::{Engine, EngineError, EngineFuture, EngineRun, EngineStart};

use crate::installed::{ProgramNeed, Version};
use crate::{InstalledEngines, RelayCommand};

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
    pub(crate) const NAME: &str = "claude-code";
    pub(crate) const TITLE: &str = "Claude Code";

    pub(crate) const NEED: ProgramNeed = ProgramNeed {
        engine: Self::NAME,
        title: Self::TITLE,
        program: "claude",
        install: "Install it with `npm install -g @anthropic-ai/claude-code`, and log in with `claude`",
        oldest: Version(2, 1, 0),
    };

    /// What a user does about a key or login that is refused.
    const LOGIN: &str = "Log in with `claude`, or set another ANTHROPIC_API_KEY";

    /// Finds the program.
    pub(crate) fn find(engines: InstalledEngines) -> Result<Self, EngineError> {
        let keys = KEYS.iter().filter_map(|name| Some((*name, (engines.key)(name)?))).collect();
        Ok(Self { program: Self::NEED.find()?, keys, relay: engines.relay })
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
