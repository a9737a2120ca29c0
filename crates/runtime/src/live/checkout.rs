//! Files of a session in a checkout of a worker, in which nobody else works.

use backstitch_core::extra::Extra;
use backstitch_core::journal::{Note, WorkspaceIsolated, WorkspaceRevision};
use serde_json::json;

use super::LiveSession;
use crate::error::Result;
use crate::workspace::MovedFiles;

/// The topic of the note about a move.
const TOPIC: &str = "files_moved";

/// The most paths that the text of the note names.
const MOST_NAMED: usize = 5;

impl LiveSession {
    /// Returns whether nobody else works in the directory of the files.
    pub(crate) fn has_own_files(&self) -> bool {
        self.workspace().is_some_and(|workspace| workspace.is_exclusive())
    }

    /// Records that the files were written to a checkout. From then on the session works in a copy of its project, if it did not before.
    pub(crate) async fn record_move(&self, moved: MovedFiles) -> Result<()> {
        let directory = self.host_directory().unwrap_or_default().to_string_lossy().into_owned();
        let MovedFiles { project, uncovered, setup } = moved;
        let mut text = format!("written to {directory}");
        if !uncovered.is_empty() {
            let named = uncovered.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = uncovered.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!("; not in the store: {named}{more}"));
        }
        if !setup.is_empty() {
            text.push_str(&format!("; set up by {}", setup.join(", ")));
        }
        let data = json!({"directory": directory, "uncovered": uncovered, "setup": setup});
        let note = Note::new(TOPIC, text).with_data(data);
        self.commit(|commit| {
            let files = commit.view().files().filter(|_| commit.view().isolation().is_none());
            if let Some(WorkspaceRevision { root, coverage }) = files {
                commit.push(WorkspaceIsolated {
                    project: project.to_string_lossy().into_owned(),
                    directory,
                    root,
                    coverage,
                    left_out: uncovered,
                    extra: Extra::default(),
                });
            }
            commit.push(note);
            Ok(())
        })
        .await
    }
}
