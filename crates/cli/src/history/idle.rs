//! A session that no process drives, whose history or files a command changes.
//!
//! An operation opens the files itself. This names them: the directory of the recorded definition, which is the only place that
//! knows a directory that files were moved to between two runs, or else that of the journal.

use std::path::{Path, PathBuf};

use backstitch::agent_file::{AgentDefinition, WorkspaceDefinition};
use backstitch::code::ErrorCode;
use backstitch::host::KeptFiles;
use backstitch::id::SessionId;
use backstitch::journal::Note;
use backstitch::view::JournalView;
use backstitch::{OperationFiles, RewindOptions};

use super::neighbours;
use crate::common::Common;
use crate::error::code_of;
use crate::open::definition::{MovedTo, definition_of};
use crate::open::guarded::{CommandSession, GuardedSession, close_ended, kept_files};
use crate::open::{OpenStore, ensure_idle};

/// A session whose history or files change, and where its files are.
pub(crate) struct IdleSession {
    pub(crate) place: OpenStore,
    pub(crate) session: SessionId,
    /// Its view before the change.
    pub(crate) view: JournalView,
    /// The definition of its agent. An agent of a program in Rust has none.
    pub(crate) definition: Option<AgentDefinition>,
    pub(crate) files: OperationFiles,
    /// The note to add if the files were moved.
    moved: Option<Note>,
}

impl IdleSession {
    /// Finds a session and its files. Fails if a process drives it.
    pub(crate) async fn open(
        common: &Common,
        session: Option<&str>,
        moved: Option<&MovedTo>,
    ) -> anyhow::Result<Self> {
        let (place, session) = OpenStore::with_session(common, session).await?;
        let view = place.view(session).await?;
        Self::of_view(common, place, view, moved).await
    }

    /// Finds the files of a session. Fails if a process drives it.
    pub(crate) async fn of_view(
        common: &Common,
        place: OpenStore,
        view: JournalView,
        moved: Option<&MovedTo>,
    ) -> anyhow::Result<Self> {
        let session = view.session_id();
        let definition = recorded_definition(&place, &view).await?;
        let mut current = definition.clone().unwrap_or_else(|| of_journal(&view));
        let is_moved = moved.map(|moved| moved.apply(&mut current)).transpose()?.unwrap_or_default();
        let files = match &current.workspace.path {
            None if definition.is_none() => OperationFiles::Recorded,
            None => OperationFiles::Untouched,
            Some(_) => {
                let mut spec = current.workspace_spec()?.unwrap_or_default();
                // A copy that was deleted is created again. No other directory is.
                spec.in_place = is_moved || view.isolation().is_none();
                OperationFiles::Within(spec)
            }
        };
        ensure_idle(common, &place, session).await?;
        let moved = (is_moved && definition.is_some()).then(|| current.change_note());
        Ok(Self { place, session, view, definition, files, moved })
    }

    /// Returns the options of a rewind. The settings of a guarded program stay as they are.
    pub(crate) fn options(&self) -> RewindOptions {
        let guarded = self.directory().filter(|_| GuardedSession::of(&self.view).is_some());
        let kept = guarded
            .map(|directory| KeptFiles { paths: kept_files(directory), objects: self.place.objects.clone() });
        RewindOptions { files: self.files.clone(), kept, ..RewindOptions::default() }
    }

    /// Fails if the program of the session, or another session in its directory, may still change files. Calls of a guarded
    /// session that have ended without a report are closed.
    pub(crate) async fn check_quiet(&mut self, common: &Common) -> anyhow::Result<()> {
        if let Some(command) = CommandSession::of(&self.view) {
            command.check_quiet(&self.place.directory)?;
        } else if let Some(guarded) = GuardedSession::of(&self.view) {
            guarded.check_processes(&self.view)?;
            self.view = close_ended(&self.place, self.view.clone()).await?;
            guarded.check_quiet(&self.place, &self.view).await?;
        }
        match self.directory() {
            Some(directory) => neighbours::check(common, &self.place, directory, self.session).await,
            None => Ok(()),
        }
    }

    /// Returns the directory of the files.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match &self.files {
            OperationFiles::Within(spec) => Some(&spec.path),
            _ => None,
        }
    }

    /// Records the new directory, if the files were moved.
    pub(crate) async fn record_move(&mut self) -> anyhow::Result<()> {
        match self.moved.take() {
            Some(moved) => Ok(self.place.runtime.add_note(self.session, moved).await?),
            None => Ok(()),
        }
    }
}

/// Returns the definition of a session's agent. `None` if the session has none that the command can read, as that of an agent of a
/// program in Rust.
pub(super) async fn recorded_definition(
    place: &OpenStore,
    view: &JournalView,
) -> anyhow::Result<Option<AgentDefinition>> {
    match definition_of(place, view).await {
        Err(error) if code_of(&error) == ErrorCode::AgentFile => Ok(None),
        definition => definition.map(Some),
    }
}

/// Returns a definition with the files that the journal names, and nothing else.
fn of_journal(view: &JournalView) -> AgentDefinition {
    let path = view.directory().map(PathBuf::from);
    let excludes = view.excludes().to_vec();
    let workspace = WorkspaceDefinition { path, excludes, ..WorkspaceDefinition::default() };
    AgentDefinition { workspace, ..AgentDefinition::default() }
}
