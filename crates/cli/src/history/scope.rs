//! What `rewind`, `undo` and `redo` move, and what they leave alone.

use backstitch::ports::{MergeConflict, ReversalConflicts};
use backstitch::report::{FileRestoreReport, RewindReport};
use backstitch::{RewindScope, RewoundFiles, RewoundHalf};
use clap::{Args, ValueEnum};

use crate::look::diff::named;
use crate::terminal::Text;

/// The arguments that say what a step through history moves.
#[derive(Args, Default)]
pub(crate) struct ScopeArguments {
    /// Restore the whole directory, not only the files that the session changed. What others changed since is undone too,
    /// and kept as rescue:POSITION.
    #[arg(long)]
    all_files: bool,
    /// Move only one half, and leave the other as it is. Default: both.
    #[arg(long, value_name = "HALF")]
    only: Option<Half>,
    /// Restore also files that others changed, where the changes cannot be merged; move files although a guarded program or
    /// another session in the directory may still change them.
    #[arg(long)]
    force: bool,
    /// List what would be restored, merged and left alone, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// One half of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Half {
    Files,
    Conversation,
}

impl ScopeArguments {
    /// Returns the arguments of a step that only may be forced.
    pub(crate) fn forced(force: bool) -> Self {
        Self { force, ..Self::default() }
    }

    /// Whether nothing else may change files meanwhile: they are moved, not only listed, and that is not forced.
    pub(crate) fn needs_quiet(&self) -> bool {
        !self.force && !self.dry_run && self.only != Some(Half::Conversation)
    }

    pub(crate) fn scope(&self) -> RewindScope {
        let only = self.only.map(|half| match half {
            Half::Files => RewoundHalf::Files,
            Half::Conversation => RewoundHalf::Conversation,
        });
        RewindScope {
            files: if self.all_files { RewoundFiles::All } else { RewoundFiles::Own },
            conflicts: if self.force { ReversalConflicts::TakeTarget } else { ReversalConflicts::LeaveAlone },
            only,
            dry_run: self.dry_run,
        }
    }
}

/// Names the files in which others have changed something too: those that were merged, and those that were left alone.
pub(crate) fn shared_lines(done: &RewindReport) -> Vec<String> {
    let plan = &done.own_files;
    let forced = plan.forced.iter();
    let forced = forced.map(|conflict| format!("restored, although others changed it: {}", conflict.path));
    merged_lines(&plan.merged).chain(conflict_lines(&plan.conflicts)).chain(forced).collect()
}

/// Names the files that keep what others changed.
fn merged_lines(merged: &[String]) -> impl Iterator<Item = String> {
    merged.iter().map(|path| format!("keeps what others changed: {path}"))
}

/// Names the files that were left alone, since others changed them too.
fn conflict_lines(conflicts: &[MergeConflict]) -> impl Iterator<Item = String> {
    conflicts.iter().map(|conflict| {
        let reason = conflict.kind.as_str();
        format!("left as it is, since others changed it too: {} ({reason})", conflict.path)
    })
}

/// Lists what a step would do.
pub(crate) fn planned_lines(done: &RewindReport) -> Vec<Text> {
    let mut lines: Vec<Text> = done.own_files.changes.iter().map(named).collect();
    if lines.is_empty() {
        lines.push("no file would change".into());
    }
    lines.extend(shared_lines(done).into_iter().map(Text::from));
    lines
}

/// Lists what a restore of files has done, or would do.
pub(super) fn restore_lines(done: &FileRestoreReport) -> Vec<Text> {
    let others = merged_lines(&done.merged).chain(conflict_lines(&done.conflicts));
    done.files.iter().map(named).chain(others.map(Text::from)).collect()
}
