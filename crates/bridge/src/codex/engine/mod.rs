//! Codex as an engine.
//!
//! Its approval policy is set to ask about everything. So the app-server requests an approval before each command, each
//! change of files and each call of a server's tool, and holds the call until it is answered. That is where the files before
//! the call are captured and the rules about calls are applied. The report of the end of a call is not held; but no other
//! call runs before its own approval is answered, which happens after the files have been captured. So the files of each call
//! are exact without a hook in the settings of the user. Calls of one answer overlap, and share their changes.
//!
//! The sandbox of Codex is off in such a run: that of the session applies to the program and everything that it starts.
//!
//! A conversation continues as the same thread, or as a fork of it after a turn. Codex cannot cut inside of a turn; if more of a
//! turn was undone than calls that did not end, the engine reports that the conversation is gone, and the driver passes the
//! recorded one to a new thread.

mod approval;
mod item;
mod point;
mod run;
mod start;

use std::path::PathBuf;

use backstitch_runtime::{Engine, EngineError, EngineFuture, EngineRun, EngineStart};

use super::TITLE;
use crate::installed::find_command;
use crate::program::Program;
use crate::relay::RelayCommand;

/// The variables with API keys that it uses if it is not logged in.
const KEYS: [&str; 2] = ["OPENAI_API_KEY", "CODEX_API_KEY"];

/// The engine.
#[derive(Clone)]
pub(crate) struct Codex {
    program: PathBuf,
    keys: Vec<(&'static str, String)>,
    relay: RelayCommand,
}

impl Codex {
    /// Finds the program. `key` returns the API key in an environment variable.
    pub(crate) fn find(key: fn(&str) -> Option<String>, relay: RelayCommand) -> Result<Self, EngineError> {
        let keys = KEYS.iter().filter_map(|name| Some((*name, key(name)?))).collect();
        Ok(Self { program: find_command(Program::Codex)?, keys, relay })
    }
}

impl Engine for Codex {
    fn name(&self) -> &str {
        Program::Codex.name()
    }

    fn title(&self) -> &str {
        TITLE
    }

    fn provider(&self) -> Option<&str> {
        Some(Program::Codex.provider())
    }

    fn waits_after_calls(&self) -> bool {
        false
    }

    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>> {
        Box::pin(async move {
            let run = run::CodexRun::start(self, start).await?;
            Ok(Box::new(run) as Box<dyn EngineRun>)
        })
    }
}
