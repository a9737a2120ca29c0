//! Applications that were interrupted.
//!
//! A file beside the store names each session that is being applied. Every command looks for such files first. If no process
//! works on the session, the application is completed.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::ports::StoreError;
use backstitch::{RuntimeError, stores};

use crate::common::Common;
use crate::error::{code_of, message_of};
use crate::open::place::{OpenStore, short};

/// Name of the directory of these files, beside the store.
const MARKS: &str = "applies";

/// The file that names a session which is being applied.
pub(super) struct ApplyMark(PathBuf);

impl ApplyMark {
    pub(super) fn set(place: &OpenStore, session: SessionId) -> std::io::Result<Self> {
        let directory = place.directory().join(MARKS);
        stores::make_private(&directory)?;
        let path = directory.join(session.to_string());
        fs::write(&path, "")?;
        Ok(Self(path))
    }

    /// Removes the file: the application is complete, or was not begun.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

/// Completes applications of the store that were interrupted. What cannot be completed is reported, and left to the next
/// command.
pub(crate) async fn complete_interrupted(common: &Common) {
    let Some(store) = store_of(common) else { return };
    let Some(directory) = store.parent() else { return };
    let Ok(marks) = fs::read_dir(directory.join(MARKS)) else { return };
    let sessions = marks.flatten().filter_map(|mark| mark.file_name().to_str()?.parse().ok());
    let sessions: Vec<SessionId> = sessions.collect();
    if sessions.is_empty() {
        return;
    }
    let Ok(place) = OpenStore::existing(common) else { return };
    for session in sessions {
        match complete(&place, session).await {
            Ok(Some(directory)) => {
                eprintln!("completed the interrupted apply of session {} to {directory}", short(session));
            }
            Ok(None) => {}
            // Another process is applying it.
            Err(error) if matches!(code_of(&error), ErrorCode::SessionHeld) => {}
            Err(error) => {
                let message = message_of(&error);
                eprintln!(
                    "warning: the apply of session {} was interrupted, and cannot be completed: {message}",
                    short(session)
                );
            }
        }
    }
}

/// Returns the store that a command would use, without asking anything.
fn store_of(common: &Common) -> Option<PathBuf> {
    if let Some(store) = &common.store {
        return store.absolute().ok()?.path().map(Path::to_owned);
    }
    let here = std::env::current_dir().ok()?;
    stores::existing(&here).ok().flatten()
}

/// Completes the application of a session. Returns the directory, if there was something to complete.
pub(super) async fn complete(place: &OpenStore, session: SessionId) -> anyhow::Result<Option<String>> {
    let mark = ApplyMark(place.directory().join(MARKS).join(session.to_string()));
    let view = match place.runtime.view(session).await {
        Err(error) if matches!(error.cause(), RuntimeError::SessionNotFound { .. }) => {
            mark.remove();
            return Ok(None);
        }
        view => view?,
    };
    // A process that holds the session may be applying it.
    if let Some(owner) = place.store.holder(session).await? {
        return Err(RuntimeError::Store(StoreError::Held { session, owner, process: None }).into());
    }
    let Some(pending) = view.pending_apply() else {
        mark.remove();
        return Ok(None);
    };
    let directory = pending.record.directory.clone();
    let completed = place.runtime.complete_apply(session, None).await?;
    mark.remove();
    Ok(completed.map(|_| directory))
}
