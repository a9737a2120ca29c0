//! Engines: Claude Code and Codex do the work of an agent, and Backstitch records it.
//!
//! The port is in the runtime ([`Engine`]); this crate has an adapter for each program, in a folder of its own, and what
//! they share: finding a program and its version, its process and its lines, and the socket on which the tools of the
//! agent are served to it.
//!
//! The programs change often. Their output is input from outside: fields and events that are not known are ignored, a
//! line that cannot be understood is an [`EngineError`], and nothing is trusted to be small.

#![cfg(unix)]

mod claude_code;
pub mod codex;
mod installed;
mod lines;
mod process;
mod relay;
pub mod transcript;

use std::sync::Arc;

use backstitch_runtime::{Engine, EngineError, Engines};

pub use installed::{Installation, installations};
pub use relay::{RelayCommand, relay};

use claude_code::ClaudeCode;
use codex::Codex;

/// A variable that the programs of engines are started with. The guard's hooks do nothing where it is set: the engine's
/// calls are recorded already.
pub const ENGINE_VARIABLE: &str = "BACKSTITCH_ENGINE";

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
        match name {
            ClaudeCode::NAME => Ok(Arc::new(ClaudeCode::find(*self)?)),
            Codex::NAME => Ok(Arc::new(Codex::find(*self)?)),
            _ => {
                let known = format!("{}, {}", ClaudeCode::NAME, Codex::NAME);
                Err(EngineError::Unknown { name: name.to_owned(), known })
            }
        }
    }
}
