//! What drives a session: who decides, what may be called, within which limits.

mod backoff;
mod build;
mod mission;
mod resume;
mod sub_agent;
mod workspace;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::digest::Digest;
use backstitch_core::execution::Resources;
use backstitch_core::machine::{MachineFactory, ToolLoopFactory};
use backstitch_core::ports::Policy;
use backstitch_core::prompt::{BoundPrompt, fingerprint};
use backstitch_core::secrets::Secrets;
use backstitch_core::session::Session;
use backstitch_core::tool::ToolSpec;
use backstitch_repl::LispOptions;
use backstitch_repl::transcript::{CompressedMachines, KeepAll, TranscriptCompression};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use backoff::Backoff;
pub use mission::Mission;
pub use resume::{DriftPolicy, Fidelity, ResumeOptions};
pub use sub_agent::SubAgent;
pub use workspace::AgentWorkspace;

use crate::adapters::Adapters;
use crate::contract::OutputContract;
use crate::error::RuntimeError;
use crate::policy::NoPolicy;
use crate::prices::Prices;
use crate::spans::Contents;
use crate::tools::Tools;

/// How evaluations go unless something else is said: as long as they like, but not in circles.
const LOOPS: ToolLoopFactory = ToolLoopFactory { max_turns: None, max_repeats: Some(12) };

/// What becomes of an evaluation whose answer reached its token limit before it was complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTruncation {
    /// It pauses with the reason `truncated`. Resuming it continues the answer, or takes it as it is.
    #[default]
    Pause,
    /// The policy is asked to continue, up to eight times in a row.
    Continue,
    /// It fails with the kind `truncated`.
    Fail,
}

impl OnTruncation {
    /// Whether nothing else was decided.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

type SetUp = dyn Fn(&mut Session) + Send + Sync;
type MakeResources = dyn Fn() -> Resources + Send + Sync;

/// What drives a session. A clone is cheap.
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
///     .with_budget(Limits { total_tokens: Some(200_000), ..Limits::default() })
///     .with_deadline(Duration::from_secs(600))
///     .with_max_turns(40);
/// assert_eq!((agent.ns.as_str(), agent.key.as_str()), ("shop", "tailor"));
/// ```
#[derive(Clone)]
pub struct Agent {
    /// The namespace of its prompt.
    pub ns: String,
    /// The key of its prompt.
    pub key: String,
    /// The rendered prompt: the system message of every evaluation.
    pub system: Option<String>,
    /// Who decides.
    pub policy: Arc<dyn Policy>,
    /// The name of the model that decides, until a runtime has opened it.
    pub(crate) model: Option<String>,
    /// The files of the sessions that it starts.
    pub(crate) files: Option<AgentWorkspace>,
    /// Makes the resources of each session that it is driven in.
    pub(crate) resources: Option<Arc<MakeResources>>,
    bound: Option<Arc<BoundPrompt>>,
    /// What is wrong with its definition.
    problem: Option<Arc<RuntimeError>>,
    /// What may be called.
    pub tools: Tools,
    /// Keys that must be neither recorded nor sent, besides those of its policy.
    pub secrets: Secrets,
    /// What makes an evaluation of answers and results, where that is not the loop of calls.
    machinery: Option<Arc<dyn MachineFactory>>,
    /// What whoever decides is shown of an evaluation, where that is not all of it.
    compression: Option<Arc<dyn TranscriptCompression>>,
    /// What an evaluation may spend.
    pub budget: Option<Limits>,
    /// What models cost, where that is known: it is how money is counted.
    pub prices: Prices,
    /// How much active time an evaluation has.
    pub deadline: Option<Duration>,
    /// What becomes of an evaluation whose answer reached its token limit.
    pub on_truncation: OnTruncation,
    /// How often, and after which waits, a policy that could not answer is asked again.
    pub backoff: Backoff,
    /// How deep agents that work for agents may be nested, from the one that a person asked: its own are at depth 1.
    pub max_depth: u32,
    /// What its answer looks like, where that is not just words.
    pub output: Option<Arc<OutputContract>>,
    /// What its system message was rendered from, where it was.
    pub(crate) prompt: Option<Arc<PromptSource>>,
    pub(crate) lisp: Option<Arc<LispOptions>>,
    loops: ToolLoopFactory,
    /// The definition of the agent as data, without secrets: it is recorded with a new session.
    pub definition: Value,
    set_up: Arc<SetUp>,
    pub(crate) contents: Contents,
    /// Opens models of sub-agents.
    pub(crate) adapters: Option<Arc<dyn Adapters>>,
}

/// What a system message was rendered from.
#[derive(Debug)]
pub(crate) struct PromptSource {
    /// The prompt's name, for people.
    pub(crate) name: String,
    /// The parameters.
    pub(crate) inputs: Value,
    /// What the prompt promises.
    pub(crate) descriptor: Digest,
}

impl Agent {
    /// An agent of this name, without tools and limits. It needs a [model](Agent::model) or a [policy](Agent::policy). The name
    /// may have a namespace before a slash, as in `shop/tailor`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let (ns, key) = name.rsplit_once('/').unwrap_or(("", &name));
        Self {
            ns: ns.to_owned(),
            key: key.to_owned(),
            system: None,
            policy: Arc::new(NoPolicy::default()),
            model: None,
            files: None,
            resources: None,
            bound: None,
            problem: None,
            tools: Tools::default(),
            secrets: Secrets::default(),
            machinery: None,
            compression: None,
            budget: None,
            prices: Prices::default(),
            deadline: None,
            on_truncation: OnTruncation::default(),
            backoff: Backoff::default(),
            max_depth: 3,
            output: None,
            prompt: None,
            lisp: None,
            loops: LOOPS,
            definition: Value::Null,
            set_up: Arc::new(|_| {}),
            contents: Contents::LeftOut,
            adapters: None,
        }
    }

    /// The prompt that it follows, where it follows one.
    pub(crate) fn bound(&self) -> Option<&BoundPrompt> {
        self.bound.as_deref()
    }

    /// All keys that must be neither recorded nor sent.
    pub(crate) fn all_secrets(&self) -> Secrets {
        self.secrets.and(&self.policy.secrets())
    }

    /// What an evaluation may spend. An agent that answers with programs and has agents below it shares its turns with them.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let has_agents = self.tools.iter().any(|tool| SubAgent::behind(tool).is_some());
        let Some(lisp) = self.lisp.as_ref().filter(|_| has_agents) else { return self.budget };
        let limits = self.budget.unwrap_or_default();
        Some(Limits { turns: limits.turns.or(Some(lisp.turn_budget)), ..limits })
    }

    /// The agent with its model opened, and those of its sub-agents seen to be there.
    pub(crate) fn resolved(&self, adapters: &Arc<dyn Adapters>) -> Result<Self, RuntimeError> {
        if let Some(problem) = &self.problem {
            return Err(RuntimeError::Shared(problem.clone()));
        }
        let mut agent = self.clone();
        if let Some(model) = &self.model {
            agent.policy = adapters.model(model).map_err(|source| RuntimeError::Model {
                agent: self.prompt_name(),
                model: model.clone(),
                source: Arc::from(source),
            })?;
        } else if self.policy.name().as_str() == NoPolicy::NAME {
            return Err(RuntimeError::NoModel { agent: self.prompt_name() });
        }
        agent.adapters = Some(adapters.clone());
        for below in self.tools.iter().filter_map(SubAgent::behind) {
            below.check(adapters)?;
        }
        Ok(agent)
    }

    pub(crate) fn machinery(&self) -> Arc<dyn MachineFactory> {
        let machinery = self.machinery.clone().unwrap_or_else(|| Arc::new(self.loops));
        match &self.compression {
            Some(strategy) if strategy.name() != KeepAll::NAME => {
                Arc::new(CompressedMachines::new(machinery, strategy.clone()))
            }
            // What is shown as it was said is kept from question to question, and rendered by nobody.
            _ => machinery,
        }
    }

    /// What requests name as their renderer when they show a conversation as it was said.
    pub(crate) fn renderer(&self) -> Option<String> {
        self.compression
            .as_ref()
            .filter(|strategy| strategy.name() == KeepAll::NAME)
            .map(|keep| keep.renderer())
    }

    pub(crate) fn set_up(&self, session: &mut Session) {
        (self.set_up)(session);
    }

    pub(crate) fn options(&self) -> Arc<[Arc<ToolSpec>]> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// The name of its prompt, for people.
    pub(crate) fn prompt_name(&self) -> String {
        match &self.prompt {
            Some(prompt) => prompt.name.clone(),
            None => format!("{}/{}", self.ns, self.key),
        }
    }

    /// A digest of the contract of each tool, by its name.
    pub(crate) fn contracts(&self) -> Result<BTreeMap<String, Digest>, serde_json::Error> {
        let tools = self.tools.iter();
        tools.map(|tool| Ok((tool.name().to_string(), tool.spec.contract_digest()?))).collect()
    }

    /// A digest of what the prompt promises: its text, the contracts of its tools, and its output.
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
