//! The definition of an agent, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answering::{AnswerMode, DataDefinition};
use super::command_tool::CommandToolDefinition;
use super::engine::EngineDefinition;
use super::fallback::{FallbackDefinition, RetryDefinition};
use super::fetch::FetchDefinition;
use super::headers::HeaderTexts;
use super::mcp::McpDefinition;
use super::model::ModelName;
use super::provider::ProviderDefinition;
use super::skill::{SkillDefinition, SkillReader};
use super::sub_agent::SubAgentDefinition;
use super::values::{Money, Span, ToolChoice, is_default, thinking, yes};
use crate::Script;
use crate::budget::Limits;
use crate::journal::Effect;
use crate::mode::AgentMode;
use crate::ports::{PersonPort, Sandbox};
use crate::slices::Visibility;
use backstitch_providers::ThinkingBudget;
use backstitch_runtime::OnTruncation;

/// The definition of an agent: its model, prompt, tools and limits. It holds no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// Namespace of the prompt.
    #[serde(default = "agent")]
    pub ns: String,
    /// Name of the agent: the key of its prompt, and the name of its messages.
    #[serde(default = "agent")]
    pub name: String,
    /// Model. It is required to build the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Base URL of the model's API; `None` for the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Providers besides the built-in ones.
    #[serde(default, rename = "provider", skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderDefinition>,
    /// Other models for requests that the model does not answer, in order.
    #[serde(default, rename = "fallback", skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<FallbackDefinition>,
    /// Replies of a scripted model. A file is read into this field when the definition is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// The program that does the work, in place of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineDefinition>,
    /// Verbatim text before all sections of the system message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Sections of the system message.
    #[serde(default, rename = "section", skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionDefinition>,
    /// Values of `$field` in the texts of sections.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Form of the answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answers: AnswerMode,
    /// Values that programs read as `data/name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, DataDefinition>,
    /// Type of a program's answer, as a signature or a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Compression of requests: `true`, `false`, the name of a strategy, or a table with `strategy` and its
    /// options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Value>,
    /// Tools that are offered besides those of sections.
    #[serde(default)]
    pub tools: ToolChoice,
    /// Tools that run programs.
    #[serde(default, rename = "tool", skip_serializing_if = "Vec::is_empty")]
    pub command_tools: Vec<CommandToolDefinition>,
    /// MCP servers whose tools are offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpDefinition>,
    /// Agents that are tools of this one.
    #[serde(default, rename = "sub_agent", skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<SubAgentDefinition>,
    /// Texts that the model may load.
    #[serde(default, rename = "skill", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillDefinition>,
    /// Whether calls need the approval of a person, by the name of the tool. `default` stands for every other
    /// tool that changes something.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approval: BTreeMap<String, Approve>,
    /// What runs without a question. `None` is the meaning of sessions that were recorded before there were modes: only
    /// what `approval` names is asked about, and the network of MCP servers is that of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<AgentMode>,
    /// Options of the shell tool.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shell: ShellDefinition,
    /// Options of the tool that reads pages, which is offered with the tools for files and the shell. `None` is the meaning
    /// of sessions that were recorded before there was one: it is only offered by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchDefinition>,
    /// Limits of the processes of the shell and of commands. `None` means that they are not confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Directory of the agent's files.
    #[serde(default, skip_serializing_if = "is_default")]
    pub workspace: WorkspaceDefinition,
    /// Maximum spending of an evaluation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: BudgetDefinition,
    /// Prices of models, by `PROVIDER:MODEL`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, PriceDefinition>,
    /// Context window of the model, in tokens. Conversations above three quarters of it are shortened in
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether servers that are not the provider's own are asked for the window and the price of their models; `None`
    /// for the default, which is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// Maximum active time of an evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// Maximum number of turns of an evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Number of successive answers with the same calls after which an evaluation ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<u64>,
    /// Treatment of an answer that reached its token limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_truncation: OnTruncation,
    /// Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputDefinition>,
    /// Options of requests to the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub request: RequestDefinition,
    /// Retries of requests that failed; `None` for the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryDefinition>,
    /// Environment variables that commands do not see, besides those of keys. They are not recorded.
    #[serde(skip)]
    pub hidden: BTreeSet<String>,
    /// How the texts of skills are read. It is not recorded.
    #[serde(skip)]
    pub skill_reader: SkillReader,
    /// The person whom MCP servers may ask. It is not recorded.
    #[serde(skip)]
    pub person: PersonPort,
}

impl Default for AgentDefinition {
    /// The definition of an empty file.
    fn default() -> Self {
        serde_json::from_value(json!({})).expect("invariant: every key has a default")
    }
}

/// A section of the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionDefinition {
    /// Key, unique among its siblings.
    pub key: String,
    /// Heading.
    pub title: String,
    /// Text. `$field` is replaced by a parameter, and `$$` by `$`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Whether the section is shown in full or as a summary until it is opened.
    #[serde(default = "full")]
    pub visibility: Visibility,
    /// Text that is shown in place of a closed section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tools that are offered while the section is shown in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Child sections.
    #[serde(default, rename = "section", skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionDefinition>,
}

/// Returns the names of the tools of sections, and of those below them.
pub(super) fn tools_of(sections: &[SectionDefinition]) -> Vec<String> {
    let tools = |section: &SectionDefinition| [&section.tools[..], &tools_of(&section.sections)[..]].concat();
    sections.iter().flat_map(tools).collect()
}

fn agent() -> String {
    "agent".to_owned()
}

fn full() -> Visibility {
    Visibility::Full
}

/// Whether calls need the approval of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Every call needs approval: the session pauses before it.
    Ask,
    /// No call needs approval, also in a mode that would ask.
    Auto,
}

/// Options of the shell tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellDefinition {
    /// Possible effects of commands.
    pub effect: Effect,
    /// Time limit of a command if the call sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Directory of an agent's files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceDefinition {
    /// Path of the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Patterns of paths that are neither captured nor restored, as in a `.gitignore`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Whether a session works in a copy of the directory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// Commands that are executed in a new copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
}

/// Maximum spending of an evaluation; absent amounts are not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetDefinition {
    /// Input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the model's answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Money, in the unit of `prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Turns, including those of sub-agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Active time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
}

impl BudgetDefinition {
    /// Converts the budget; `None` if nothing is limited.
    pub fn limits(&self) -> Option<Limits> {
        let limits = Limits {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: self.tokens,
            money_micros: self.money.map(Money::micros),
            turns: self.turns,
            calls: self.calls,
            millis: self.time.map(|time| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX)),
        };
        (limits != Limits::default()).then_some(limits)
    }
}

/// Prices of a model per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceDefinition {
    /// Price of input tokens.
    pub input: Money,
    /// Price of input tokens that the provider reads from a cache; by default that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Money>,
    /// Price of input tokens that the provider writes to a cache; by default that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Money>,
    /// Price of output tokens.
    pub output: Money,
}

/// JSON Schema of the answer, in place or in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputDefinition {
    /// The schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// JSON file that holds the schema. It is read into `schema` when the definition is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// Options of requests to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestDefinition {
    /// Maximum number of tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Amount of thinking that is requested.
    #[serde(default, with = "thinking", skip_serializing_if = "is_default")]
    pub thinking: ThinkingBudget,
    /// Effort that is requested, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Randomness of answers, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Share of the most likely tokens that are considered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Seed of the randomness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Tools that the model may or must call: `auto`, `none`, `required`, or the name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<String>,
    /// Whether an answer may have several calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Length of answers, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
    /// Further fields of the body of requests. They are recorded, so they must not hold secrets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    /// Headers of requests, for gateways. `${VARIABLE}` in a value stands for an environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: HeaderTexts,
    /// Whether OpenAI summarizes its reasoning, if an effort is set.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub summary: bool,
    /// Whether media of users that the provider does not accept is described in words. Otherwise it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub describe_media: bool,
    /// Whether requests mark the parts that the provider should cache.
    #[serde(default = "yes")]
    pub cache: bool,
    /// Whether answers are streamed.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Time without data from the server after which a request fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Span>,
}

impl RequestDefinition {
    /// Removes what belongs to one server: the further fields of the body, and the headers. Returns the keys of those
    /// that were set.
    pub(super) fn clear_own_parts(&mut self) -> Vec<&'static str> {
        let had_body = !std::mem::take(&mut self.body).is_empty();
        let had_headers = !std::mem::take(&mut self.headers).is_empty();
        let had = [(had_body, "body"), (had_headers, "headers")];
        had.into_iter().filter_map(|(had, key)| had.then_some(key)).collect()
    }

    /// Removes an option that a provider refused, by its key. Returns whether there is such an option.
    pub(super) fn clear(&mut self, option: &str) -> bool {
        match option {
            "max_output_tokens" => self.max_output_tokens = None,
            "thinking" => self.thinking = ThinkingBudget::Default,
            "effort" => self.effort = None,
            "temperature" => self.temperature = None,
            "top_p" => self.top_p = None,
            "seed" => self.seed = None,
            "stop" => self.stop.clear(),
            "tool_choice" => self.tool_choice = None,
            "parallel_tool_calls" => self.parallel_tool_calls = None,
            "verbosity" => self.verbosity = None,
            "body" => self.body.clear(),
            _ => return false,
        }
        true
    }
}

impl Default for RequestDefinition {
    /// The options of an empty table.
    fn default() -> Self {
        serde_json::from_value(json!({})).expect("invariant: every key has a default")
    }
}
