//! Isolated sessions: the copy of a project that a session works in, and what happens to its changes.

mod apply;
mod pending;

use backstitch::host::OpenedWorkspace;
use backstitch::id::SessionId;
use serde_json::{Value, json};

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
