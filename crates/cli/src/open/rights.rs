//! What an agent may do that a person should know before it does it, as the library describes it.

use backstitch::agent_file::AgentDefinition;

/// Describes what an agent may do, a line for each right.
pub(crate) fn rights(definition: &AgentDefinition) -> Vec<String> {
    definition.rights()
}
