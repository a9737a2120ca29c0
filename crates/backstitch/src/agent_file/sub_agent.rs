//! Sub-agents of agent files.
//!
//! A `[[sub_agent]]` is a tool whose calls another agent answers. It works in the directory of its caller. What its
//! own definition leaves open comes from the caller: the model with its address, providers, prices, retries, and the
//! calls that need approval. It has the stricter of its own mode and that of the caller.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command_tool::NO_DESCRIPTION;
use super::definition::{AgentDefinition, Approve};
use super::error::Problem;
use super::values::Span;
use crate::tool::Tool;
use crate::{Agent, SubAgent};

/// Maximum nesting of sub-agents in files. A file that names itself reaches it.
pub(super) const DEEPEST: usize = 8;

/// An agent as a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubAgentDefinition {
    /// Name by which the model calls it.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// File that defines the agent. It is read into `agent` when the definition is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentDefinition>>,
    /// Whether calls need the approval of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approve>,
    /// Time limit of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

impl SubAgentDefinition {
    /// Returns the definition of the agent, with what it inherits from its caller.
    pub(super) fn inherited(&self, caller: &AgentDefinition) -> Result<AgentDefinition, Problem> {
        let agent = self.agent.as_deref();
        let has_path = agent.is_some_and(|agent| agent.workspace.path.is_some());
        let has_engine = agent.is_some_and(|agent| agent.engine.is_some());
        Problem::check([
            ("description", self.description.trim().is_empty(), NO_DESCRIPTION),
            ("name", agent.is_none(), "the agent is missing: set `file` or `[sub_agent.agent]`"),
            ("agent", has_path, "a sub-agent works in the directory of its caller: remove `workspace.path`"),
            ("agent", has_engine, "a sub-agent has no engine: give it a model"),
        ])?;
        let mut agent = agent.cloned().unwrap_or_default();
        agent.person = caller.person.clone();
        // Its MCP servers work there too.
        agent.workspace.path.clone_from(&caller.workspace.path);
        if agent.model.is_none() {
            agent.model = caller.model.clone();
            agent.script = agent.script.or_else(|| caller.script.clone());
            agent.base_url = agent.base_url.or_else(|| caller.base_url.clone());
            if agent.fallbacks.is_empty() {
                agent.fallbacks.clone_from(&caller.fallbacks);
            }
            if agent.request == Default::default() {
                agent.request = caller.request.clone();
            }
        }
        caller.providers.iter().for_each(|provider| agent.add_provider(provider));
        agent.hidden.extend(caller.own_variables());
        for (model, price) in &caller.prices {
            agent.prices.entry(model.clone()).or_insert(*price);
        }
        // The command line and the user decide about the sandbox of the whole session.
        agent.sandbox = caller.sandbox.clone().or(agent.sandbox);
        agent.mode = agent.mode.into_iter().chain(caller.mode).min();
        agent.fetch = agent.fetch.or_else(|| caller.fetch.clone());
        agent.retry = agent.retry.or(caller.retry);
        agent.discover = agent.discover.or(caller.discover);
        // A call that needs approval needs it in every agent of the session.
        for (tool, decision) in &caller.approval {
            if agent.knows_tool(tool) {
                agent.approval.entry(tool.clone()).or_insert(*decision);
            }
        }
        Ok(agent)
    }

    /// Builds the tool of an agent that was built.
    pub(super) fn tool(&self, agent: Agent) -> Result<Tool, Problem> {
        let tool = SubAgent::new(&self.name, &self.description, agent)
            .map_err(|error| Problem::new(["name"], error))?;
        let tool = tool.described(|mut builder| {
            if self.approval == Some(Approve::Ask) {
                builder = builder.needs_approval();
            }
            match self.timeout {
                Some(timeout) => builder.timeout(timeout.0),
                None => builder,
            }
        });
        Ok(tool.into_tool())
    }
}
