//! Checks that a directory can be a workspace.
//!
//! A restore deletes files that a root does not contain, so a workspace must be a directory of one project.
//! The root of the filesystem, home directories, their parents and system directories are refused.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::ports::WorkspaceError;

use super::sys::io_error;

/// System directories. Directories below most of them can be workspaces.
const SYSTEM: [&str; 24] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/tmp",
    "/Users",
    "/System",
    "/private/tmp",
];

/// No directory below these can be a workspace.
const SYSTEM_TREES: [&str; 4] = ["/proc", "/sys", "/dev", "/boot"];

/// Returns the canonical path of a directory that can be a workspace.
pub(crate) fn check(path: &Path, homes: &[PathBuf]) -> Result<PathBuf, WorkspaceError> {
    let shown = path.display().to_string();
    let canonical = fs::canonicalize(path).map_err(|error| io_error(shown.as_bytes(), error))?;
    let refuse = |reason: &str| {
        Err(WorkspaceError::RefusedRoot { path: canonical.display().to_string(), reason: reason.to_owned() })
    };
    if !canonical.is_dir() {
        return refuse("it is not a directory");
    }
    if canonical.parent().is_none() {
        return refuse("it is the root of the system");
    }
    for home in homes {
        if *home == canonical {
            return refuse("it is a home directory; use a directory inside it");
        }
        if home.starts_with(&canonical) {
            return refuse("it contains a home directory; use the directory of one project");
        }
    }
    let in_system_tree = SYSTEM_TREES.iter().any(|system| canonical.starts_with(system));
    if in_system_tree || SYSTEM.iter().any(|system| Path::new(system) == canonical) {
        return refuse("it belongs to the system; use the directory of one project");
    }
    Ok(canonical)
}

/// Known home directories: the user's, and those of all users that the system lists.
pub(crate) fn homes() -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let listed = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let others = listed.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    own.into_iter()
        .chain(others)
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| home.parent().is_some())
        .collect()
}
