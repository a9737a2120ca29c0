//! Reports about restored files.
//!
//! Files are restored when a call fails, is stopped or was interrupted by a crash. Edits that a person made
//! while the call ran cannot be distinguished from those of the call, so they are undone too; what others changed
//! later stays, and is named. The files as they were found are kept under `rescue:POSITION`. Each restore is reported at once, with the
//! files and the command that undoes it.

use backstitch::ports::UncoveredPath;
use backstitch::report::RestoredFiles;
use serde_json::{Value, json};

use crate::common::Common;
use crate::open::short;

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

/// Returns the command that restores the files as they were found, if those are kept.
fn command(common: &Common, restored: &RestoredFiles) -> Option<String> {
    let point = restored.rescue.as_ref()?;
    Some(common.hint(format_args!("rewind {} {point}", short(restored.session))))
}

/// Formats a restore for people.
pub(crate) fn lines(common: &Common, restored: &RestoredFiles, cause: RestoreCause) -> Vec<String> {
    let RestoredFiles { files, more, .. } = restored;
    let mut lines = Vec::new();
    if !files.is_empty() {
        lines.push(match cause {
            RestoreCause::Call => {
                "files were restored; what others changed in them while the call ran is undone too:"
                    .to_owned()
            }
            RestoreCause::Person => "files were restored:".to_owned(),
        });
        let named = files.iter().take(MOST_NAMED);
        lines.extend(named.map(|file| format!("  {:<9} {}", file.change.as_str(), file.path)));
        let unnamed = files.len().saturating_sub(MOST_NAMED) + more;
        if unnamed > 0 {
            lines.push(format!("  and {unnamed} more"));
        }
    }
    lines.extend(left_alone(&restored.kept));
    if let (Some(point), Some(command)) = (&restored.rescue, command(common, restored)) {
        lines.push(format!("the files as they were found are kept as {point}; to restore those:"));
        lines.push(format!("  {command}"));
    }
    lines
}

/// Formats the files that differ, and were left alone.
pub(crate) fn left_alone(kept: &[UncoveredPath]) -> impl Iterator<Item = String> {
    let kept = kept.iter().take(MOST_NAMED);
    kept.map(|file| format!("left as it is: {} ({})", file.path, file.reason))
}

/// Builds the event `restored`: the value, and the command that undoes it.
pub(crate) fn event(common: &Common, restored: &RestoredFiles) -> Value {
    let mut event = json!(restored);
    event["command"] = command(common, restored).into();
    event
}

/// Builds the events of several restores.
pub(crate) fn events(common: &Common, restored: &[RestoredFiles]) -> Vec<Value> {
    restored.iter().map(|restored| event(common, restored)).collect()
}
