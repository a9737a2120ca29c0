//! The engines whose programs may be installed on this machine.

use std::sync::Arc;

use backstitch_runtime::{Engine, EngineError, Engines};

use crate::claude_code::ClaudeCode;
use crate::codex::Codex;
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
        match Program::of_name(name) {
            Some(Program::ClaudeCode) => Ok(Arc::new(ClaudeCode::find(self.key, self.relay)?)),
            Some(Program::Codex) => Ok(Arc::new(Codex::find(self.key, self.relay)?)),
            None => {
                let known = Program::ALL.map(Program::name).join(", ");
                Err(EngineError::Unknown { name: name.to_owned(), known })
            }
        }
    }
}
