//! Isolated sessions: the copy of a project that a session works in, and what happens to its changes.

mod apply;

use backstitch::host::{OpenedWorkspace, interrupted_applies};
use backstitch::id::SessionId;
use backstitch::stores::StoreAddress;
use serde_json::{Value, json};

pub(crate) use apply::Apply;

use crate::common::Common;
use crate::error::message_of;
use crate::open::{OpenStore, short};

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

/// Completes applications of the store that were interrupted, as every command does first. What cannot be completed is
/// reported, and left to the next command.
pub(crate) async fn complete_interrupted(common: &Common) {
    let store = common.known_store().and_then(|store| store.absolute().ok());
    let Some(directory) = store.as_ref().and_then(StoreAddress::directory) else { return };
    if interrupted_applies(directory).is_empty() {
        return;
    }
    let Ok(place) = OpenStore::existing(common) else { return };
    for (session, completed) in place.runtime.complete_applies().await {
        let session = short(session);
        match completed {
            Ok(done) => {
                eprintln!("completed the interrupted apply of session {session} to {}", done.directory);
            }
            Err(error) => {
                let message = message_of(&error.into());
                eprintln!(
                    "warning: the apply of session {session} was interrupted, and cannot be completed: {message}"
                );
            }
        }
    }
}
