//! The settings of one layer, as data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstitch::agent_file::{
    AgentDefinition, Approve, BudgetDefinition, FetchDefinition, McpDefinition, ModelName, ModelProvider,
    PriceDefinition, Problem, ProviderDefinition, RetryDefinition, Span, ToolChoice, check_base_url,
    check_providers, check_servers,
};
use backstitch::mode::AgentMode;
use backstitch::ports::Sandbox;
use backstitch::stores::StoreAddress;
use serde::Deserialize;
use toml::Value;

use crate::terminal::ColorChoice;

/// Keys that only the user may set.
pub(super) const USER_ONLY: [(&str, &str); 10] = [
    ("mode", "a project cannot decide what runs without a question"),
    ("sandbox", "a project cannot decide what commands may write"),
    ("fetch", "a project cannot decide which private addresses are read"),
    ("mcp", "a project names its servers in .mcp.json"),
    ("day_budget", "it is about all your sessions"),
    ("store", "a project cannot choose where sessions are stored"),
    ("rules", "a project cannot decide about approvals for good"),
    ("color", "it is about your terminal"),
    ("plain", "it is about your terminal"),
    ("pager", "it is a command that your terminal starts"),
];

/// The settings of one layer. Absent ones are left to the layers before.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) model: Option<ModelName>,
    pub(crate) base_url: Option<String>,
    /// Providers besides the built-in ones.
    pub(crate) provider: Vec<ProviderDefinition>,
    /// The agent file of new sessions.
    pub(crate) agent: Option<PathBuf>,
    pub(crate) store: Option<PathBuf>,
    pub(crate) tools: Option<ToolChoice>,
    pub(crate) approve: Option<ApproveSetting>,
    /// What runs without a question.
    pub(crate) mode: Option<AgentMode>,
    /// Limits of commands.
    pub(crate) sandbox: Option<Sandbox>,
    /// What the table of the sandbox says about the network.
    #[serde(skip)]
    pub(crate) network: Option<bool>,
    /// MCP servers of all sessions.
    pub(crate) mcp: Vec<McpDefinition>,
    /// Options of the tool that reads pages.
    pub(crate) fetch: FetchDefinition,
    pub(crate) max_turns: Option<u64>,
    pub(crate) deadline: Option<Span>,
    /// Retries of requests that failed.
    pub(crate) retry: Option<RetryDefinition>,
    pub(crate) budget: Option<BudgetDefinition>,
    /// Maximum spending of all sessions on one day.
    pub(crate) day_budget: BudgetDefinition,
    /// Prices of models, by `PROVIDER:MODEL`.
    pub(crate) prices: BTreeMap<String, PriceDefinition>,
    /// Numbers of tokens that models accept, by `PROVIDER:MODEL`.
    pub(crate) windows: BTreeMap<String, u64>,
    /// Whether servers are asked for the windows and prices of their models.
    pub(crate) discover: Option<bool>,
    /// Whether the command adds its own instructions and those of the project.
    pub(crate) instructions: Option<bool>,
    pub(crate) color: Option<ColorChoice>,
    /// Whether the output is for a screen reader.
    pub(crate) plain: Option<bool>,
    pub(crate) pager: Option<PagerSetting>,
    pub(crate) rules: RuleTexts,
}

/// Rules about approvals, by what they decide.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuleTexts {
    pub(crate) allow: Vec<String>,
    pub(crate) ask: Vec<String>,
    pub(crate) deny: Vec<String>,
}

impl Settings {
    /// Refuses values that no model could be used with.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(url) = &self.base_url {
            check_base_url(url)?;
        }
        check_providers(&self.provider)?;
        check_servers(&self.mcp)?;
        if self.max_turns == Some(0) {
            return Err(Problem::new(["max_turns"], "an agent needs at least 1 turn"));
        }
        if let Some((model, _)) = self.windows.iter().find(|(_, tokens)| **tokens == 0) {
            return Err(Problem::new(["windows", model], "a model accepts at least 1 token"));
        }
        if let Some(retry) = &self.retry {
            retry.check()?;
        }
        let day = &self.day_budget;
        if day.calls.is_some() || day.time.is_some() {
            let message = "a day has limits of tokens, input_tokens, output_tokens, money and turns";
            return Err(Problem::new(["day_budget"], message));
        }
        self.fetch.check()?;
        self.rules.check()?;
        let empty = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        for (key, path) in [("agent", &self.agent), ("store", &self.store)] {
            if empty(path) {
                return Err(Problem::new([key], "the path is empty"));
            }
        }
        let writable = self.sandbox.iter().flat_map(|sandbox| &sandbox.write);
        for (key, paths) in self.sandbox.iter().flat_map(|own| [("hide", &own.hide), ("read", &own.read)]) {
            if paths.iter().any(|path| path.as_os_str().is_empty()) {
                return Err(Problem::new(["sandbox", key], "a path is empty"));
            }
        }
        if writable.clone().any(|path| path.as_os_str().is_empty()) {
            return Err(Problem::new(["sandbox", "write"], "a path is empty"));
        }
        if self.sandbox.as_ref().is_some_and(|sandbox| sandbox.missing.is_some()) {
            return Err(Problem::new(["sandbox", "missing"], "only sessions record this: remove it"));
        }
        Ok(())
    }

    /// Refuses a model of a provider that these settings do not define. A project may use those of the user.
    pub(super) fn check_model(&self) -> Result<(), Problem> {
        let Some(model) = &self.model else { return Ok(()) };
        let definition = AgentDefinition { providers: self.provider.clone(), ..AgentDefinition::default() };
        definition.access(&model.provider).map(|_| ())
    }

    /// Resolves paths: `~/` is the home directory, and others are relative to the directory of the file.
    pub(super) fn resolve(&mut self, directory: &Path) {
        let places = self
            .sandbox
            .iter_mut()
            .flat_map(|sandbox| sandbox.write.iter_mut().chain(&mut sandbox.hide).chain(&mut sandbox.read));
        let store = self.store.iter_mut().filter(|store| StoreAddress::new(store).path().is_some());
        for path in self.agent.iter_mut().chain(store).chain(places) {
            *path = resolved(directory, path);
        }
        if let Some(ModelName { provider: ModelProvider::Scripted, model }) = &mut self.model {
            *model = resolved(directory, Path::new(model)).to_string_lossy().into_owned();
        }
    }
}

fn resolved(directory: &Path, path: &Path) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match path.strip_prefix("~").ok().and_then(|below| Some(home()?.join(below))) {
        Some(below) => below,
        None => directory.join(path),
    }
}

/// Calls that need the approval of a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) enum ApproveSetting {
    /// None.
    Auto,
    /// Every call that can change something.
    Ask,
    /// Those of these tools.
    Tools(Vec<String>),
}

impl ApproveSetting {
    /// Parses the form of the command line: `auto`, `ask`, or names separated by commas.
    pub(crate) fn of_list(text: &str) -> Self {
        match text.trim() {
            "auto" => Self::Auto,
            "ask" => Self::Ask,
            names => Self::Tools(names.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }

    /// Returns whether each call that can change something is asked about. `None` if only some tools are named.
    pub(crate) fn asks(&self) -> Option<bool> {
        match self {
            Self::Auto => Some(false),
            Self::Ask => Some(true),
            Self::Tools(_) => None,
        }
    }

    /// Converts to the form of a definition.
    pub(crate) fn by_tool(&self) -> BTreeMap<String, Approve> {
        match self {
            Self::Auto => BTreeMap::new(),
            Self::Ask => [("default".to_owned(), Approve::Ask)].into(),
            Self::Tools(names) => names.iter().map(|name| (name.clone(), Approve::Ask)).collect(),
        }
    }
}

impl TryFrom<Value> for ApproveSetting {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let wanted = "write \"auto\", \"ask\" or a list of tool names";
        match value {
            Value::String(word) if word == "auto" => Ok(Self::Auto),
            Value::String(word) if word == "ask" => Ok(Self::Ask),
            names => names.try_into().map(Self::Tools).map_err(|_| wanted),
        }
    }
}

/// The program that shows long output a page at a time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) enum PagerSetting {
    /// None: long output is printed as it is.
    Off,
    /// A command.
    Command(String),
}

impl TryFrom<Value> for PagerSetting {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Boolean(false) => Ok(Self::Off),
            Value::String(command) if command.trim().is_empty() => Ok(Self::Off),
            Value::String(command) => Ok(Self::Command(command)),
            _ => Err("write a command, or `false` for none"),
        }
    }
}
