//! Agents as tools of other agents.
//!
//! A [`SubAgent`] is a tool whose calls another agent answers. Each call runs in a child session in the same
//! store, which records its parent call. The call lends the child its hold on files and snapshotable
//! resources. After a crash the child session is resumed, and its finished work is not repeated. It may spend
//! what the call has reserved, and has no more time than its parent. While it waits for a decision, its
//! parent waits as well. When it fails, the call fails as a whole: the files are restored to their state
//! before the call, and the child session is rewound to before its mission.

use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{
    InvalidToolName, ResourceUse, Tool, ToolBuilder, ToolContext, ToolError, ToolHandler, ToolOutcome,
    WorkspaceUse,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Agent, Mission};
use crate::adapters::Adapters;
use crate::error::Result;
use crate::fence::catch_panic;
use crate::spans::Contents;

/// An agent as a tool of another agent.
///
/// ```
/// use backstitch_runtime::{Agent, SubAgent};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Job {
///     cloth: String,
/// }
///
/// let tailor = Agent::new("shop/tailor").model("anthropic:MODEL");
/// let mend = SubAgent::new("mend", "Mends clothes.", tailor)?
///     .asking(|job: Job| format!("Mend the {}.", job.cloth));
/// let shop = Agent::new("shop/manager").model("anthropic:MODEL").tools([mend]);
/// assert!(shop.tools.get("mend").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct SubAgent {
    tool: ToolBuilder,
    agent: Source,
    mission: Arc<MissionOf>,
}

type MissionOf = dyn Fn(Map<String, Value>) -> Result<Mission, serde_json::Error> + Send + Sync;

#[derive(Clone)]
enum Source {
    Given(Box<Agent>),
    OfCaller(Arc<dyn Fn(&Agent) -> Agent + Send + Sync>),
}

// The doc comments are part of the tool's schema, and so of its recorded contract.
/// What an agent is asked, unless it has parameters of its own.
#[derive(Deserialize, JsonSchema)]
struct DefaultMission {
    /// What is to be done, with everything that has to be known for it.
    mission: String,
}

impl SubAgent {
    /// Creates a tool with this name, which takes a mission as text. Its effect class follows from the
    /// agent's tools. It is never pure, since the agent has a session.
    pub fn new(name: &str, description: impl Into<String>, agent: Agent) -> Result<Self, InvalidToolName> {
        let specs = || agent.tools.iter().map(|tool| &tool.spec);
        let effect = specs().map(|spec| spec.strongest_effect()).fold(Effect::Workspace, Effect::max);
        let workspace = specs().map(|spec| spec.workspace).max().unwrap_or(WorkspaceUse::None);
        let resources = specs().map(|spec| spec.resources).max().unwrap_or_default();
        let tool = Tool::builder(name, description)?.effect(effect).workspace(workspace).resources(resources);
        Ok(Self::of(tool, Source::Given(Box::new(agent))))
    }

    /// Creates a tool whose agent is derived from the calling agent at each call, so that it can inherit the
    /// policy, limits, machine or anything else. Its effects are not known before, so the strongest effect
    /// class is assumed; set another with [`SubAgent::described`].
    pub fn inheriting(
        name: &str,
        description: impl Into<String>,
        agent: impl Fn(&Agent) -> Agent + Send + Sync + 'static,
    ) -> Result<Self, InvalidToolName> {
        let tool = Tool::builder(name, description)?.resources(ResourceUse::Write);
        Ok(Self::of(tool, Source::OfCaller(Arc::new(agent))))
    }

    fn of(tool: ToolBuilder, agent: Source) -> Self {
        Self { tool, agent, mission: Arc::new(|_| Ok(Mission::from(""))) }
            .asking(|asked: DefaultMission| Mission::from(asked.mission))
    }

    /// Sets its parameters, and the mission that a call with them makes.
    pub fn asking<P, M>(mut self, mission: impl Fn(P) -> M + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        M: Into<Mission>,
    {
        self.tool = self.tool.typed::<P>();
        self.mission = Arc::new(move |arguments| {
            let parameters = serde_json::from_value(Value::Object(arguments))?;
            Ok(mission(parameters).into())
        });
        self
    }

    /// Sets further properties of the tool: approval, time limit, effects.
    pub fn described(mut self, describe: impl FnOnce(ToolBuilder) -> ToolBuilder) -> Self {
        self.tool = describe(self.tool);
        self
    }

    /// Builds the tool.
    pub fn into_tool(self) -> Tool {
        self.tool.clone().build(Arc::new(self))
    }

    /// Returns the sub-agent that handles a tool, if one does.
    pub(crate) fn behind(tool: &Tool) -> Option<&Self> {
        tool.handler.as_any()?.downcast_ref()
    }

    /// Returns the agent that answers a call of `caller`. It is bound by the caller's limit of depth.
    pub(crate) fn agent(&self, caller: &Agent) -> Agent {
        let agent = match &self.agent {
            Source::Given(agent) => Agent::clone(agent),
            Source::OfCaller(make) => make(caller),
        };
        let depth = agent.max_depth.min(caller.max_depth);
        let agent = if caller.contents == Contents::Included { agent.contents_in_spans() } else { agent };
        let mut agent = agent.max_depth(depth);
        // A model that cannot be opened fails when it is called. Agents of `Source::Given` were checked
        // before.
        if let (Some(adapters), Some(model)) = (&caller.adapters, &agent.model) {
            if let Ok(policy) = adapters.model(model) {
                agent.policy = policy;
            }
            agent.adapters = Some(adapters.clone());
        }
        agent
    }

    /// Fails if its agent cannot be driven, as far as that is known before a call.
    pub(crate) fn check(&self, adapters: &Arc<dyn Adapters>) -> Result<()> {
        match &self.agent {
            Source::Given(agent) => agent.resolved(adapters).map(|_| ()),
            Source::OfCaller(_) => Ok(()),
        }
    }

    /// Returns the mission that a call makes, or why its arguments make none.
    pub(crate) fn mission(&self, arguments: Map<String, Value>) -> Result<Mission, MissionProblem> {
        match catch_panic(|| (self.mission)(arguments)) {
            Ok(mission) => mission.map_err(|error| MissionProblem::Unfit(error.to_string())),
            Err(panic) => Err(MissionProblem::Panicked(panic)),
        }
    }
}

/// Why arguments make no mission.
pub(crate) enum MissionProblem {
    Unfit(String),
    Panicked(String),
}

impl From<SubAgent> for Tool {
    fn from(agent: SubAgent) -> Self {
        agent.into_tool()
    }
}

impl ToolHandler for SubAgent {
    fn call(&self, _: ToolContext, _: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async { Err(ToolError::new("an agent works only where a driver drives its caller")) })
    }

    fn as_any(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        Some(self)
    }
}

debug_fields!(SubAgent {});
