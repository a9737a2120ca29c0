//! The agents that clients may start, and those that sessions are recorded with.
//!
//! A client cannot define an agent: it chooses one that the person offers who started the server. Keys, files and settings are those of that
//! person, so the program that starts the server brings the implementation.

use std::path::PathBuf;

use backstitch::agent_file::BuiltAgent;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::mode::AgentMode;
use backstitch::ports::BoxFuture;
use backstitch::report::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// What a client wants of the agent of a new session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChoice {
    /// The name of an offered agent; `None` for that of the settings.
    pub agent: Option<String>,
    /// A model in place of the agent's, as `PROVIDER:MODEL`.
    pub model: Option<String>,
    /// The directory to work in. It was compared with the roots of the server.
    pub directory: Option<PathBuf>,
    /// What runs without a question. It never allows more than the agent would without it.
    pub mode: Option<AgentMode>,
    /// Whether it works in a copy of the directory.
    pub is_isolated: bool,
}

/// An agent that can drive a session.
#[derive(Debug)]
pub struct RunnableAgent {
    /// The agent.
    pub built: BuiltAgent,
    /// What it runs without a question.
    pub mode: Option<AgentMode>,
    /// The directory that it works in. That of an isolated agent is the one that is copied.
    pub directory: Option<PathBuf>,
}

/// An agent that clients may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedAgent {
    /// Its name. A request without a name starts the agent of the settings.
    pub name: String,
    /// The file that defines it.
    pub file: Option<PathBuf>,
}

/// The agents that clients may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedAgents {
    /// Version of the form.
    pub v: Version,
    /// The agents with a name.
    pub agents: Vec<OfferedAgent>,
}

/// Defines and builds agents, with the files, the settings and the keys of the person who started the server.
pub trait Agents: Send + Sync + 'static {
    /// Lists the agents with a name.
    fn offered(&self) -> Vec<OfferedAgent>;

    /// Builds the agent of a new session.
    fn define(&self, choice: AgentChoice) -> BoxFuture<'_, Result<RunnableAgent, Problem>>;

    /// Builds the agent that a session is recorded with.
    fn recorded(&self, session: SessionId) -> BoxFuture<'_, Result<RunnableAgent, Problem>>;

    /// Returns the name of the person, with which decisions are recorded.
    fn person(&self) -> Option<String>;
}

/// No agents, for a server that only reads.
pub struct NoAgents;

impl NoAgents {
    fn refuse() -> Problem {
        Problem::new(ErrorCode::ServerReadOnly, "this server has no agents")
    }
}

impl Agents for NoAgents {
    fn offered(&self) -> Vec<OfferedAgent> {
        Vec::new()
    }

    fn define(&self, _: AgentChoice) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(async { Err(Self::refuse()) })
    }

    fn recorded(&self, _: SessionId) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(async { Err(Self::refuse()) })
    }

    fn person(&self) -> Option<String> {
        None
    }
}
