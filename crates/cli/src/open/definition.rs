//! The definition of the agent that drives a session: read from the command line and an agent file, and
//! recorded.
//!
//! The definition is recorded with the session, so that `resume` needs nothing else. When a session continues
//! with another model, the new definition is recorded as a note at that position, and applies from there.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use backstitch::agent_file::{
    AgentDefinition, AgentFileError, AnswerMode, BudgetDefinition, BuildOptions, BuiltAgent, DataDefinition,
    ModelName, Span, ToolChoice, recorded_definition,
};
use backstitch::code::ErrorCode;
use backstitch::journal::{Effect, Note, Position};
use backstitch::ports::{Sandbox, SandboxMode, SandboxSockets};
use backstitch::stores::StoreAddress;
use backstitch::view::JournalView;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::confinement;
use super::place::OpenStore;
use super::trusted::{self, NewAgent};
use crate::common::Common;
use crate::config::{ApproveSetting, Config, provider_address, user_directory};
use crate::error::CommandError;
use crate::instructions;
use crate::keys;
use crate::trust::addresses;
use crate::usage::Usage;

/// Time after which a message says that MCP servers are waited for.
const SILENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellEffect {
    /// Any effect. After a crash, a person decides what happened to an interrupted command.
    External,
    /// Only files of the workspace. After a crash, they are restored and the command runs again.
    Workspace,
}

/// Sockets of this machine that commands may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sockets {
    /// None, except connected pairs.
    Off,
    /// Those inside of the workspace; none where the kernel cannot tell them apart.
    Inside,
    /// All, such as those of docker, an ssh agent, tmux and the display. Through them a command can leave the sandbox.
    On,
}

/// Whether commands may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Network {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
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
    model: Option<ModelName>,
    /// Base URL of the model's API. Default: the provider's own.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Context window of the model in tokens. Longer conversations are sent without older results. Default:
    /// that of a known model.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1_000..))]
    window: Option<u64>,
    /// Maximum number of retries of a request that failed. Default: that of the agent or of the settings, else 10, for
    /// more than a minute.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: Option<u32>,
    /// Maximum spending of an evaluation, such as tokens=100000,turns=20,calls=50,money=2.5,time=10m.
    /// Default: that of the agent, else no limit.
    #[arg(long, value_name = "LIMITS", value_parser = budget)]
    pub(crate) budget: Option<BudgetDefinition>,
    /// Maximum active time of an evaluation, such as 90s or 10m. Default: that of the agent, else no limit.
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<Span>,
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
    /// TOML file that defines the agent. The other options override it. Default: an agent without
    /// instructions.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Text of the system message, in place of the command's own instructions and those of the project. Default:
    /// that of the agent file, else these instructions.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Form of the agent's answers. Default: tools.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// JSON file that programs read as data/NAME, with --mode lisp. Can be repeated. Default: no data.
    #[arg(long, value_name = "NAME=FILE.json")]
    data: Vec<String>,
    /// Type of the answer, such as {count :int, items [{id :int}]}, with --mode lisp. Default: any value.
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
    /// Strategy that shortens earlier turns in requests: on, off, or a name. Default: on for programs, off
    /// for tool calls.
    #[arg(long, value_name = "NAME|off")]
    compression: Option<String>,
    /// Tools that the agent may call: all (files and the shell), none, or names separated by commas. Default:
    /// all.
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,
    /// Calls that need the approval of a person: auto (none), ask (every call that can change something), or
    /// names of tools separated by commas. Default: auto.
    #[arg(long, value_name = "WHICH")]
    approve: Option<String>,
    /// Possible effects of shell commands. Default: external.
    #[arg(long, value_enum)]
    shell_effect: Option<ShellEffect>,
    /// Files that shell commands may write: workspace (and $TMPDIR), read-only (only $TMPDIR), or off (all).
    /// Default: that of the agent file, else workspace.
    #[arg(long, value_name = "MODE")]
    sandbox: Option<SandboxMode>,
    /// Whether shell commands may use the network. Default: that of the agent file, else on.
    #[arg(long, value_enum)]
    network: Option<Network>,
    /// Sockets of other programs on this machine that shell commands may reach. Default: that of the agent file, else
    /// inside.
    #[arg(long, value_enum)]
    sockets: Option<Sockets>,
    /// Maximum number of turns of an evaluation. Default: 5 for programs, no limit for tool calls.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// Directory that the agent works in. Default: that of the agent file, else the current directory.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Work in a copy of the directory. `backstitch apply` brings the changes back. Default: that of the agent file, else
    /// off.
    #[arg(long)]
    isolated: bool,
}

impl ModelFlags {
    /// Overrides the model and the address of a definition. Returns whether a flag was given.
    pub(crate) fn apply(&self, definition: &mut AgentDefinition) -> anyhow::Result<bool> {
        if let (Some(engine), Some(model)) = (&definition.engine, &self.model) {
            let message = format!("`--model {model}` does not apply: the agent is driven by {}", engine.name);
            return Err(Usage(format!(
                "{message}; its agent file may set `engine = {{ name = …, model = … }}`"
            ))
            .into());
        }
        if let Some(model) = &self.model {
            add_provider_of(model, definition)?;
            let is_other = definition.model.as_ref().is_some_and(|before| before.provider != model.provider);
            if is_other {
                // The address belongs to the provider before.
                definition.base_url = None;
            }
            if definition.model.as_ref().is_some_and(|before| before != model) {
                // So does the window.
                definition.window = None;
            }
            for refused in definition.switch_model(model.clone())? {
                eprintln!("`{}` of the agent is not sent: {}", refused.option, refused.reason);
            }
        }
        if let Some(retries) = self.retries {
            definition.retry.get_or_insert_default().retries = Some(retries);
        }
        if let Some(url) = &self.base_url {
            definition.base_url = Some(url.clone());
            addresses::allow(definition);
        }
        definition.window = self.window.or(definition.window);
        definition.fill_known_model();
        let is_given = self.model.is_some() || self.base_url.is_some() || self.window.is_some();
        Ok(is_given || self.retries.is_some())
    }
}

impl AgentFlags {
    /// Builds the definition that a new session is recorded with.
    pub(crate) fn definition(&self, common: &Common) -> anyhow::Result<AgentDefinition> {
        self.definition_for(common, ModelNeed::Required)
    }

    /// Whether the options name a directory.
    #[cfg(feature = "mcp")]
    pub(crate) fn names_workspace(&self) -> bool {
        self.workspace.is_some()
    }

    /// Builds the definition that a new session is recorded with, possibly without a model.
    pub(crate) fn definition_for(
        &self,
        common: &Common,
        model: ModelNeed,
    ) -> anyhow::Result<AgentDefinition> {
        let directory = match &self.workspace {
            Some(directory) => std::path::absolute(directory)?,
            None => std::env::current_dir()?,
        };
        let NewAgent { config, file } = trusted::new_agent(common, self.agent.as_deref(), &directory)?;
        let mut definition = file.definition;
        config.complete(&mut definition, |key| file.keys.contains(key))?;
        self.model.apply(&mut definition)?;
        if let (None, Some(model)) = (&definition.base_url, &definition.model) {
            let is_built_in = definition.providers.iter().all(|own| own.name != model.provider.as_str());
            if is_built_in {
                definition.base_url = provider_address(&model.provider).map_err(AgentFileError::from)?;
            }
        }
        if self.model.window.is_none() && !file.keys.contains("window") {
            definition.window = config.window(&definition).or(definition.window);
        }
        if definition.engine.is_some() && !file.keys.contains("model") && self.model.model.is_none() {
            // The settings for models are not about engines.
            (definition.model, definition.script, definition.window) = (None, None, None);
            if !file.keys.contains("base_url") {
                definition.base_url = None;
            }
        }
        if definition.model.is_none() && definition.engine.is_none() && model == ModelNeed::Required {
            return Err(CommandError::new(ErrorCode::NoModel, "no model is named")
                .with_hint(
                    "use `--model PROVIDER:MODEL`; `backstitch config set model PROVIDER:MODEL` sets it for all sessions",
                )
                .into());
        }
        if let Some(budget) = &self.model.budget {
            definition.budget = budget.clone();
        }
        definition.deadline = self.model.deadline.or(definition.deadline);
        definition.max_turns = self.max_turns.or(definition.max_turns);
        if let Some(system) = &self.system {
            definition.system = Some(system.clone());
        }
        self.answering(&mut definition)?;
        if let Some(tools) = &self.tools {
            definition.tools = ToolChoice::of_list(tools);
        }
        if let Some(which) = &self.approve {
            definition.approval = ApproveSetting::of_list(which).by_tool();
        }
        if let Some(effect) = self.shell_effect {
            definition.shell.effect = match effect {
                ShellEffect::External => Effect::External,
                ShellEffect::Workspace => Effect::Workspace,
            };
        }
        let is_default = definition.sandbox.is_none() && !self.limits_commands();
        definition.sandbox = Some(self.sandbox(definition.sandbox.take())?);
        definition.complete_sandbox();
        if let Some(sandbox) = &mut definition.sandbox {
            confinement::begin(common, sandbox, is_default)?;
        }
        if let Some(directory) = &self.workspace {
            definition.workspace.path = Some(directory.clone());
        }
        if definition.workspace.path.is_none() && definition.uses_files()? {
            definition.workspace.path = Some(std::env::current_dir()?);
        }
        definition.workspace.isolated |= self.isolated;
        if definition.workspace.isolated && definition.workspace.path.is_none() {
            return Err(Usage("the agent uses no files, so `--isolated` does not apply".to_owned()).into());
        }
        if definition.workspace.isolated && common.store == Some(StoreAddress::Memory) {
            let message = "an isolated session needs a store that is a file: its copy would end with the command, before it could be applied";
            return Err(Usage(message.to_owned()).into());
        }
        if let Some(directory) = &mut definition.workspace.path {
            std::fs::create_dir_all(&*directory)
                .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
            *directory = directory.canonicalize()?;
        }
        self.instruct(common, &config, &mut definition)?;
        definition.keep_used_providers();
        // Every file and variable that names an address is the user's own, or trusted.
        addresses::allow(&definition);
        Ok(definition)
    }
}

impl AgentFlags {
    /// Whether a flag limits commands.
    fn limits_commands(&self) -> bool {
        self.sandbox.is_some() || self.network.is_some() || self.sockets.is_some()
    }

    /// Returns the sandbox of commands: that of the flags, of the agent, or the default of the command.
    fn sandbox(&self, of_agent: Option<Sandbox>) -> anyhow::Result<Sandbox> {
        let mut sandbox = match self.sandbox {
            Some(mode) => in_mode(of_agent, mode),
            None => of_agent.unwrap_or_else(unset),
        };
        if let Some(network) = self.network {
            sandbox.network = network == Network::On;
        }
        if let Some(sockets) = self.sockets {
            sandbox.sockets = Some(match sockets {
                Sockets::Off => SandboxSockets::Off,
                Sockets::Inside => SandboxSockets::Inside,
                Sockets::On => SandboxSockets::On,
            });
        }
        sandbox.check().map_err(|error| Usage(error.to_string()))?;
        Ok(sandbox)
    }

    /// Adds the instructions of the command, of the user and of the project, unless the agent has its own.
    fn instruct(
        &self,
        common: &Common,
        config: &Config,
        definition: &mut AgentDefinition,
    ) -> anyhow::Result<()> {
        let has_own = definition.system.is_some() || !definition.sections.is_empty();
        let is_off = config.strongest(|settings| settings.instructions) == Some(false);
        // An engine has its own instructions, and reads those of the project itself.
        let has_own = has_own || definition.engine.is_some();
        if has_own || is_off || definition.mode == AnswerMode::Lisp {
            return Ok(());
        }
        let directory = definition.workspace.path.as_deref();
        let own = user_directory();
        let composed = instructions::compose(directory, &definition.tool_names()?, own.as_deref());
        for note in composed.notes.iter().filter(|_| !common.quiet) {
            eprintln!("{note}");
        }
        definition.system = Some(composed.text);
        Ok(())
    }

    /// Applies the flags about answers, data and compression.
    fn answering(&self, definition: &mut AgentDefinition) -> anyhow::Result<()> {
        if let Some(mode) = self.mode {
            definition.mode = match mode {
                Mode::Tools => AnswerMode::Tools,
                Mode::Lisp => AnswerMode::Lisp,
            };
        }
        for given in &self.data {
            let Some((name, path)) = given.split_once('=') else {
                return Err(Usage(format!("--data {given}: write it as NAME=FILE.json")).into());
            };
            let data = DataDefinition::read(name, path.as_ref())?;
            definition.data.insert(name.to_owned(), data);
        }
        if let Some(signature) = &self.signature {
            definition.signature = Some(signature.clone());
        }
        definition.compression = match self.compression.as_deref() {
            None => definition.compression.take(),
            Some("off") => Some(Value::Bool(false)),
            Some("on") => Some(Value::Bool(true)),
            Some(name) => Some(Value::String(name.to_owned())),
        };
        Ok(())
    }
}

/// Returns a sandbox with another mode. Nothing is limited without one.
pub(crate) fn in_mode(sandbox: Option<Sandbox>, mode: SandboxMode) -> Sandbox {
    match (mode, sandbox) {
        (SandboxMode::Off, _) => Sandbox::off(),
        (mode, sandbox) => Sandbox { mode, ..sandbox.unwrap_or_else(unset) },
    }
}

/// The default sandbox of the command, with the sockets that follow from the rest of the definition.
fn unset() -> Sandbox {
    Sandbox { sockets: None, ..Sandbox::workspace() }
}

/// Starts the MCP servers of a new session's definition, and records their tools in it.
pub(crate) async fn pinned(
    common: &Common,
    mut definition: AgentDefinition,
) -> anyhow::Result<AgentDefinition> {
    let options = BuildOptions { key: Box::new(keys::key), transport: None };
    let waiting: Vec<String> = definition
        .mcp_servers()
        .iter()
        .filter(|server| server.pinned.is_none())
        .map(|server| server.name.clone())
        .collect();
    let notes = {
        let mut pinning = std::pin::pin!(definition.pin_mcp(&options));
        tokio::select! {
            biased;
            pinned = &mut pinning => pinned?,
            () = tokio::time::sleep(SILENCE) => {
                eprintln!("waiting for MCP server {}", waiting.join(", "));
                pinning.await?
            }
        }
    };
    notes.iter().for_each(|note| eprintln!("{note}"));
    for server in definition.mcp_servers().into_iter().filter(|_| !common.quiet) {
        let count = server.pinned.as_ref().map_or(0, Vec::len);
        eprintln!("MCP server {}: {count} tools", server.name);
    }
    Ok(definition)
}

/// Asks the servers of models for the windows and prices that nothing else names, so that they are recorded in the
/// definition. Nothing is asked at an address that the user did not choose, since keys are sent there.
pub(crate) async fn with_served_models(common: &Common, mut definition: AgentDefinition) -> AgentDefinition {
    if addresses::check(&definition).is_ok() {
        let options = BuildOptions { key: Box::new(keys::key), transport: None };
        let notes = definition.fill_served_models(&options).await;
        notes.iter().filter(|_| !common.quiet).for_each(|note| eprintln!("{note}"));
    }
    definition
}

/// Builds the agent of a definition, with the keys that the command was started with.
pub(crate) fn built(definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    addresses::check(definition)?;
    Ok(definition.build_with(BuildOptions { key: Box::new(keys::key), transport: None })?)
}

/// Adds the provider of a model from the settings of the user, unless it is built in or the definition has it.
pub(crate) fn add_provider_of(model: &ModelName, definition: &mut AgentDefinition) -> anyhow::Result<()> {
    if definition.access(&model.provider).is_err() {
        let known = Config::load()?.providers();
        let of_model = known.iter().find(|provider| provider.name == model.provider.as_str());
        of_model.into_iter().for_each(|provider| definition.add_provider(provider));
        let chosen = AgentDefinition { model: Some(model.clone()), base_url: None, ..definition.clone() };
        addresses::allow(&chosen);
    }
    Ok(())
}

/// Returns the definition of a session's agent: the current one, or the one in effect before a position.
pub(crate) async fn definition_of(
    place: &OpenStore,
    view: &JournalView,
    before: Option<Position>,
) -> anyhow::Result<AgentDefinition> {
    recorded_definition(&*place.store, view, before).await.map_err(|error| match error {
        AgentFileError::Runtime(error) => error.into(),
        // What is recorded is not an input of the command.
        error => CommandError::new(error.code(), error.to_string()).into(),
    })
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
            return Err(Usage("the session has no files, so `--workspace` does not apply".to_owned()).into());
        }
        std::fs::create_dir_all(directory)
            .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        let directory = Some(directory.canonicalize()?);
        let is_other = definition.workspace.path != directory;
        definition.workspace.path = directory;
        Ok(is_other)
    }
}

/// Names what answers: the model, or the engine.
pub(crate) fn answers_with(definition: &AgentDefinition) -> String {
    definition.answerer()
}

/// Builds the note that a session continues with another definition.
pub(crate) fn changed(definition: &AgentDefinition) -> Note {
    definition.change_note()
}

/// Builds the record that a session continues with another definition of its MCP servers or tools.
#[cfg(feature = "mcp")]
pub(crate) fn changed_tools(
    before: &AgentDefinition,
    after: &AgentDefinition,
) -> backstitch::journal::RecordBody {
    let mut text = "continues with another definition of the agent".to_owned();
    for server in after.mcp_servers() {
        let known = before.mcp_servers().into_iter().find(|other| other.name == server.name);
        let change = known.map(|known| known.difference(server)).unwrap_or_default();
        for (what, names) in
            [("added", change.added), ("removed", change.removed), ("changed", change.changed)]
        {
            if !names.is_empty() {
                text.push_str(&format!("; MCP server {} has {what} {}", server.name, names.join(", ")));
            }
        }
    }
    after.note(text).into()
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
