//! Building an agent from its definition.

use std::sync::Arc;

use backstitch_providers::{
    ApiKey, CacheMarks, ModelPolicy, ModelTarget, ReasoningSummary, RefusedOption, RequestOptions,
    SamplingOptions, ToolChoice as CalledTools, Transport, UnsupportedMediaPolicy,
};

use backstitch_repl::recall::TOOL_NAME;

use super::answering::AnswerMode;
use super::definition::{AgentDefinition, OutputDefinition, PriceDefinition, WorkspaceDefinition, tools_of};
use super::error::{AgentFileError, Problem};
use super::headers;
use super::keys::{KEY_VARIABLES, checked_url, is_private};
use super::mcp::{McpDefinition, value_of};
use super::model::{ModelName, ModelProvider};
use super::offered::{ToolCatalog, below, is_built_in};
use super::session::recorded_in;
use super::skill;
use super::values::{Money, Span};
use crate::host::OutputContract;
use crate::message::PolicyName;
use crate::ports::Policy;
use crate::prompt::{BoundPrompt, Output, Prompt, PromptBuilder, PromptError};
use crate::secrets::Secrets;
use crate::tool::{WorkspaceUse, with_causes};
use crate::tools::recall;
use crate::{Agent, FunctionPolicy, LispAgent, Price, Prices, ScriptedPolicy, Tools, WorkspaceSpec};

/// The variable of a token for Anthropic's API, which is sent in another header than a key.
const TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";

/// Headers that a gateway may authorise requests by, in place of the provider's key.
const AUTHORISATIONS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

type KeyOfVariable<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Values that a definition does not hold.
pub struct BuildOptions<'a> {
    /// Returns the API key in an environment variable.
    pub key: Box<KeyOfVariable<'a>>,
    /// Transport for requests; `None` uses HTTP.
    pub transport: Option<Arc<dyn Transport>>,
}

impl Default for BuildOptions<'_> {
    /// Keys from the environment, and HTTP.
    fn default() -> Self {
        let key = |name: &str| std::env::var(name).ok().filter(|key| !key.trim().is_empty());
        Self { key: Box::new(key), transport: None }
    }
}

/// An agent and its prompt.
#[derive(Debug, Clone)]
pub struct BuiltAgent {
    /// The agent, with the prompt. [`BuiltAgent::mission`] prepares its missions.
    pub agent: Agent,
    /// The prompt, bound to the parameters of the definition.
    pub prompt: BoundPrompt,
    /// The part of an agent that answers with programs; `None` for other agents.
    pub lisp: Option<LispAgent>,
}

impl BuiltAgent {
    /// Returns the mission as it is sent to the model. For an agent that answers with programs, `{{name}}` is
    /// replaced by its data.
    pub fn mission(&self, text: &str) -> Result<String, AgentFileError> {
        match &self.lisp {
            Some(lisp) => Ok(lisp.mission(text).map_err(|error| Problem::new(["mission"], error))?),
            None => Ok(text.to_owned()),
        }
    }
}

impl AgentDefinition {
    /// Builds the agent, with keys from the environment.
    pub fn build(&self) -> Result<BuiltAgent, AgentFileError> {
        self.build_with(BuildOptions::default())
    }

    /// Builds the agent with these options.
    pub fn build_with(&self, options: BuildOptions<'_>) -> Result<BuiltAgent, AgentFileError> {
        self.build_agent(&options)
    }

    /// Builds an agent whose tools a program outside calls, so that it needs no model. Its policy has this name
    /// and answers nothing.
    pub fn build_for_calls(
        &self,
        policy: PolicyName,
        options: &BuildOptions<'_>,
    ) -> Result<Agent, AgentFileError> {
        self.check()?;
        let (tools, _) = self.parts(Some(options))?;
        let answers = FunctionPolicy::new(policy, |_| async {
            Err("the calls of this session come from a program outside".into())
        });
        let mut agent = Agent::new(format!("{}/{}", self.ns, self.name)).policy(answers).tools(tools);
        agent.budget = self.budget.limits();
        agent.secrets = self.secrets(options);
        self.with_files(agent)
    }

    fn build_agent(&self, options: &BuildOptions<'_>) -> Result<BuiltAgent, AgentFileError> {
        self.check()?;
        let (tools, prompt) = self.parts(Some(options))?;
        self.check_prices()?;
        let secrets = self.secrets(options);
        let (mut agent, lisp) = match &self.engine {
            Some(engine) => (self.with_engine(engine, tools), None),
            None => self.with_model(self.policy_with(options)?, tools)?,
        };
        let prompt = match &agent.system {
            // The system message of an agent that answers with programs is built from its tools and data.
            Some(system) if lisp.is_some() => {
                self.bound(Prompt::builder(&self.ns, &self.name).preamble(system))?
            }
            _ => prompt,
        };
        if self.engine.is_none() {
            agent.budget = self.budget.limits();
        }
        agent.deadline = self.deadline.map(|deadline| deadline.0);
        agent.on_truncation = self.on_truncation;
        agent.prices = self.known_prices();
        agent.fallbacks = self.build_fallbacks(options)?;
        if let Some(retry) = &self.retry {
            agent.backoff = retry.backoff();
        }
        agent.window = self.window.filter(|_| self.answers == AnswerMode::Tools);
        agent.secrets = secrets;
        let agent = self.with_files(agent)?.prompt(prompt.clone());
        Ok(BuiltAgent { agent, prompt, lisp })
    }

    /// Adds the files and the mode of the definition, and the form of the definition that is recorded with sessions.
    fn with_files(&self, agent: Agent) -> Result<Agent, AgentFileError> {
        let agent = match self.workspace_spec()? {
            Some(spec) => agent.workspace(spec),
            None => agent,
        };
        Ok(agent.mode(self.mode).definition(self.to_recorded()).definition_in(recorded_in))
    }

    /// Returns the files that its sessions work on. A `[workspace]` without a path stands for the current directory.
    pub fn workspace_spec(&self) -> Result<Option<WorkspaceSpec>, AgentFileError> {
        let files = &self.workspace;
        let path = match &files.path {
            Some(path) => path.clone(),
            None if *files == WorkspaceDefinition::default() || !self.uses_files()? => return Ok(None),
            None => std::env::current_dir().map_err(|error| Problem::new(["workspace", "path"], error))?,
        };
        let mut spec = WorkspaceSpec::new(path);
        spec.excludes.clone_from(&files.excludes);
        spec.isolated = files.isolated;
        spec.setup.clone_from(&files.setup);
        spec.sandbox = self.sandbox.clone().unwrap_or_default();
        Ok(Some(spec))
    }

    /// Returns the values that are neither recorded nor sent: keys, and variables that providers and MCP servers
    /// receive.
    fn secrets(&self, options: &BuildOptions<'_>) -> Secrets {
        let keys = KEY_VARIABLES.iter().filter_map(|variable| (options.key)(variable));
        let own = self.own_variables();
        let of_servers = self.mcp_servers().into_iter().flat_map(McpDefinition::variables);
        let others = own.iter().map(String::as_str).chain(of_servers);
        let others = others.filter_map(|variable| value_of(options, variable));
        Secrets::new(keys.chain(others).map(|key| key.trim().to_owned()))
    }

    /// Builds an agent that a model answers for: with programs, or with text and tool calls.
    fn with_model(
        &self,
        policy: Arc<dyn Policy>,
        tools: Tools,
    ) -> Result<(Agent, Option<LispAgent>), AgentFileError> {
        let name = format!("{}/{}", self.ns, self.name);
        if self.answers == AnswerMode::Lisp {
            let lisp = self.lisp()?;
            let agent = Agent::lisp(name, policy, lisp.clone(), tools);
            return Ok((agent.map_err(|error| Problem::new(["data"], error))?, Some(lisp)));
        }
        let mut agent = Agent::new(name).policy(policy).tools(tools);
        if let Some(turns) = self.max_turns {
            agent = agent.max_turns(turns);
        }
        if let Some(repeats) = self.max_repeats {
            agent = agent.max_repeats(repeats);
        }
        if let Some(strategy) = self.transcript_compression()? {
            agent = agent.compression(strategy);
        }
        Ok((agent, None))
    }

    /// Converts the prices of the definition.
    fn known_prices(&self) -> Prices {
        let price = |price: &PriceDefinition| Price {
            input: price.input.micros(),
            cache_read: price.cache_read.map(Money::micros),
            cache_write: price.cache_write.map(Money::micros),
            output: price.output.micros(),
        };
        Prices(self.prices.iter().map(|(model, known)| (model.clone(), price(known))).collect())
    }

    /// Whether the price of a model is known, by its name with or without its provider.
    pub(super) fn has_price(&self, model: &ModelName) -> bool {
        self.prices.contains_key(&model.to_string()) || self.prices.contains_key(&model.model)
    }

    /// Refuses a budget of money if the price of the model is unknown.
    fn check_prices(&self) -> Result<(), Problem> {
        if self.budget.money.is_none() {
            return Ok(());
        }
        let unknown = match (&self.model, &self.engine) {
            (_, Some(engine)) => engine.unknown_price(&self.prices),
            (Some(model), None) => {
                let models = std::iter::once(model).chain(self.fallbacks.iter().map(|other| &other.model));
                let is_unknown =
                    |model: &&ModelName| model.provider != ModelProvider::Scripted && !self.has_price(model);
                let unknown = models.into_iter().find(is_unknown);
                unknown.map(|model| format!("the price of {model} is unknown: set it in `prices`"))
            }
            _ => None,
        };
        unknown.map_or(Ok(()), |message| Err(Problem::new(["budget", "money"], message)))
    }

    /// Whether any tool that may be offered uses files.
    pub fn uses_files(&self) -> Result<bool, AgentFileError> {
        let offered = ToolCatalog::new(self, None)?;
        Ok(tools_of(&self.sections).iter().any(|name| offered.uses_files(name))
            || self.engine.is_some()
            || !self.mcp.is_empty()
            || offered.chosen(&self.tools)?.iter().any(|tool| tool.spec.workspace != WorkspaceUse::None))
    }

    /// Returns the names of the tools that are offered, those of sections last.
    pub fn tool_names(&self) -> Result<Vec<String>, AgentFileError> {
        let chosen = ToolCatalog::new(self, None)?.chosen(&self.tools)?;
        let names = chosen.iter().map(|tool| tool.name().to_string());
        Ok(names.chain(tools_of(&self.sections)).collect())
    }

    /// Refuses a definition from which no agent can be built with any model.
    pub(super) fn check(&self) -> Result<(), AgentFileError> {
        PolicyName::new(&self.name).map_err(|error| Problem::new(["name"], error))?;
        if let Some(url) = &self.base_url {
            checked_url(url)?;
        }
        self.check_engine()?;
        self.check_fallbacks()?;
        self.check_request()?;
        self.check_answers()?;
        if let Some(retry) = &self.retry {
            retry.check()?;
        }
        if let Some(fetch) = &self.fetch {
            fetch.check()?;
        }
        self.parts(None).map(|_| ())
    }

    /// Builds the agent of a sub-agent. Without options it is only checked, and has no model.
    pub(super) fn agent_with(&self, options: Option<&BuildOptions<'_>>) -> Result<Agent, AgentFileError> {
        match options {
            Some(options) => Ok(self.build_agent(options)?.agent),
            None => {
                self.check()?;
                let (tools, _) = self.parts(None)?;
                Ok(Agent::new(format!("{}/{}", self.ns, self.name)).tools(tools))
            }
        }
    }

    /// Whether a key of `approval` names a tool that the agent may have.
    pub(super) fn knows_tool(&self, name: &str) -> bool {
        let is_own = self.declares_tool(name)
            || self.mcp.iter().any(|server| server.may_have(name))
            || (!self.skills.is_empty() && name == skill::TOOL_NAME);
        is_own || is_built_in(name)
    }

    /// Whether a program or a sub-agent of this definition has the name of a tool.
    pub(super) fn declares_tool(&self, name: &str) -> bool {
        self.command_tools.iter().any(|tool| tool.name == name)
            || self.sub_agents.iter().any(|agent| agent.name == name)
    }

    fn parts(&self, options: Option<&BuildOptions<'_>>) -> Result<(Tools, BoundPrompt), AgentFileError> {
        let offered = ToolCatalog::new(self, options)?;
        let mut chosen = offered.chosen(&self.tools)?;
        let is_recalled = chosen.iter().any(|tool| tool.name().as_str() == TOOL_NAME);
        if self.leaves_out()? && !is_recalled {
            chosen.push(recall());
        }
        let tools = Tools::new(chosen).map_err(|error| Problem::new(["tools"], error))?;
        let mut prompt = Prompt::builder(&self.ns, &self.name);
        if let Some(system) = &self.system {
            prompt = prompt.preamble(system);
        }
        for (index, section) in self.sections.iter().enumerate() {
            prompt = prompt.section(offered.section(section, &below(&[], "section", index))?);
        }
        if let Some(output) = &self.output {
            prompt = prompt.output(schema_of(output)?);
        }
        let bound = self.bound(prompt)?;
        if let Some(name) = tools_of(&self.sections).iter().find(|name| tools.get(name).is_some()) {
            let message =
                format!("a section offers `{name}` too: remove it from `tools`, which are always offered");
            return Err(Problem::new(["tools"], message).into());
        }
        Ok((tools, bound))
    }

    fn bound(&self, prompt: PromptBuilder) -> Result<BoundPrompt, AgentFileError> {
        let prompt = prompt.build().map_err(|error| self.in_prompt(&error))?;
        Ok(prompt.bind(&self.parameters).map_err(|error| self.in_prompt(&error))?)
    }

    /// Converts an error of the prompt into a problem with the key that it is about.
    fn in_prompt(&self, error: &PromptError) -> Problem {
        let path = match error {
            PromptError::InvalidName { name, .. } if *name == self.name => {
                return Problem::new(["name"], error);
            }
            PromptError::UnknownField { field, .. } => {
                return Problem::new(["parameters", field.as_str()], error);
            }
            PromptError::DuplicateSection { path }
            | PromptError::DuplicateTool { path, .. }
            | PromptError::NoSummary { path }
            | PromptError::Template { path, .. }
            | PromptError::MissingField { path, .. } => path.as_str(),
            PromptError::InvalidName { name, .. } => name.as_str(),
            _ => return Problem::new([], error),
        };
        let mut key = Vec::new();
        let mut sections = &self.sections;
        for part in path.split('.') {
            // Of two sections with the same key, the second one is wrong.
            let Some(index) = sections.iter().rposition(|section| section.key == part) else { break };
            key = below(&key, "section", index);
            sections = &sections[index].sections;
        }
        Problem { key, message: with_causes(error) }
    }

    /// Creates a definition that holds only a model, and the default rights.
    pub fn of_model(name: &str) -> Result<Self, AgentFileError> {
        let model: ModelName = name.parse().map_err(|error| Problem::new(["model"], error))?;
        let mut definition = Self::default();
        definition.set_model(model)?;
        definition.complete_rights();
        Ok(definition)
    }

    /// Builds the policy that asks the model, with keys from the environment.
    pub fn policy(&self) -> Result<Arc<dyn Policy>, AgentFileError> {
        self.policy_with(&BuildOptions::default())
    }

    pub(super) fn policy_with(&self, options: &BuildOptions<'_>) -> Result<Arc<dyn Policy>, AgentFileError> {
        let name = PolicyName::new(&self.name).map_err(|error| Problem::new(["name"], error))?;
        let missing = || Problem::new(["model"], "a model is missing: set PROVIDER:MODEL");
        let model = self.model.as_ref().ok_or_else(missing)?;
        match &model.provider {
            ModelProvider::Scripted => {
                let script = self.script.clone().unwrap_or_default();
                Ok(Arc::new(ScriptedPolicy::new(name, script).with_model(&model.model)))
            }
            _ => Ok(Arc::new(self.model_policy(name, model, options)?)),
        }
    }

    /// Builds the policy that asks this model.
    pub(super) fn model_policy(
        &self,
        name: PolicyName,
        model: &ModelName,
        options: &BuildOptions<'_>,
    ) -> Result<ModelPolicy, AgentFileError> {
        let Some(access) = self.access(&model.provider)? else {
            return Err(Problem::new(["model"], "a script has no provider").into());
        };
        let base_url = self.base_url.as_deref().or(access.base_url.as_deref());
        let url = base_url.map(checked_url).transpose()?;
        let mut target = ModelTarget::new(access.format, &model.model);
        if let Some(base_url) = base_url {
            target = target.at(base_url);
        }
        let at = |keys: [&str; 2]| keys.map(str::to_owned);
        let mut custom = headers::resolved(&access.headers, &at(["provider", "headers"]), options)?;
        custom.extend(headers::resolved(&self.request.headers, &at(["request", "headers"]), options)?);
        let variables = access.key_variables;
        let key = variables.iter().find_map(|variable| Some((variable, (options.key)(variable)?)));
        // A gateway may hold the key, and have an authorisation of its own.
        let is_authorised = custom.iter().any(|header| AUTHORISATIONS.contains(&header.name()));
        let needs_key = !variables.is_empty() && !is_authorised && !url.as_ref().is_some_and(is_private);
        if key.is_none() && needs_key {
            let provider = model.provider.as_str().to_owned();
            return Err(AgentFileError::MissingKey { provider, variables });
        }
        let key = key.map(|(variable, key)| match variable.as_str() {
            TOKEN_VARIABLE => ApiKey::token(key.trim()),
            _ => ApiKey::new(key.trim()),
        });
        let transport = match &options.transport {
            Some(transport) => transport.clone(),
            None => http(self.request.silence)?,
        };
        Ok(ModelPolicy::new(name, target, key, transport)
            .with_options(self.request_options())
            .with_provider_name(model.provider.as_str())
            .with_headers(custom))
    }

    /// Refuses request options that the model's provider does not support.
    fn check_request(&self) -> Result<(), Problem> {
        if self.request.silence.is_some_and(|silence| silence.0.is_zero()) {
            return Err(Problem::new(["request", "silence"], "the time must be longer than 0"));
        }
        let Some(format) = self.format() else {
            return Ok(());
        };
        let checked = self.request_options().check(format);
        checked.map_err(|refused| Problem::new(["request", refused.option], refused))
    }

    /// Removes the request options that the model's provider does not support, and returns them.
    pub(super) fn drop_refused_options(&mut self) -> Vec<RefusedOption> {
        let Some(format) = self.format() else {
            return Vec::new();
        };
        let mut dropped = Vec::new();
        while let Err(refused) = self.request_options().check(format) {
            if !self.request.clear(refused.option) {
                break;
            }
            dropped.push(refused);
        }
        dropped
    }

    /// Converts the options of requests.
    fn request_options(&self) -> RequestOptions {
        let request = &self.request;
        RequestOptions {
            max_output_tokens: request.max_output_tokens,
            thinking: request.thinking,
            effort: request.effort.clone(),
            sampling: SamplingOptions {
                temperature: request.temperature,
                top_p: request.top_p,
                seed: request.seed,
                stop: request.stop.clone(),
            },
            tool_choice: match request.tool_choice.as_deref() {
                None => CalledTools::Default,
                Some("auto") => CalledTools::Auto,
                Some("none") => CalledTools::None,
                Some("required") => CalledTools::Required,
                Some(name) => CalledTools::Named(name.to_owned()),
            },
            parallel_tool_calls: request.parallel_tool_calls,
            verbosity: request.verbosity.clone(),
            body: request.body.clone(),
            summary: if request.summary { ReasoningSummary::Auto } else { ReasoningSummary::None },
            unsupported: if request.describe_media {
                UnsupportedMediaPolicy::Describe
            } else {
                UnsupportedMediaPolicy::Refuse
            },
            cache: if request.cache { CacheMarks::Auto } else { CacheMarks::None },
            stream: request.stream,
            ..RequestOptions::default()
        }
    }
}

/// Converts the schema of the answer. Fails if it is missing or invalid.
fn schema_of(output: &OutputDefinition) -> Result<Output, AgentFileError> {
    let Some(schema) = &output.schema else {
        return Err(Problem::new(["output"], "the JSON Schema is missing: set `schema` or `file`").into());
    };
    let output = Output::schema_only(schema.clone());
    OutputContract::new(output.clone()).map_err(|error| Problem::new(["output", "schema"], error))?;
    Ok(output)
}

#[cfg(feature = "http")]
fn http(silence: Option<Span>) -> Result<Arc<dyn Transport>, AgentFileError> {
    use backstitch_providers::Http;
    let http = silence.map_or_else(Http::new, |silence| Http::with_silence(silence.0));
    http.map(|http| Arc::new(http) as _).map_err(|error| AgentFileError::Transport(error.to_string()))
}

#[cfg(not(feature = "http"))]
fn http(_: Option<Span>) -> Result<Arc<dyn Transport>, AgentFileError> {
    Err(AgentFileError::Transport("pass a transport, or enable the feature `http`".to_owned()))
}
