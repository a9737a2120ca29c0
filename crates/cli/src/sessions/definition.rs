//! What a session is driven by, as data: it is recorded with the session, so that `resume` needs nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::journal::Effect;
use backstitch::message::PolicyName;
use backstitch::tools::{Shell, file_tools};
use backstitch::view::JournalView;
use backstitch::{Agent, Script, ScriptedPolicy, Tools};
use serde::{Deserialize, Serialize};

/// What a session is driven by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Definition {
    /// The replies of a scripted policy.
    pub(super) script: Script,
    /// The system message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system: Option<String>,
    /// The directory of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<PathBuf>,
    /// What the shell may do to the world.
    #[serde(default)]
    pub(super) shell_effect: Effect,
    /// How many answers an evaluation may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_turns: Option<u64>,
}

impl Definition {
    /// What a session was recorded with.
    pub(super) fn of(view: &JournalView) -> anyhow::Result<Self> {
        let agent = &view.created().agent;
        serde_json::from_value(agent.clone())
            .context("the session was not started by this command, so it cannot be driven by it")
    }

    pub(super) fn agent(&self) -> anyhow::Result<Agent> {
        let policy = ScriptedPolicy::new(PolicyName::new("scripted")?, self.script.clone());
        let mut tools = file_tools();
        tools.push(Shell::default().effect(self.shell_effect).tool());
        let mut agent = Agent::new("cli", "run", Arc::new(policy))
            .with_tools(Tools::new(tools)?)
            .with_definition(serde_json::to_value(self)?);
        if let Some(system) = &self.system {
            agent = agent.with_system(system);
        }
        if let Some(turns) = self.max_turns {
            agent = agent.with_max_turns(turns);
        }
        Ok(agent)
    }
}

/// Reads a script: TOML, or JSON.
pub(super) fn read_script(text: &str, is_json: bool) -> anyhow::Result<Script> {
    match is_json {
        true => serde_json::from_str(text).context("the script is not what a script looks like"),
        false => toml::from_str(text).context("the script is not what a script looks like"),
    }
}
