//! Agents whose work another program does.

use std::collections::BTreeMap;

use backstitch_core::message::PolicyName;
use backstitch_core::ports::Sandbox;

use super::Agent;
use crate::error::RuntimeError;
use crate::policy::NoPolicy;

/// The program that does the work of an agent, as data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentEngine {
    /// The name of the engine, such as `claude-code`.
    pub name: String,
    /// The model, in the program's own words. `None` leaves the choice to the program.
    pub model: Option<String>,
    /// Whether calls of the program's own tools need the approval of a person, by name. `default` is for all others that
    /// may change something.
    pub approval: BTreeMap<String, bool>,
    /// Limits of its processes. `None` means that they are not confined.
    pub sandbox: Option<Sandbox>,
}

impl Agent {
    /// Returns the program that does the work, if it is not a model.
    pub fn engine_name(&self) -> Option<&str> {
        self.engine.as_ref().map(|engine| engine.name.as_str())
    }

    /// Gives the work to another program. The runtime that drives the agent opens it.
    pub fn engine(mut self, engine: AgentEngine) -> Self {
        match PolicyName::new(&engine.name) {
            Ok(name) => self.policy = std::sync::Arc::new(NoPolicy::of(name)),
            Err(error) => self.fail(RuntimeError::Message(error)),
        }
        self.model = None;
        self.engine = Some(engine);
        self
    }
}
