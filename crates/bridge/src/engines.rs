//! The engines whose programs may be installed on this machine.

use std::sync::Arc;

use backstitch_runtime::{Engine, EngineError, EngineFuture, EngineRun, EngineStart, Engines};

use crate::claude_code::{ClaudeRun, READS};
use crate::codex::CodexRun;
use crate::installed::InstalledProgram;
use crate::program::Program;
use crate::relay::RelayCommand;

/// The engines whose programs may be installed on this machine.
#[derive(Debug, Clone, Copy)]
pub struct InstalledEngines {
    /// Returns the API key in an environment variable. A program gets only the keys that it uses itself.
    pub key: fn(&str) -> Option<String>,
    /// The command by which a program reaches the tools of its agent.
    pub relay: RelayCommand,
}

impl Engines for InstalledEngines {
    fn open(&self, name: &str) -> Result<Arc<dyn Engine>, EngineError> {
        let Some(program) = Program::of_name(name) else {
            let known = Program::ALL.map(Program::name).join(", ");
            return Err(EngineError::Unknown { name: name.to_owned(), known });
        };
        Ok(Arc::new(InstalledProgram::find(program, self.key, self.relay)?))
    }
}

impl Engine for InstalledProgram {
    fn name(&self) -> &str {
        self.program.name()
    }

    fn title(&self) -> &str {
        self.program.title()
    }

    fn only_reads(&self, tool: &str) -> bool {
        self.program == Program::ClaudeCode && READS.contains(&tool)
    }

    fn provider(&self) -> Option<&str> {
        // Claude Code reports what it costs.
        (self.program == Program::Codex).then(|| self.program.provider())
    }

    fn waits_after_calls(&self) -> bool {
        self.program == Program::ClaudeCode
    }

    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>> {
        Box::pin(async move {
            let run: Box<dyn EngineRun> = match self.program {
                Program::ClaudeCode => Box::new(ClaudeRun::start(self, start).await?),
                Program::Codex => Box::new(CodexRun::start(self, start).await?),
            };
            Ok(run)
        })
    }
}
