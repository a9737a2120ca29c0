//! Isolated sessions: the copy of a project that a session works in, and what happens to its changes.

mod apply;
mod commits;
mod pending;
mod setup;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::ports::{Store as _, UncoveredPath};
use backstitch::view::JournalView;
use backstitch::workspace::{HostWorkspace, restore_copy};
use backstitch::{Isolation, isolated};
use serde_json::{Value, json};

use super::place::OpenStore;
use crate::error::CommandError;
use crate::terminal;

pub(crate) use apply::Apply;
pub(super) use pending::complete_interrupted;

/// A copy that was made for a new session.
pub(super) struct NewCopy {
    pub(super) workspace: Arc<HostWorkspace>,
    pub(super) isolation: Isolation,
    left_out: Vec<UncoveredPath>,
}

impl NewCopy {
    /// Copies the directory of a definition, if it says so, and makes the copy its directory. Then runs the commands that set
    /// it up.
    pub(super) async fn make(
        place: &OpenStore,
        definition: &mut AgentDefinition,
        session: SessionId,
    ) -> anyhow::Result<Option<Self>> {
        let Some(project) = definition.workspace.path.clone().filter(|_| definition.workspace.isolated)
        else {
            return Ok(None);
        };
        sweep(place, &project).await?;
        if !terminal::is_quiet() {
            eprintln!("copying {}", project.display());
        }
        let (store, source) = (place.directory(), project.clone());
        let copying = move || isolated::copy_for(&store, &source, session);
        let copy = Arc::new(tokio::task::spawn_blocking(copying).await?.map_err(|error| {
            CommandError::new(error.code(), error.to_string())
                .with_hint("without `--isolated`, the session works in the directory itself")
        })?);
        let directory = copy.directory.clone();
        let opened = async {
            setup::run(definition, &directory).await?;
            place.open_copy(copy.clone(), &definition.workspace.excludes, session)
        };
        let workspace = match opened.await {
            Ok(workspace) => workspace,
            Err(error) => {
                let _ = isolated::remove(&directory, session);
                return Err(error);
            }
        };
        definition.workspace.path = Some(directory);
        let left_out = copy.left_out.clone();
        let isolation =
            Isolation { project, left_out: left_out.iter().map(|one| one.path.clone()).collect() };
        Ok(Some(Self { workspace, isolation, left_out }))
    }

    /// Describes the copy for a person.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("works in a copy: {}", self.workspace.path().display())];
        lines.extend(
            self.left_out.iter().take(10).map(|one| format!("not copied: {} ({})", one.path, one.reason)),
        );
        if self.left_out.len() > 10 {
            lines.push(format!("not copied: {} more", self.left_out.len() - 10));
        }
        lines
    }

    /// Describes the copy for a program.
    pub(super) fn event(&self, session: SessionId) -> Value {
        json!({
            "v": 1, "event": "isolated", "session": session, "project": self.isolation.project,
            "workspace": self.workspace.path(), "left_out": self.left_out,
        })
    }
}

/// Creates the directory of a copy again if it was deleted. Its files are restored from the store when the session is opened.
pub(super) async fn bring_back(view: &JournalView, definition: &AgentDefinition) -> anyhow::Result<()> {
    let session = view.session_id();
    let (Some(isolated), Some(directory)) = (view.isolation(), definition.workspace.path.clone()) else {
        return Ok(());
    };
    if directory.is_dir() || Path::new(&isolated.record.directory) != directory {
        return Ok(());
    }
    let project = isolated.record.project.clone();
    let target = directory.clone();
    let restoring = move || restore_copy(Path::new(&project), &target);
    tokio::task::spawn_blocking(restoring).await?.map_err(|error| {
        let message = format!("the copy of session {session} is gone and cannot be created again: {error}");
        CommandError::new(ErrorCode::WorkspaceGone, message)
    })?;
    eprintln!(
        "the copy {} was gone: its files are restored from the store, commits that were made in it are lost",
        directory.display()
    );
    setup::run(definition, &directory).await
}

/// Removes copies that belong to no session.
pub(super) async fn sweep(place: &OpenStore, project: &Path) -> anyhow::Result<()> {
    let unclaimed = isolated::unclaimed(&place.directory(), project);
    let sessions = place.store.sessions().await?;
    let known: std::collections::HashSet<String> = sessions.iter().map(ToString::to_string).collect();
    for copy in unclaimed {
        if copy.session().is_some_and(|session| known.contains(session)) {
            continue;
        }
        // What cannot be removed now is removed by a later session.
        if let Ok(path) = copy.remove() {
            eprintln!("removed an unfinished copy: {}", path.display());
        }
    }
    Ok(())
}

/// Returns the copies of sessions that are going to be removed.
pub(super) async fn copies_of(
    place: &OpenStore,
    sessions: impl IntoIterator<Item = SessionId>,
) -> Vec<(SessionId, std::path::PathBuf)> {
    let mut copies = Vec::new();
    for session in sessions {
        // A session that cannot be read is removed all the same.
        let Ok(view) = place.view(session).await else { continue };
        if let Some(isolated) = view.isolation().filter(|isolated| isolated.point.session == session) {
            copies.push((session, isolated.record.directory.clone().into()));
        }
    }
    copies
}

/// Removes the copies of sessions that were removed. Returns how many there were.
pub(super) fn remove_copies(copies: Vec<(SessionId, std::path::PathBuf)>) -> anyhow::Result<usize> {
    let mut removed = 0;
    for (session, directory) in copies {
        let failed = || format!("the copy {} cannot be removed", directory.display());
        removed += usize::from(isolated::remove(&directory, session).with_context(failed)?);
    }
    Ok(removed)
}
