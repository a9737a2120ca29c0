//! What an agent is, as data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answering::{AnswerMode, DataDefinition};
use super::model::ModelName;
use super::values::{Money, Span, ThinkingSetting, ToolChoice};
use crate::Script;
use crate::budget::Limits;
use crate::journal::Effect;
use crate::slices::Visibility;
use backstitch_runtime::OnTruncation;

/// What an agent is: who decides, what it is told, what it may call and within which limits. It holds no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentDefinition {
    /// The namespace of its prompt.
    pub ns: String,
    /// Its name: the key of its prompt, and the name that it speaks under.
    pub name: String,
    /// The model that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Where the model is asked, where that is not its provider's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The replies of a scripted model. A file is read into this when the definition is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// What the model is told before all sections, as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What the model is told, section by section.
    #[serde(rename = "section", skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionDefinition>,
    /// What `$field` stands for in the texts of sections.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// How it answers.
    #[serde(skip_serializing_if = "AnswerMode::is_default")]
    pub mode: AnswerMode,
    /// What `data/name` reads in programs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, DataDefinition>,
    /// What a program's answer looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// How it is shown what was said before: `true`, `false`, the name of a strategy, or a table with `strategy` and its options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Value>,
    /// The tools that are offered beside those of sections.
    pub tools: ToolChoice,
    /// Which calls a person has to approve, by the name of the tool; `default` stands for every tool that changes something and
    /// is not named.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approval: BTreeMap<String, Approve>,
    /// How commands are run.
    #[serde(skip_serializing_if = "ShellDefinition::is_default")]
    pub shell: ShellDefinition,
    /// The files.
    #[serde(skip_serializing_if = "WorkspaceDefinition::is_default")]
    pub workspace: WorkspaceDefinition,
    /// What an evaluation may spend.
    #[serde(skip_serializing_if = "BudgetDefinition::is_default")]
    pub budget: BudgetDefinition,
    /// What models cost, by `PROVIDER:MODEL`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, PriceDefinition>,
    /// How much active time an evaluation has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// How many answers an evaluation may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// After how many answers in a row that make the same calls an evaluation ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<u64>,
    /// What becomes of an answer that reached its token limit.
    #[serde(skip_serializing_if = "OnTruncation::is_default")]
    pub on_truncation: OnTruncation,
    /// What the answer looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputDefinition>,
    /// How the model is asked.
    #[serde(skip_serializing_if = "RequestDefinition::is_default")]
    pub request: RequestDefinition,
}

impl Default for AgentDefinition {
    fn default() -> Self {
        Self {
            ns: "agent".to_owned(),
            name: "agent".to_owned(),
            model: None,
            base_url: None,
            script: None,
            system: None,
            sections: Vec::new(),
            parameters: Map::new(),
            mode: AnswerMode::default(),
            data: BTreeMap::new(),
            signature: None,
            compression: None,
            tools: ToolChoice::All,
            approval: BTreeMap::new(),
            shell: ShellDefinition::default(),
            workspace: WorkspaceDefinition::default(),
            budget: BudgetDefinition::default(),
            prices: BTreeMap::new(),
            deadline: None,
            max_turns: None,
            max_repeats: None,
            on_truncation: OnTruncation::default(),
            output: None,
            request: RequestDefinition::default(),
        }
    }
}

/// A section of the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionDefinition {
    /// Its key, unique among its neighbours.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// What it says. `$field` is a parameter, and `$$` the sign itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How much of it is shown until it is opened.
    #[serde(default = "full")]
    pub visibility: Visibility,
    /// What is shown in its place where it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The tools that it offers where it is shown in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The sections below it.
    #[serde(default, rename = "section", skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionDefinition>,
}

impl SectionDefinition {
    /// Whether it, or anything below it, offers a tool like this.
    pub(super) fn any_tool(&self, like: &dyn Fn(&str) -> bool) -> bool {
        self.tools.iter().any(|name| like(name)) || self.sections.iter().any(|below| below.any_tool(like))
    }
}

fn full() -> Visibility {
    Visibility::Full
}

/// Whether a person has to approve calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Someone has to, each time: the session pauses.
    Ask,
    /// Nobody has to.
    Auto,
}

/// How commands are run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellDefinition {
    /// What commands may do to the world.
    pub effect: Effect,
    /// How long a command may take when the call does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// The files of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceDefinition {
    /// The directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Patterns of what is neither kept nor put back, as in a `.gitignore`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// What an evaluation may spend; what is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetDefinition {
    /// Tokens of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that the model answers with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Money, in the unit that prices are given in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Answers, those of sub-agents included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Active time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
}

impl BudgetDefinition {
    /// The limits; none when nothing is limited.
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

/// What a model costs, for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceDefinition {
    /// Of tokens that are sent to it.
    pub input: Money,
    /// Of those that its provider reads from a cache; without it, that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Money>,
    /// Of those that its provider writes to a cache; without it, that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Money>,
    /// Of tokens that it answers with.
    pub output: Money,
}

/// What the answer looks like: a JSON Schema, in place or in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputDefinition {
    /// The schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The file that holds it, as JSON. It is read into `schema` when the definition is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// How the model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestDefinition {
    /// The most tokens that an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much the model is asked to think.
    #[serde(skip_serializing_if = "ThinkingSetting::is_default")]
    pub thinking: ThinkingSetting,
    /// How hard the model is asked to try, in its provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether the provider is told what to keep for the next request.
    pub cache: bool,
    /// Whether answers come piece by piece.
    pub stream: bool,
    /// How long a server may say nothing before it counts as gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Span>,
}

impl Default for RequestDefinition {
    fn default() -> Self {
        Self {
            max_output_tokens: None,
            thinking: ThinkingSetting::Default,
            effort: None,
            cache: true,
            stream: true,
            silence: None,
        }
    }
}

macro_rules! is_default {
    ($($type:ty),*) => {$(
        impl $type {
            fn is_default(&self) -> bool {
                *self == Self::default()
            }
        }
    )*};
}

is_default!(ShellDefinition, WorkspaceDefinition, BudgetDefinition, RequestDefinition);
