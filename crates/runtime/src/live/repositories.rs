//! Notes about calls that changed what git executes in a repository.
//!
//! Settings and hooks of a repository run programs for the user, outside of every sandbox. So each change of
//! them is a note in the journal, for the command line and for `log`, and the model reads it in the result.

use backstitch_core::id::CallId;
use backstitch_core::journal::{Note, RecordBody};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{GuardMode, GuardOutcome, RepositoryChange, Workspace, WorkspaceError};
use backstitch_core::view::Call;
use serde_json::json;

use super::{Durable, LiveSession, blocking};
use crate::error::Result;
use crate::events::REPOSITORY_CHANGED;

/// The most changes that are named in a text.
const MOST_NAMED: usize = 10;

/// Changes of what git executes, by one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoriesChanged {
    /// The changes, by path.
    pub changes: Vec<RepositoryChange>,
}

impl RepositoriesChanged {
    /// Returns the changes that a record describes.
    pub fn of(record: &RecordBody) -> Option<Self> {
        let RecordBody::Note(note) = record else { return None };
        let changes = note.data.inline()?.get("changes").filter(|_| note.topic == REPOSITORY_CHANGED)?;
        Some(Self { changes: serde_json::from_value(changes.clone()).ok()? })
    }

    pub(crate) fn of_call(changes: Vec<RepositoryChange>) -> Option<Self> {
        (!changes.is_empty()).then_some(Self { changes })
    }

    /// Describes the changes to the model and to people.
    pub fn text(&self) -> String {
        let named = |outcome: GuardOutcome| -> Option<String> {
            let changes = self.changes.iter().filter(|change| change.outcome == outcome);
            let mut names: Vec<_> = changes.map(name).collect();
            if names.len() > MOST_NAMED {
                let more = format!("{} more", names.len() - MOST_NAMED);
                names.truncate(MOST_NAMED);
                names.push(more);
            }
            (!names.is_empty()).then(|| names.join(", "))
        };
        let mut lines = Vec::new();
        if let Some(names) = named(GuardOutcome::Restored) {
            lines.push(format!(
                "git: not kept, because git would run programs for the user: {names}. To keep this change, the user has to \
                 make it, or to approve the call"
            ));
        }
        if let Some(names) = named(GuardOutcome::Failed) {
            lines.push(format!("git: changed, and could not be restored: {names}"));
        }
        if let Some(names) = named(GuardOutcome::Kept) {
            lines.push(format!("git: changed: {names}"));
        }
        lines.join("\n")
    }

    pub(crate) fn note(&self) -> Note {
        Note::new(REPOSITORY_CHANGED, self.text()).with_data(json!({ "changes": self.changes }))
    }
}

fn name(change: &RepositoryChange) -> String {
    match &*change.keys {
        [] => change.path.clone(),
        keys => format!("{} ({})", change.path, keys.join(", ")),
    }
}

impl LiveSession {
    /// Restores what git executes after a call that a crash interrupted. What was changed after the end of the call stays.
    pub(crate) async fn recover_repositories(&self, call: &Call) -> Result<()> {
        let Some(workspace) = self.workspace().cloned() else { return Ok(()) };
        let mode = GuardMode::Recover { kept_since: self.others_since(call).await? };
        let changes = blocking(move || workspace.check_repositories(mode)).await?;
        match RepositoriesChanged::of_call(changes) {
            Some(changed) => self.record_when(vec![changed.note().into()], Durable::WithNext).await,
            None => Ok(()),
        }
    }

    /// Describes what an interrupted call has moved in the workspace's own repository: commits that it made
    /// are not rolled back. Empty if nothing has moved, or if its records do not say.
    pub(crate) async fn repository_moves(&self, call: CallId) -> Result<Vec<String>> {
        let coverage = {
            let state = self.state().await;
            let intent = state.view.call(call).and_then(|call| call.intent.as_ref());
            intent.and_then(|intent| intent.record.coverage)
        };
        self.compare_repository(coverage, |workspace, then| workspace.repository_moves(then)).await
    }

    /// Compares the workspace's own repository with its state at a capture. Empty if that is not known.
    pub(crate) async fn compare_repository<T: Send + 'static>(
        &self,
        coverage: Option<ObjectId>,
        compare: impl FnOnce(&dyn Workspace, Option<ObjectId>) -> Result<Vec<T>, WorkspaceError> + Send + 'static,
    ) -> Result<Vec<T>> {
        let Some((workspace, coverage)) = self.workspace().cloned().zip(coverage) else {
            return Ok(Vec::new());
        };
        // Objects that a redaction or a collection removed say nothing about the repository.
        let compare = move || match compare(&*workspace, Some(coverage)) {
            Err(WorkspaceError::MissingObject { .. }) => Ok(Vec::new()),
            moves => moves,
        };
        blocking(compare).await
    }
}
