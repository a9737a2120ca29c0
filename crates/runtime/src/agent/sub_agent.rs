//! Agents as options of other agents.
//!
//! A [`SubAgent`] is a tool whose work another agent does. A call of it runs in a session of its own, in the same store, which
//! names the call that it works for; the call lends it its hold on files and snapshotable resources. After a crash that session is gone on with, and
//! nothing that it has done is done again. It may spend what the call holds back for it and has no more time than its caller. When
//! it waits for a decision its caller waits as well. When it fails, the call fails as a whole: the files go back to before the
//! call, and the session goes back to before it was asked.

use std::fmt;
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
use crate::error::RuntimeError;
use crate::spans::Contents;

/// An agent as an option of another.
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
pub struct SubAgent {
    tool: ToolBuilder,
    agent: Source,
    mission: Arc<MissionOf>,
}

type MissionOf = dyn Fn(Map<String, Value>) -> Result<Mission, serde_json::Error> + Send + Sync;

/// Where the agent comes from.
#[derive(Clone)]
enum Source {
    Given(Box<Agent>),
    OfCaller(Arc<dyn Fn(&Agent) -> Agent + Send + Sync>),
}

/// What an agent is asked, unless it has parameters of its own.
#[derive(Deserialize, JsonSchema)]
struct DefaultMission {
    /// What is to be done, with everything that has to be known for it.
    mission: String,
}

impl SubAgent {
    /// An agent that is called by a name and takes a mission in words. What it may do to the world follows from its tools.
    pub fn new(name: &str, description: impl Into<String>, agent: Agent) -> Result<Self, InvalidToolName> {
        let specs = || agent.tools.iter().map(|tool| &tool.spec);
        let effect = specs().map(|spec| spec.effect).fold(Effect::Workspace, stronger);
        let workspace = specs().map(|spec| spec.workspace).fold(WorkspaceUse::None, wider);
        let resources = specs().map(|spec| spec.resources).max().unwrap_or_default();
        let tool = Tool::builder(name, description)?.effect(effect).workspace(workspace).resources(resources);
        Ok(Self::of(tool, Source::Given(Box::new(agent))))
    }

    /// An agent that is made from the one that calls it, when it does: with its policy, its limits, its way to make an evaluation, or
    /// whatever else of it. What it may do to the world is not known before, so it is taken for the worst; say it with
    /// [`SubAgent::described`].
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

    /// Gives it parameters of its own, and says what a call with them asks of the agent.
    #[must_use]
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

    /// Says more of it as a tool: that it needs approval, how long a call may take, what it may do.
    #[must_use]
    pub fn described(mut self, describe: impl FnOnce(ToolBuilder) -> ToolBuilder) -> Self {
        self.tool = describe(self.tool);
        self
    }

    /// The tool.
    pub fn into_tool(self) -> Tool {
        self.tool.clone().build(Arc::new(self))
    }

    /// The agent behind a tool, where there is one.
    pub(crate) fn behind(tool: &Tool) -> Option<&Self> {
        tool.handler.as_any()?.downcast_ref()
    }

    /// The agent that works for a call of `caller`. It is held to the caller's depth.
    pub(crate) fn agent(&self, caller: &Agent) -> Agent {
        let agent = match &self.agent {
            Source::Given(agent) => Agent::clone(agent),
            Source::OfCaller(make) => make(caller),
        };
        let depth = agent.max_depth.min(caller.max_depth);
        let agent = if caller.contents == Contents::Told { agent.with_contents_in_spans() } else { agent };
        let mut agent = agent.with_max_depth(depth);
        // A model that cannot be opened says so when it is asked; agents that are given were checked before.
        if let (Some(adapters), Some(model)) = (&caller.adapters, &agent.model) {
            if let Ok(policy) = adapters.model(model) {
                agent.policy = policy;
            }
            agent.adapters = Some(adapters.clone());
        }
        agent
    }

    /// Whether its agent can be driven, where that is known before it is called.
    pub(crate) fn check(&self, adapters: &Arc<dyn Adapters>) -> Result<(), RuntimeError> {
        match &self.agent {
            Source::Given(agent) => agent.resolved(adapters).map(|_| ()),
            Source::OfCaller(_) => Ok(()),
        }
    }

    /// What a call asks of the agent, or why nothing.
    pub(crate) fn mission(&self, arguments: Map<String, Value>) -> Result<Mission, String> {
        (self.mission)(arguments).map_err(|error| error.to_string())
    }
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

impl fmt::Debug for SubAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SubAgent").finish_non_exhaustive()
    }
}

/// The effect of whoever may have both. An agent is never only pure: it has a session.
fn stronger(one: Effect, other: Effect) -> Effect {
    let strength = |effect| match effect {
        Effect::Pure => 0,
        Effect::Workspace => 1,
        Effect::Idempotent => 2,
        Effect::External => 3,
    };
    if strength(other) > strength(one) { other } else { one }
}

/// The use of files of whoever may use them in both ways.
fn wider(one: WorkspaceUse, other: WorkspaceUse) -> WorkspaceUse {
    match (one, other) {
        (WorkspaceUse::Write, _) | (_, WorkspaceUse::Write) => WorkspaceUse::Write,
        (WorkspaceUse::Read, _) | (_, WorkspaceUse::Read) => WorkspaceUse::Read,
        (WorkspaceUse::None, WorkspaceUse::None) => WorkspaceUse::None,
    }
}
