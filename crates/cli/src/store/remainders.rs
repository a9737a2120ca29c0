//! What killed processes have left outside of the store with data of sessions.

use std::path::PathBuf;

/// Describes what an operation has removed, or would remove.
pub(crate) fn lines(paths: &[PathBuf], dry_run: bool) -> impl Iterator<Item = String> {
    let verb = if dry_run { "would remove" } else { "removed" };
    paths.iter().map(move |path| format!("{verb} {}, which a killed process had left", path.display()))
}
