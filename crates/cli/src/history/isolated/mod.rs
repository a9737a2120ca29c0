//! Isolated sessions: the copy of a project that a session works in, and what happens to its changes.

mod apply;
mod commits;
mod pending;

use backstitch::agent_file::AgentDefinition;
use backstitch::host::OpenedWorkspace;
use backstitch::id::SessionId;
use backstitch::view::JournalView;
use serde_json::{Value, json};

use crate::open::place::OpenStore;

pub(crate) use apply::Apply;
pub(crate) use pending::complete_interrupted;

/// Describes a new copy for a person.
pub(crate) fn copy_lines(opened: &OpenedWorkspace) -> Vec<String> {
    let (Some(isolation), Some(directory)) = (&opened.isolation, opened.workspace.host_directory()) else {
        return Vec::new();
    };
    let mut lines = vec![format!("works in a copy: {}", directory.display())];
    let left_out = &isolation.left_out;
    lines.extend(left_out.iter().take(10).map(|one| format!("not copied: {} ({})", one.path, one.reason)));
    if left_out.len() > 10 {
        lines.push(format!("not copied: {} more", left_out.len() - 10));
    }
    lines
}

/// Describes a new copy for a program.
pub(crate) fn copy_event(opened: &OpenedWorkspace, session: SessionId) -> Option<Value> {
    let isolation = opened.isolation.as_ref()?;
    Some(json!({
        "v": 1, "event": "isolated", "session": session, "project": isolation.project,
        "workspace": opened.workspace.host_directory(), "left_out": isolation.left_out,
    }))
}

/// Creates the directory of a copy again if it was deleted. Its files are restored from the store when the session is opened.
pub(crate) async fn bring_back(
    place: &OpenStore,
    view: &JournalView,
    definition: &AgentDefinition,
) -> anyhow::Result<()> {
    let is_gone = definition.workspace.path.as_ref().is_some_and(|path| !path.is_dir());
    if let Some(spec) = definition.workspace_spec()?.filter(|_| is_gone && view.isolation().is_some()) {
        place.runtime.open_workspace(&spec, view.session_id()).await?;
    }
    Ok(())
}
