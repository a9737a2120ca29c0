//! The arguments that define an agent, and those that change the agent of a session.

use std::path::PathBuf;

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BudgetDefinition, ModelName, Span, check_base_url};
use backstitch::mode::{AgentMode, RightsChoice};
use backstitch::ports::{SandboxMode, SandboxSockets};
use backstitch::providers::ThinkingBudget;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::building::switch_model;
use crate::config::ApproveSetting;
use crate::trust::addresses;
use crate::usage::{self, Usage};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ShellEffect {
    /// Any effect. After a crash, a person decides what happened to an interrupted command.
    External,
    /// Only files of the workspace. After a crash, they are restored and the command runs again.
    Workspace,
}

/// Sockets of this machine that commands may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Sockets {
    /// None, except connected pairs.
    Off,
    /// Those inside of the workspace; none where the kernel cannot tell them apart.
    Inside,
    /// All, such as those of docker, an ssh agent, tmux and the display. Through them a command can leave the sandbox.
    On,
}

/// Whether commands may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Network {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum AnswerForm {
    /// Text and tool calls.
    Tools,
    /// Programs of the agent language, which call tools.
    Lisp,
}

/// The model and its limits.
#[derive(Args)]
pub(crate) struct ModelFlags {
    /// Model: openai:NAME, openai-chat:NAME, anthropic:NAME, gemini:NAME, or scripted:FILE for a file of
    /// replies. Default: that of the agent file or of the session.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    pub(super) model: Option<ModelName>,
    /// Base URL of the model's API. Default: the provider's own.
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// Effort of the model, as its provider names it, such as low, medium or high. Default: that of the agent, else the
    /// provider's own.
    #[arg(long, value_name = "WORD")]
    pub(super) effort: Option<String>,
    /// Thinking of the model: default, adaptive, or a number of tokens. Default: that of the agent, else the provider's own.
    #[arg(long, value_name = "TOKENS|adaptive", value_parser = thinking)]
    pub(super) thinking: Option<ThinkingBudget>,
    /// Context window of the model in tokens. Longer conversations are sent without older results. Default:
    /// that of a known model.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(super) window: Option<u64>,
    /// Maximum number of retries of a request that failed. Default: that of the agent or of the settings, else 10, for
    /// more than a minute.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(super) retries: Option<u32>,
    /// Maximum spending of an evaluation, such as tokens=100000,turns=20,calls=50,money=2.5,time=10m.
    /// Default: that of the agent, else no limit.
    #[arg(long, value_name = "LIMITS", value_parser = budget)]
    pub(crate) budget: Option<BudgetDefinition>,
    /// Maximum active time of an evaluation, such as 90s or 10m. Default: that of the agent, else no limit.
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<Span>,
    /// Show the reasoning of the model on a terminal, where the provider sends it.
    #[arg(long)]
    pub(crate) reasoning: bool,
}

/// Whether an agent needs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelNeed {
    Required,
    /// Only its tools are used.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only the MCP server needs no model"))]
    Optional,
}

/// The agent.
#[derive(Args)]
pub(crate) struct AgentFlags {
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// TOML file that defines the agent. The other options override it. Default: an agent with the command's own
    /// instructions and those of the project.
    #[arg(long, value_name = "FILE")]
    pub(super) agent: Option<PathBuf>,
    /// Text of the system message, in place of the command's own instructions and those of the project. Default:
    /// that of the agent file, else these instructions.
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,
    /// Form of the agent's answers. Default: tools.
    #[arg(long, value_enum, value_name = "FORM")]
    pub(super) answers: Option<AnswerForm>,
    /// JSON file that programs read as data/NAME, with --answers lisp. Can be repeated. Default: no data.
    #[arg(long, value_name = "NAME=FILE.json")]
    pub(super) data: Vec<String>,
    /// Type of the answer, such as {count :int, items [{id :int}]}, with --answers lisp. Default: any value.
    #[arg(long, value_name = "TEXT")]
    pub(super) signature: Option<String>,
    /// Strategy that shortens earlier turns in requests: on, off, or a name. Default: on for programs, off
    /// for tool calls.
    #[arg(long, value_name = "NAME|off")]
    pub(super) compression: Option<String>,
    /// Tools that the agent may call: all (files and the shell), none, or names separated by commas. Default:
    /// all.
    #[arg(long, value_name = "NAMES")]
    pub(super) tools: Option<String>,
    /// What runs without a question: plan (only what changes nothing), ask (you are asked before each change and each
    /// command), auto (you are asked before what leaves the sandbox), or full (nothing is asked or confined; confirmed once for
    /// a project). The following options change single rights of it. Default: that of the agent file, else auto, and ask
    /// where the system cannot confine commands.
    #[arg(long, value_name = "MODE")]
    pub(super) mode: Option<AgentMode>,
    /// Calls that need the approval of a person: auto (as in the mode auto), ask (every call that can change something), or
    /// names of tools separated by commas. Default: what the mode asks about.
    #[arg(long, value_name = "WHICH")]
    pub(super) approve: Option<String>,
    /// Possible effects of shell commands. Default: external.
    #[arg(long, value_enum)]
    pub(super) shell_effect: Option<ShellEffect>,
    /// Files that shell commands may write: workspace (and $TMPDIR), read-only (only $TMPDIR), or off (all).
    /// Default: that of the agent file, else workspace.
    #[arg(long, value_name = "MODE")]
    pub(super) sandbox: Option<SandboxMode>,
    /// Whether shell commands may use the network. Default: that of the agent file, else off, and on with an engine. MCP
    /// servers have their own.
    #[arg(long, value_enum)]
    pub(super) network: Option<Network>,
    /// Sockets of other programs on this machine that shell commands may reach. Default: that of the agent file, else
    /// inside.
    #[arg(long, value_enum)]
    pub(super) sockets: Option<Sockets>,
    /// Leave out the MCP servers of the settings and of the project. Default: they are offered.
    #[arg(long)]
    pub(super) no_mcp: bool,
    /// Maximum number of turns of an evaluation. Default: 5 for programs, no limit for tool calls.
    #[arg(long, value_name = "N")]
    pub(super) max_turns: Option<u64>,
    /// Directory that the agent works in. Default: that of the agent file, else the current directory.
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Work in a copy of the directory. `backstitch apply` brings the changes back. Default: that of the agent file, else
    /// off.
    #[arg(long)]
    pub(super) isolated: bool,
}

impl AgentFlags {
    /// Returns what the flags say about the rights of the agent.
    pub(super) fn rights(&self) -> RightsChoice {
        let sockets = self.sockets.map(|sockets| match sockets {
            Sockets::Off => SandboxSockets::Off,
            Sockets::Inside => SandboxSockets::Inside,
            Sockets::On => SandboxSockets::On,
        });
        RightsChoice {
            mode: self.mode,
            sandbox: self.sandbox,
            network: self.network.map(|network| network == Network::On),
            sockets,
            asks: self.approve.as_deref().and_then(|which| ApproveSetting::of_list(which).asks()),
        }
    }

    /// Returns the mode that a flag names.
    pub(crate) fn mode(&self) -> Option<AgentMode> {
        self.mode
    }
}

impl ModelFlags {
    /// Overrides the model and the address of a definition. Returns whether a flag was given.
    pub(crate) fn apply(&self, definition: &mut AgentDefinition) -> anyhow::Result<bool> {
        if let (Some(engine), Some(model)) = (&definition.engine, &self.model) {
            let message = format!("`--model {model}` does not apply: the agent is driven by {}", engine.name);
            let advice = "its agent file may set `engine = { name = …, model = … }`";
            return usage::refuse(format!("{message}; {advice}"));
        }
        if let Some(model) = &self.model {
            switch_model(model, definition)?;
        }
        if let Some(effort) = &self.effort {
            definition.request.effort = Some(effort.clone());
        }
        if let Some(thinking) = self.thinking {
            definition.request.thinking = thinking;
        }
        if let Some(retries) = self.retries {
            definition.retry.get_or_insert_default().retries = Some(retries);
        }
        if let Some(url) = &self.base_url {
            // It may hold a password, so it is not repeated.
            check_base_url(url).map_err(|problem| Usage(format!("--base-url: {}", problem.message)))?;
            definition.base_url = Some(url.clone());
            addresses::allow(definition);
        }
        definition.window = self.window.or(definition.window);
        definition.fill_known_model();
        let is_given = self.model.is_some() || self.base_url.is_some() || self.window.is_some();
        let is_other_request = self.effort.is_some() || self.thinking.is_some();
        Ok(is_given || is_other_request || self.retries.is_some())
    }
}

/// The new directory of a session whose files were moved.
#[derive(Args, Default)]
pub(crate) struct MovedTo {
    /// New directory of the session's files, if they were moved. It is recorded. Default: the recorded
    /// directory.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl MovedTo {
    /// Replaces the recorded directory. Returns whether it differs.
    pub(crate) fn apply(&self, definition: &mut AgentDefinition) -> anyhow::Result<bool> {
        let Some(directory) = &self.workspace else { return Ok(false) };
        if definition.workspace.path.is_none() {
            return usage::refuse("the session has no files, so `--workspace` does not apply");
        }
        std::fs::create_dir_all(directory)
            .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        let directory = Some(directory.canonicalize()?);
        let is_other = definition.workspace.path != directory;
        definition.workspace.path = directory;
        Ok(is_other)
    }
}

/// Parses how much a model thinks, as agent files name it.
fn thinking(text: &str) -> Result<ThinkingBudget, String> {
    match text {
        "default" => Ok(ThinkingBudget::Default),
        "adaptive" => Ok(ThinkingBudget::Adaptive),
        tokens => tokens
            .parse()
            .map(ThinkingBudget::Budget)
            .map_err(|_| "write default, adaptive or a number of tokens".to_owned()),
    }
}

/// Parses limits of the form `tokens=100000,turns=20`.
fn budget(text: &str) -> Result<BudgetDefinition, String> {
    let mut limits = Map::new();
    for limit in text.split(',') {
        let (name, value) =
            limit.split_once('=').ok_or_else(|| format!("{limit:?} is not a limit: write tokens=100000"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        limits.insert(name.trim().to_owned(), value);
    }
    serde_json::from_value(Value::Object(limits)).map_err(|error| error.to_string())
}
