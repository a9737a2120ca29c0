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

/// The engine.
#[derive(Debug, Clone)]
pub(crate) struct ClaudeCode {
    program: PathBuf,
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

    /// Finds the program.
    pub(crate) fn find() -> Result<Self, EngineError> {
        Ok(Self { program: Self::NEED.find()? })
    }
}

impl Engine for ClaudeCode {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn title(&self) -> &str {
        Self::TITLE
    }

    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>> {
        Box::pin(async move {
            let run = run::ClaudeRun::start(&self.program, start).await?;
            Ok(Box::new(run) as Box<dyn EngineRun>)
        })
    }
}
