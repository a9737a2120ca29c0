//! The project of a directory.

use std::path::{Path, PathBuf};

/// Returns the root of the project that a directory is part of: the nearest directory above that holds `.git`,
/// else the directory itself. It is the same project that has a store.
pub(crate) fn root(directory: &Path) -> PathBuf {
    let found = directory.ancestors().find(|above| above.join(".git").exists());
    found.unwrap_or(directory).to_owned()
}

/// Whether a directory is part of a git repository.
pub(crate) fn is_repository(directory: &Path) -> bool {
    root(directory).join(".git").exists()
}
