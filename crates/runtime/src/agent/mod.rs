//! Agents: the policy, the tools and the limits of an evaluation.

mod backoff;
mod build;
mod fallback;
mod mission;
mod mode;
mod source;
mod sub_agent;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::approval::ApprovalRules;
use backstitch_core::budget::Limits;
use backstitch_core::digest::Digest;
use backstitch_core::execution::Resources;
use backstitch_core::machine::{MachineFactory, ToolLoopFactory};
use backstitch_core::ports::{Policy, Workspace};
use backstitch_core::prompt::{BoundPrompt, fingerprint};
use backstitch_core::secrets::Secrets;
use backstitch_core::session::Session;
use backstitch_core::tool::ToolSpec;
use backstitch_repl::LispOptions;
use backstitch_repl::recall::TOOL_NAME;
use backstitch_repl::transcript::{
    CompressedMachines, CutOptions, CutRules, ElideOptions, KeepAll, TranscriptCompression,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use backoff::Backoff;
pub use build::AgentEngine;
pub use fallback::{Fallback, FallbackReason};
pub use mission::{DriftPolicy, Fidelity, Mission, ResumeOptions};
use mode::ModeChoice;
pub use source::{AgentRegistry, AgentSource};
pub(crate) use sub_agent::MissionProblem;
pub use sub_agent::SubAgent;

use crate::adapters::Adapters;
use crate::contract::OutputContract;
use crate::error::{Result, RuntimeError};
use crate::policy::NoPolicy;
use crate::prices::Prices;
use crate::spans::Contents;
use crate::tools::Tools;
use crate::workspace::WorkspaceSpec;

/// The default loop: any number of turns, but a limited number of repeated ones.
const LOOPS: ToolLoopFactory = ToolLoopFactory { max_turns: None, max_repeats: Some(12) };

/// What happens to an evaluation whose answer reached its token limit before it was complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTruncation {
    /// It pauses with the reason `truncated`. Resuming it continues the answer, or accepts it as it is.
    #[default]
    Pause,
    /// The policy is asked to continue, up to eight times in a row.
    Continue,
    /// It fails with the kind `truncated`.
    Fail,
}

type SetUp = dyn Fn(&mut Session) + Send + Sync;
type MakeResources = dyn Fn() -> Resources + Send + Sync;
type DefinitionIn = fn(Value, &Path) -> Value;

/// The policy, tools and limits that drive a session. Cloning is cheap.
///
/// ```
/// use std::time::Duration;
///
/// use backstitch_core::budget::Limits;
/// use backstitch_runtime::Agent;
///
/// let agent = Agent::new("shop/tailor")
///     .model("anthropic:MODEL")
///     .instructions("You mend clothes.")
///     .budget(Limits { total_tokens: Some(200_000), ..Limits::default() })
///     .deadline(Duration::from_secs(600))
///     .max_turns(40);
/// assert_eq!((agent.ns.as_str(), agent.key.as_str()), ("shop", "tailor"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Agent {
    /// The namespace of its prompt.
    pub ns: String,
    /// The key of its prompt.
    pub key: String,
    /// The rendered prompt: the system message of every evaluation.
    pub system: Option<String>,
    /// Makes the decisions.
    pub policy: Arc<dyn Policy>,
    /// The name of the model, which a runtime opens.
    pub(crate) model: Option<String>,
    /// Other models for requests that the model does not answer, in order.
    pub fallbacks: Vec<Fallback>,
    /// The program that does its work.
    pub(crate) engine: Option<AgentEngine>,
    files: Option<WorkspaceSpec>,
    /// Whether each session works in a copy of the directory.
    is_isolated: bool,
    /// Creates the resources of each session.
    pub(crate) resources: Option<Arc<MakeResources>>,
    pub(crate) bound: Option<Arc<BoundPrompt>>,
    /// The first error of the definition.
    problem: Option<Arc<RuntimeError>>,
    /// Tools that the policy may call.
    pub tools: Tools,
    /// Keys that are neither recorded nor sent, in addition to those of its policy.
    pub secrets: Secrets,
    /// Rules about calls of its tools and those of its sub-agents, such as the lasting ones of a user.
    pub approval_rules: ApprovalRules,
    mode: ModeChoice,
    /// Replaces the default loop of calls.
    machinery: Option<Arc<dyn MachineFactory>>,
    /// Shortens the conversation that the policy sees. `None` shows all of it.
    compression: Option<Arc<dyn TranscriptCompression>>,
    /// Budget of an evaluation.
    pub budget: Option<Limits>,
    /// Prices of models. For other models only costs that the provider reports are counted.
    pub prices: Prices,
    /// The context window of its model, in tokens. Conversations above three quarters of it are shortened in
    /// requests. `None` sends everything until a provider refuses a request for its length.
    pub window: Option<u64>,
    /// Active time of an evaluation.
    pub deadline: Option<Duration>,
    /// What happens to an evaluation whose answer reached its token limit.
    pub on_truncation: OnTruncation,
    /// Retries of a policy that could not answer.
    pub backoff: Backoff,
    /// Most levels of nested sub-agents. Those of an agent without a parent are at depth 1.
    pub max_depth: u32,
    /// Form of the answer, unless it is plain text.
    pub output: Option<Arc<OutputContract>>,
    /// Source of the system message, if it was rendered from a prompt.
    pub(crate) prompt: Option<Arc<PromptSource>>,
    pub(crate) lisp: Option<Arc<LispOptions>>,
    loops: ToolLoopFactory,
    /// The definition of the agent as data, without secrets. It is recorded in each new session.
    pub definition: Value,
    /// Sets the directory of a definition.
    definition_in: Option<DefinitionIn>,
    set_up: Arc<SetUp>,
    pub(crate) contents: Contents,
    /// Opens the models of sub-agents.
    pub(crate) adapters: Option<Arc<dyn Adapters>>,
}

/// The prompt that a system message was rendered from.
#[derive(Debug)]
pub(crate) struct PromptSource {
    /// The prompt's name, for people.
    pub(crate) name: String,
    /// Values of the parameters.
    pub(crate) inputs: Value,
    /// Digest of the prompt's definition.
    pub(crate) descriptor: Digest,
}

impl Agent {
    /// Creates an agent of this name, without tools and limits. It needs a [model](Agent::model) or a
    /// [policy](Agent::policy). The name may have a namespace before a slash, as in `shop/tailor`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let (ns, key) = name.rsplit_once('/').unwrap_or(("", &name));
        Self {
            ns: ns.to_owned(),
            key: key.to_owned(),
            system: None,
            policy: Arc::new(NoPolicy::default()),
            model: None,
            fallbacks: Vec::new(),
            engine: None,
            files: None,
            is_isolated: false,
            resources: None,
            bound: None,
            problem: None,
            tools: Tools::default(),
            secrets: Secrets::default(),
            approval_rules: ApprovalRules::default(),
            mode: ModeChoice::default(),
            machinery: None,
            compression: None,
            budget: None,
            prices: Prices::default(),
            window: None,
            deadline: None,
            on_truncation: OnTruncation::default(),
            backoff: Backoff::default(),
            max_depth: 3,
            output: None,
            prompt: None,
            lisp: None,
            loops: LOOPS,
            definition: Value::Null,
            definition_in: None,
            set_up: Arc::new(|_| {}),
            contents: Contents::LeftOut,
            adapters: None,
        }
    }

    /// Returns the files that its sessions work on, if it has any.
    pub fn workspace_spec(&self) -> Option<WorkspaceSpec> {
        let mut spec = self.files.clone()?;
        spec.isolated |= self.is_isolated;
        Some(spec)
    }

    /// Returns the definition to record in a session with this workspace. It names the directory that the session works
    /// in, which may be a copy of the agent's.
    pub(crate) fn recorded_definition(&self, workspace: Option<&Arc<dyn Workspace>>) -> Value {
        let directory = workspace.and_then(|workspace| workspace.host_directory());
        match (self.definition_in, directory) {
            (Some(definition_in), Some(directory)) => definition_in(self.definition.clone(), &directory),
            _ => self.definition.clone(),
        }
    }

    /// Returns all keys that are neither recorded nor sent.
    pub(crate) fn all_secrets(&self) -> Secrets {
        let fallbacks = self.fallbacks.iter().filter_map(Fallback::opened);
        fallbacks.fold(self.secrets.and(&self.policy.secrets()), |all, policy| all.and(&policy.secrets()))
    }

    /// Returns the budget of an evaluation. An agent that answers with programs and has sub-agents shares its
    /// turns with them.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let has_agents = self.tools.iter().any(|tool| SubAgent::behind(tool).is_some());
        let Some(lisp) = self.lisp.as_ref().filter(|_| has_agents) else { return self.budget };
        let limits = self.budget.unwrap_or_default();
        Some(Limits { turns: limits.turns.or(Some(lisp.turn_budget)), ..limits })
    }

    /// Returns the agent with its model opened, after a check that the models of its sub-agents can be
    /// opened.
    pub(crate) fn resolved(&self, adapters: &Arc<dyn Adapters>) -> Result<Self> {
        if let Some(problem) = &self.problem {
            return Err(RuntimeError::Shared(problem.clone()));
        }
        let mut agent = self.clone();
        if let Some(model) = &self.model {
            agent.policy = adapters.model(model).map_err(|error| RuntimeError::Model {
                agent: prompt_path(&self.ns, &self.key),
                model: model.clone(),
                cause: Arc::from(error),
            })?;
        } else if self.policy.name().as_str() == NoPolicy::NAME {
            return Err(RuntimeError::NoModel { agent: prompt_path(&self.ns, &self.key) });
        }
        agent.open_fallbacks(adapters)?;
        agent.adapters = Some(adapters.clone());
        for below in self.tools.iter().filter_map(SubAgent::behind) {
            below.check(adapters)?;
        }
        Ok(agent)
    }

    pub(crate) fn machines(&self) -> Arc<dyn MachineFactory> {
        let machinery = self.machinery.clone().unwrap_or_else(|| Arc::new(self.loops));
        match &self.compression {
            Some(strategy)
                if strategy.name() != KeepAll::NAME
                    && strategy.cut_rules().is_none()
                    && self.elides().is_none() =>
            {
                Arc::new(CompressedMachines::new(machinery, strategy.clone()))
            }
            // A conversation without compression, with recorded cuts or with elided results is cached between requests.
            _ => machinery,
        }
    }

    /// Returns the strategy that elides old results for each request anew, with its options.
    pub(crate) fn elides(&self) -> Option<(&dyn TranscriptCompression, &ElideOptions)> {
        let strategy = self.compression.as_deref()?;
        Some((strategy, strategy.elides()?))
    }

    /// Returns the name of the renderer that requests record when they show an uncompressed conversation.
    pub(crate) fn renderer(&self) -> Option<String> {
        self.compression
            .as_ref()
            .filter(|strategy| strategy.name() == KeepAll::NAME)
            .map(|keep| keep.renderer())
    }

    /// Returns the rules by which a conversation is cut that has used up its room.
    pub(crate) fn cut_rules(&self) -> CutRules {
        let own = self.compression.as_ref().and_then(|strategy| strategy.cut_rules());
        let mut rules = own.unwrap_or_else(|| CutOptions::default().rules());
        if rules.recall.is_none() && self.tools.get(TOOL_NAME).is_some() {
            rules.recall = Some(TOOL_NAME.to_owned());
        }
        rules
    }

    pub(crate) fn set_up_session(&self, session: &mut Session) {
        (self.set_up)(session);
    }

    pub(crate) fn options(&self) -> Arc<[Arc<ToolSpec>]> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    pub(crate) fn prompt_name(&self) -> String {
        match &self.prompt {
            Some(prompt) => prompt.name.clone(),
            None => format!("{}/{}", self.ns, self.key),
        }
    }

    /// Returns a digest of the contract of each tool, by its name.
    pub(crate) fn contracts(&self) -> Result<BTreeMap<String, Digest>, serde_json::Error> {
        let tools = self.tools.iter();
        tools.map(|tool| Ok((tool.name().to_string(), tool.spec.contract_digest()?))).collect()
    }

    /// Returns a digest of the prompt's contract: its text, the contracts of its tools, and its output.
    pub fn fingerprint(&self) -> Result<Digest, serde_json::Error> {
        let tools = self.tools.iter().map(|tool| &*tool.spec);
        let output = self.output.as_ref().map(|contract| &**contract.output().schema());
        fingerprint(&self.ns, &self.key, self.system.as_deref(), tools, output)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("ns", &self.ns)
            .field("key", &self.key)
            .field("policy", self.policy.name())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Formats the name of a prompt for people. A prompt without a namespace is only its key.
pub(crate) fn prompt_path(ns: &str, key: &str) -> String {
    if ns.is_empty() { key.to_owned() } else { format!("{ns}/{key}") }
}
