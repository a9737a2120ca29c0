//! What an agent may do that a person should know before it does it, as the library describes it.

use backstitch::agent_file::AgentDefinition;
use backstitch::ports::Sandbox;

pub(crate) use backstitch::agent_file::imported_note as imported;

/// Describes what an agent may do, a line for each right.
pub(crate) fn rights(definition: &AgentDefinition) -> Vec<String> {
    definition.rights()
}

/// Limits the sandbox of an agent that another user defined.
pub(crate) fn confine(definition: &mut AgentDefinition, limit: &Sandbox) {
    definition.confine(limit);
}
