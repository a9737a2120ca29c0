//! Reports about restored files.
//!
//! Files are restored when a call fails, is stopped or was interrupted by a crash. Edits that a person made
//! since the start of the call cannot be distinguished from those of the call, so they are undone too. The
//! files as they were found are kept under `rescue:POSITION`. Each restore is reported at once, with the
//! files and the command that undoes it.

use std::sync::Arc;

use backstitch::id::SessionId;
use backstitch::journal::Position;
use backstitch::ports::{ChangeKind, Store};
use backstitch::{FilesRestored, RuntimeError, read_records};
use serde_json::{Value, json};

use super::Common;
use super::place::short;

/// Maximum number of files that are listed for people. Programs get all that are recorded.
const MOST_NAMED: usize = 50;

/// A restore of a session's files.
pub(super) struct Restore {
    session: SessionId,
    restored: FilesRestored,
}

impl Restore {
    pub(super) fn new(session: SessionId, restored: FilesRestored) -> Self {
        Self { session, restored }
    }

    /// Returns the command that restores the files as they were found, if those are kept.
    fn command(&self, common: &Common) -> Option<String> {
        let point = self.restored.point()?;
        Some(common.hint(format_args!("rewind {} {point}", short(self.session))))
    }

    /// Formats the restore for people.
    pub(super) fn lines(&self, common: &Common) -> Vec<String> {
        let FilesRestored { changed, kept, more, .. } = &self.restored;
        let mut lines = Vec::new();
        if !changed.is_empty() {
            lines.push("files were restored, and changes by others were undone too:".to_owned());
            let named = changed.iter().take(MOST_NAMED);
            lines.extend(named.map(|file| format!("  {:<9} {}", word(file.change), file.path)));
            let unnamed = changed.len().saturating_sub(MOST_NAMED) + more;
            if unnamed > 0 {
                lines.push(format!("  and {unnamed} more"));
            }
        }
        lines.extend(
            kept.iter()
                .take(MOST_NAMED)
                .map(|file| format!("left as it is: {} ({})", file.path, file.reason)),
        );
        if let (Some(point), Some(command)) = (self.restored.point(), self.command(common)) {
            lines.push(format!("the files as they were found are kept as {point}; to restore those:"));
            lines.push(format!("  {command}"));
        }
        lines
    }

    /// Builds the event `restored`.
    pub(super) fn event(&self, common: &Common) -> Value {
        let changed = self.restored.changed.iter();
        let files: Vec<_> =
            changed.map(|file| json!({"path": file.path, "change": word(file.change)})).collect();
        let kept: Vec<_> = self.restored.kept.iter().map(|file| &file.path).collect();
        json!({
            "v": 1, "event": "restored", "session": self.session,
            "rescue": self.restored.point().map(|point| point.to_string()), "files": files, "left_alone": kept,
            "more": self.restored.more, "command": self.command(common),
        })
    }
}

/// Returns the word for what the restore did to a file.
fn word(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Added => "recovered",
        ChangeKind::Deleted => "removed",
        ChangeKind::Mode => "mode",
        _ => "reverted",
    }
}

/// Reads restores from the journal of a session.
pub(super) struct Restores {
    store: Arc<dyn Store>,
    session: SessionId,
    seen: Position,
}

impl Restores {
    /// Starts at a position of the journal.
    pub(super) fn from(store: Arc<dyn Store>, session: SessionId, seen: Position) -> Self {
        Self { store, session, seen }
    }

    /// Returns the restores that were recorded since the last call.
    pub(super) async fn new_ones(&mut self) -> Result<Vec<Restore>, RuntimeError> {
        let records = match read_records(&*self.store, self.session, self.seen, None).await {
            // The session was never stored.
            Err(RuntimeError::ConversationNotFound { .. }) => Vec::new(),
            records => records?,
        };
        self.seen = records.last().map_or(self.seen, |record| record.position.next());
        let restored = records.iter().filter_map(|record| FilesRestored::of(&record.body));
        Ok(restored.map(|restored| Restore::new(self.session, restored)).collect())
    }
}
