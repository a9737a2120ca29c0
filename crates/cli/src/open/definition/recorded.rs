//! The definition that a session is recorded with.

use backstitch::agent_file::{AgentDefinition, AgentFileError, recorded_definition};
#[cfg(feature = "mcp")]
use backstitch::journal::Note;
use backstitch::view::JournalView;

use crate::error::CommandError;
use crate::open::place::OpenStore;

/// Returns the current definition of a session's agent.
pub(crate) async fn definition_of(place: &OpenStore, view: &JournalView) -> anyhow::Result<AgentDefinition> {
    // No argument of the command is wrong, and no file.
    recorded_definition(&*place.store, view, None).await.map_err(|error| match error {
        AgentFileError::Runtime(error) => error.into(),
        error => CommandError::new(error.code(), error.to_string()).into(),
    })
}

/// Builds the note that a session continues with another definition of its MCP servers or tools.
#[cfg(feature = "mcp")]
pub(crate) fn changed_tools(before: &AgentDefinition, after: &AgentDefinition) -> Note {
    let mut text = "continues with another definition of the agent".to_owned();
    for server in after.mcp_servers() {
        let known = before.mcp_servers().into_iter().find(|other| other.name == server.name);
        let change = known.map(|known| known.difference(server)).unwrap_or_default();
        for (what, names) in
            [("added", change.added), ("removed", change.removed), ("changed", change.changed)]
        {
            if !names.is_empty() {
                text.push_str(&format!("; MCP server {} has {what} {}", server.name, names.join(", ")));
            }
        }
    }
    after.note(text)
}
