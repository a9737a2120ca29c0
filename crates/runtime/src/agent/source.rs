//! Agents by their names, for processes that drive sessions which others started.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::ports::BoxFuture;
use backstitch_core::session::BoxError;
use serde_json::Value;

use super::{Agent, ResumeOptions};

/// Finds the agent of a session by the name that its journal has.
pub trait AgentSource: Send + Sync {
    /// Returns the names of all agents that it knows. `None` if it has to see the session, since its journal defines the agent.
    fn names(&self) -> Option<Vec<String>>;

    /// Returns the agent of a session. `None` if it is not known here: then the session is left to other processes.
    fn agent<'a>(
        &'a self,
        name: &'a str,
        session: SessionId,
    ) -> BoxFuture<'a, Result<Option<Agent>, BoxError>>;

    /// Returns how the open evaluation of a session is continued, such as with what is left of a budget. By default nothing of it
    /// changes.
    fn resume_options(&self, session: SessionId) -> BoxFuture<'_, Result<ResumeOptions, BoxError>> {
        let _ = session;
        Box::pin(async { Ok(ResumeOptions::default()) })
    }

    /// Returns the agent for a new session, such as one of a schedule, by its name and its definition as data, if it has one. `None`
    /// if it is not known here.
    fn defined<'a>(
        &'a self,
        name: &'a str,
        definition: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Agent>, BoxError>>;
}

/// Agents of a program, by their names.
///
/// ```
/// use backstitch_runtime::{Agent, AgentRegistry, AgentSource as _};
///
/// let agents = AgentRegistry::new([Agent::new("shop/tailor"), Agent::new("cutter")]);
/// assert_eq!(agents.names(), Some(vec!["cutter".to_owned(), "tailor".to_owned()]));
/// ```
#[derive(Clone, Default)]
pub struct AgentRegistry(Arc<BTreeMap<String, Agent>>);

impl AgentRegistry {
    /// Creates a registry of these agents. Of two agents of one name, the later one counts.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self(Arc::new(agents.into_iter().map(|agent| (agent.key.clone(), agent)).collect()))
    }
}

impl AgentSource for AgentRegistry {
    fn names(&self) -> Option<Vec<String>> {
        Some(self.0.keys().cloned().collect())
    }

    fn agent<'a>(&'a self, name: &'a str, _: SessionId) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        Box::pin(async move { Ok(self.0.get(name).cloned()) })
    }

    fn defined<'a>(&'a self, name: &'a str, _: &'a Value) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        Box::pin(async move { Ok(self.0.get(name).cloned()) })
    }
}
