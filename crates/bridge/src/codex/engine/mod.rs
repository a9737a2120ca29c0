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
use crate::installed::{ProgramNeed, Version};
use crate::{InstalledEngines, RelayCommand};

/// The variables with API keys that it uses if it is not logged in.
const KEYS: [&str; 2] = ["OPENAI_API_KEY", "CODEX_API_KEY"];

/// The provider, in records of requests.
const PROVIDER: &str = "openai";

/// The engine.
#[derive(Clone)]
pub(crate) struct Codex {
    program: PathBuf,
    keys: Vec<(&'static str, String)>,
    relay: RelayCommand,
}

impl Codex {
    pub(crate) const NAME: &str = "codex";

    pub(crate) const NEED: ProgramNeed = ProgramNeed {
        engine: Self::NAME,
        title: TITLE,
        program: "codex",
        install: "Install it with `npm install -g @openai/codex`, and log in with `codex login`",
        oldest: Version(0, 160, 0),
    };

    /// Finds the program.
    pub(crate) fn find(engines: InstalledEngines) -> Result<Self, EngineError> {
        let keys = KEYS.iter().filter_map(|name| Some((*name, (engines.key)(name)?))).collect();
        Ok(Self { program: Self::NEED.find()?, keys, relay: engines.relay })
    }
}

impl Engine for Codex {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn title(&self) -> &str {
        TITLE
    }

    fn provider(&self) -> Option<&str> {
        Some(PROVIDER)
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
