//! The definition of a Lisp agent, and what is made of it once.

use std::fmt;
use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::tool::ToolSpec;
use backstitch_lisp::{Engine, Limits, Map, Tools, Value, from_json};
use serde_json::{Map as Object, Value as Json};

use crate::compression::{Compression, NoCompression, for_turns};
use crate::mission::{MissionError, fill_mission};
use crate::prompt;
use crate::signature::Signature;

/// How many answers an evaluation may have, unless it is said.
pub const MAX_TURNS: u64 = 5;

/// How many answers an agent and all agents below it may have together, unless it is said.
pub const TURN_BUDGET: u64 = 20;

/// How deep agents that work for agents may be nested, unless it is said.
pub const MAX_DEPTH: u32 = 3;

/// What an agent may use up and how it is shown its past. An agent that another one calls inherits all of it as it is: whoever
/// drives them counts turns and depth from the one that a person asked.
#[derive(Debug, Clone)]
pub struct LispOptions {
    /// How many answers an evaluation may have. With one, its program's value is the answer.
    pub max_turns: u64,
    /// How many answers this agent and all agents below it may have together.
    pub turn_budget: u64,
    /// How deep agents that work for agents may be nested, from the one that a person asked.
    pub max_depth: u32,
    /// What one program may use up.
    pub limits: Limits,
    /// How it is shown its past. An agent that has one turn has none, and nothing is compressed for it.
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
    /// How many answers an evaluation may have, whatever agents below it use up.
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
    /// What `data/name` reads.
    pub data: Object<String, Json>,
    /// What `(tool/name ...)` may call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What the answer looks like; without it, anything does.
    pub signature: Option<Signature>,
    /// What it may use up, and how it is shown its past.
    pub options: LispOptions,
    /// What is said to the model beside the reference of the language.
    pub instructions: Option<String>,
}

impl LispAgent {
    /// An agent with nothing but the language.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it data.
    #[must_use]
    pub fn with_data(mut self, name: impl Into<String>, value: Json) -> Self {
        self.data.insert(name.into(), value);
        self
    }

    /// Gives it tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Says what its answer looks like.
    #[must_use]
    pub fn with_signature(mut self, signature: Signature) -> Self {
        self.signature = Some(signature);
        self
    }

    /// Says how many answers an evaluation may have. A turn budget that is smaller grows with it.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: u64) -> Self {
        self.options.max_turns = max_turns;
        self.options.turn_budget = self.options.turn_budget.max(max_turns);
        self
    }

    /// Says what one program may use up.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Says how it is shown its past.
    #[must_use]
    pub fn with_compression(mut self, compression: Arc<dyn Compression>) -> Self {
        self.options.compression = compression;
        self
    }

    /// Says something to the model beside the reference of the language.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Gives it options, as it would inherit them.
    #[must_use]
    pub fn with_options(mut self, options: LispOptions) -> Self {
        self.options = options;
        self
    }

    /// The mission that a template makes of its data.
    pub fn mission(&self, template: &str) -> Result<String, MissionError> {
        fill_mission(template, &self.data)
    }

    /// The system message.
    pub fn system(&self) -> String {
        let most_turns = self.options.most_turns();
        prompt::system(self.instructions.as_deref(), most_turns, self.signature.as_ref())
    }
}

/// An agent cannot be made from its definition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No program could write the name of a data item.
    #[error(
        "{name:?} is no name for data: programs read it as data/NAME, so it is letters, digits, `-` and `_`"
    )]
    DataName {
        /// The name.
        name: String,
    },
    /// A data item is larger than the limits allow.
    #[error("data/{name} cannot be given to a program: {reason}; raise the limits, or give less")]
    Data {
        /// The item.
        name: String,
        /// Why.
        reason: String,
    },
    /// What it is given cannot be written as JSON.
    #[error("the agent's data cannot be written as JSON: {reason}")]
    NotJson {
        /// Why.
        reason: String,
    },
}

/// An agent that is ready to run programs: made once, and shared by all of its machines.
pub(crate) struct CompiledAgent {
    pub(crate) agent: LispAgent,
    pub(crate) engine: Engine,
    pub(crate) data: Map,
    pub(crate) tools: Tools,
    /// The schema of the answer.
    pub(crate) schema: Option<Json>,
    /// A digest of all that a program is given but for what programs before it left.
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
        let told: Vec<(&str, Vec<String>)> =
            agent.tools.iter().map(|spec| (spec.name.as_str(), parameters(spec))).collect();
        let inputs = Digest::of_json(&(&agent.data, told, format!("{:?}", agent.options.limits)))
            .map_err(|error| AgentError::NotJson { reason: error.to_string() })?;
        let schema = agent.signature.as_ref().map(Signature::to_schema);
        Ok(Self { agent, engine, data, tools, schema, inputs })
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

/// Refuses names of data that no program could write as `data/name`.
pub fn check_data_name(name: &str) -> Result<(), AgentError> {
    let is_name = !name.contains('/') && backstitch_lisp::is_keyword_name(name);
    is_name.then_some(()).ok_or_else(|| AgentError::DataName { name: name.to_owned() })
}

/// The parameters of a tool, in the order of its schema.
fn parameters(spec: &ToolSpec) -> Vec<String> {
    let names = spec.parameters.get("properties").and_then(Json::as_object);
    names.map(|names| names.keys().cloned().collect()).unwrap_or_default()
}
