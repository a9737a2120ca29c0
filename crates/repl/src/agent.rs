//! The definition of a Lisp agent, and its compiled form.

use std::fmt;
use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::tool::ToolSpec;
use backstitch_lisp::{Engine, Inputs, Limits, Map, Memory, Tools, Value, from_json};
use serde_json::{Map as Object, Value as Json};

use crate::compression::{Compression, NoCompression, for_turns};
use crate::firewall::Firewall;
use crate::mission::{MissionError, fill_mission};
use crate::prompt::{self, PromptParts};
use crate::signature::{AnswerCheck, Signature};

/// The default number of answers that an evaluation may have.
pub const MAX_TURNS: u64 = 5;

/// The default number of answers that an agent and all its sub-agents may have together.
pub const TURN_BUDGET: u64 = 20;

/// The default nesting depth of sub-agents.
pub const MAX_DEPTH: u32 = 3;

/// Limits of an agent, and the compression of its history. A sub-agent inherits all of them unchanged: the
/// runtime counts turns and depth from the root agent.
#[derive(Debug, Clone)]
pub struct LispOptions {
    /// The number of answers that an evaluation may have. With one, the value of its program is the answer.
    pub max_turns: u64,
    /// The number of answers that this agent and all its sub-agents may have together.
    pub turn_budget: u64,
    /// The nesting depth of sub-agents, from the root agent.
    pub max_depth: u32,
    /// The limits of one program.
    pub limits: Limits,
    /// The compression of the history. An agent with one turn has no history, and uses none.
    pub compression: Arc<dyn Compression>,
}

impl Default for LispOptions {
    fn default() -> Self {
        Self {
            max_turns: MAX_TURNS,
            turn_budget: TURN_BUDGET,
            max_depth: MAX_DEPTH,
            limits: Limits::default(),
            compression: Arc::new(NoCompression::default()),
        }
    }
}

impl LispOptions {
    /// The number of answers that an evaluation may have, regardless of its sub-agents.
    pub fn most_turns(&self) -> u64 {
        self.max_turns.min(self.turn_budget).max(1)
    }
}

/// An agent that answers with programs.
///
/// ```
/// use backstitch_repl::LispAgent;
/// use serde_json::json;
///
/// let agent = LispAgent::new()
///     .with_data("orders", json!([{"id": 1, "total": 20}, {"id": 2, "total": 5}]))
///     .with_signature("{count :int}".parse()?)
///     .with_max_turns(3);
/// assert_eq!(agent.mission("Count {{orders.0.id}}")?, "Count 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LispAgent {
    /// The values of `data/name`.
    pub data: Object<String, Json>,
    /// The tools that programs call as `(tool/name ...)`.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The form of the answer; without one, every value is accepted.
    pub signature: Option<Signature>,
    /// Checks answers against the JSON Schema of the signature, if it has one that says more than its types.
    pub answer_check: Option<AnswerCheck>,
    /// Limits, and the compression of the history.
    pub options: LispOptions,
    /// Instructions that precede the reference of the language in the system message.
    pub instructions: Option<String>,
}

impl LispAgent {
    /// Creates an agent without data and tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, name: impl Into<String>, value: Json) -> Self {
        self.data.insert(name.into(), value);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the form of the answer.
    #[must_use]
    pub fn with_signature(mut self, signature: Signature) -> Self {
        self.signature = Some(signature);
        self
    }

    /// Sets the check of answers against the JSON Schema of the signature. A runtime sets it.
    #[must_use]
    pub fn with_answer_check(mut self, check: AnswerCheck) -> Self {
        self.answer_check = Some(check);
        self
    }

    /// Sets the number of answers that an evaluation may have. A smaller turn budget is raised to it.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: u64) -> Self {
        self.options.max_turns = max_turns;
        self.options.turn_budget = self.options.turn_budget.max(max_turns);
        self
    }

    /// Sets the limits of one program.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Sets the compression of the history.
    #[must_use]
    pub fn with_compression(mut self, compression: Arc<dyn Compression>) -> Self {
        self.options.compression = compression;
        self
    }

    /// Sets the instructions.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Replaces all options.
    #[must_use]
    pub fn with_options(mut self, options: LispOptions) -> Self {
        self.options = options;
        self
    }

    /// Fills a template with the data of the agent.
    pub fn mission(&self, template: &str) -> Result<String, MissionError> {
        fill_mission(template, &self.data)
    }

    /// The parts that the system message depends on.
    pub(crate) fn prompt_parts(&self) -> PromptParts<'_> {
        PromptParts {
            instructions: self.instructions.as_deref(),
            most_turns: self.options.most_turns(),
            limits: &self.options.limits,
            data: &self.data,
            tools: &self.tools,
            signature: self.signature.as_ref(),
        }
    }

    /// The system message.
    pub fn system(&self) -> String {
        prompt::system(&self.prompt_parts())
    }
}

/// An agent cannot be created from its definition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The name of a data item cannot be written in a program.
    #[error(
        "{name:?} is not a name for data: programs read it as data/NAME, so it is letters, digits, `-` and `_`"
    )]
    DataName {
        /// The name.
        name: String,
    },
    /// A data item is larger than the limits allow.
    #[error("data/{name} cannot be passed to a program: {reason}; raise the limits, or pass less")]
    Data {
        /// The item.
        name: String,
        /// The cause.
        reason: String,
    },
    /// The JSON Schema of the signature cannot be used.
    #[error("the JSON Schema of the signature cannot be used: {reason}")]
    Signature {
        /// The cause.
        reason: String,
    },
    /// The data cannot be written as JSON.
    #[error("the agent's data cannot be written as JSON: {reason}")]
    NotJson {
        /// The cause.
        reason: String,
    },
}

/// A compiled agent: created once, and shared by all of its machines.
pub(crate) struct CompiledAgent {
    pub(crate) agent: LispAgent,
    pub(crate) engine: Engine,
    pub(crate) data: Map,
    pub(crate) tools: Tools,
    pub(crate) schema: Option<Json>,
    /// The values that no prompt may show.
    pub(crate) firewall: Firewall,
    /// A digest of all inputs of a program apart from the results of earlier programs.
    pub(crate) inputs: Digest,
}

impl CompiledAgent {
    pub(crate) fn new(mut agent: LispAgent, engine: Engine) -> Result<Self, AgentError> {
        let most_turns = agent.options.most_turns();
        agent.options.compression = for_turns(agent.options.compression, most_turns);
        let mut data = Map::new();
        for (name, json) in &agent.data {
            check_data_name(name)?;
            let value = from_json(json, &agent.options.limits).map_err(|error| AgentError::Data {
                name: name.clone(),
                reason: error.message().to_owned(),
            })?;
            data.insert(Value::keyword(name.as_str()), value);
        }
        let mut tools = Tools::new();
        for spec in &agent.tools {
            tools = tools.with(spec.name.as_str(), parameters(spec));
        }
        let declared: Vec<(&str, Vec<String>)> =
            agent.tools.iter().map(|spec| (spec.name.as_str(), parameters(spec))).collect();
        let inputs = Digest::of_json(&(&agent.data, declared, format!("{:?}", agent.options.limits)))
            .map_err(|error| AgentError::NotJson { reason: error.to_string() })?;
        let schema = agent.signature.as_ref().map(Signature::to_schema);
        let firewall = Firewall::of(&agent.data);
        Ok(Self { agent, engine, data, tools, schema, firewall, inputs })
    }

    /// The inputs of a program, without what changes from turn to turn but for the memory.
    pub(crate) fn inputs_with(&self, memory: Memory) -> Inputs {
        let (data, tools) = (self.data.clone(), self.tools.clone());
        Inputs { data, tools, memory, limits: self.agent.options.limits.clone(), ..Inputs::default() }
    }

    pub(crate) fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.agent.tools.iter().find(|spec| spec.name.as_str() == name).map(|spec| &**spec)
    }
}

impl fmt::Debug for CompiledAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prepared").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Refuses names of data that cannot be written as `data/name` in a program.
pub fn check_data_name(name: &str) -> Result<(), AgentError> {
    let is_name = !name.contains('/') && backstitch_lisp::is_keyword_name(name);
    is_name.then_some(()).ok_or_else(|| AgentError::DataName { name: name.to_owned() })
}

/// The parameters of a tool, in the order of its schema.
fn parameters(spec: &ToolSpec) -> Vec<String> {
    let names = spec.parameters.get("properties").and_then(Json::as_object);
    names.map(|names| names.keys().cloned().collect()).unwrap_or_default()
}
