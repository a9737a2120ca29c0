//! Reports about restored files.
//!
//! Files are restored when a call fails, is stopped or was interrupted by a crash. Edits that a person made
//! since the start of the call cannot be distinguished from those of the call, so they are undone too. The
//! files as they were found are kept under `rescue:POSITION`. Each restore is reported at once, with the
//! files and the command that undoes it.

use std::sync::Arc;

use backstitch::RuntimeError;
use backstitch::host::{FilesRestored, read_records};
use backstitch::id::SessionId;
use backstitch::journal::Position;
use backstitch::ports::{ChangeKind, Store};
use serde_json::{Value, json};

use crate::common::Common;
use crate::open::place::short;

/// Maximum number of files that are listed for people. Programs get all that are recorded.
const MOST_NAMED: usize = 50;

/// Why files were restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreCause {
    /// A call failed, was stopped or was interrupted.
    Call,
    /// A person returned to another point.
    Person,
}

/// A restore of a session's files.
pub(crate) struct Restore {
    session: SessionId,
    restored: FilesRestored,
    cause: RestoreCause,
}

impl Restore {
    pub(crate) fn new(session: SessionId, restored: FilesRestored, cause: RestoreCause) -> Self {
        Self { session, restored, cause }
    }

    /// Returns the command that restores the files as they were found, if those are kept.
    fn command(&self, common: &Common) -> Option<String> {
        let point = self.restored.point()?;
        Some(common.hint(format_args!("rewind {} {point}", short(self.session))))
    }

    /// Formats the restore for people.
    pub(crate) fn lines(&self, common: &Common) -> Vec<String> {
        let FilesRestored { changed, more, .. } = &self.restored;
        let mut lines = Vec::new();
        if !changed.is_empty() {
            lines.push(match self.cause {
                RestoreCause::Call => {
                    "files were restored, and with them what others had changed since the call began:"
                        .to_owned()
                }
                RestoreCause::Person => "files were restored:".to_owned(),
            });
            let named = changed.iter().take(MOST_NAMED);
            lines.extend(named.map(|file| format!("  {:<9} {}", word(file.change), file.path)));
            let unnamed = changed.len().saturating_sub(MOST_NAMED) + more;
            if unnamed > 0 {
                lines.push(format!("  and {unnamed} more"));
            }
        }
        lines.extend(self.left_alone());
        if let (Some(point), Some(command)) = (self.restored.point(), self.command(common)) {
            lines.push(format!("the files as they were found are kept as {point}; to restore those:"));
            lines.push(format!("  {command}"));
        }
        lines
    }

    /// Formats the files that differ, and were left alone.
    pub(crate) fn left_alone(&self) -> impl Iterator<Item = String> {
        let kept = self.restored.kept.iter().take(MOST_NAMED);
        kept.map(|file| format!("left as it is: {} ({})", file.path, file.reason))
    }

    /// Whether a file was left alone.
    pub(crate) fn has_left(&self, path: &str) -> bool {
        self.restored.kept.iter().any(|file| file.path == path)
    }

    /// Builds the event `restored`.
    pub(crate) fn event(&self, common: &Common) -> Value {
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
pub(crate) struct Restores {
    store: Arc<dyn Store>,
    session: SessionId,
    seen: Position,
    cause: RestoreCause,
}

impl Restores {
    /// Starts at a position of the journal.
    pub(crate) fn from(
        store: Arc<dyn Store>,
        session: SessionId,
        seen: Position,
        cause: RestoreCause,
    ) -> Self {
        Self { store, session, seen, cause }
    }

    /// Returns the reader for restores of another cause.
    pub(crate) fn with_cause(self, cause: RestoreCause) -> Self {
        Self { cause, ..self }
    }

    /// Returns the restores that were recorded since the last call.
    pub(crate) async fn new_ones(&mut self) -> Result<Vec<Restore>, RuntimeError> {
        let records = match read_records(&*self.store, self.session, self.seen, None).await {
            // The session was never stored.
            Err(RuntimeError::ConversationNotFound { .. }) => Vec::new(),
            records => records?,
        };
        self.seen = records.last().map_or(self.seen, |record| record.position.next());
        let restored = records.iter().filter_map(|record| FilesRestored::of(&record.body));
        Ok(restored.map(|restored| Restore::new(self.session, restored, self.cause)).collect())
    }
}
