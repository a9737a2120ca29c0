//! Systems without supervisors: no process there can adopt the orphans of its descendants.

use std::path::PathBuf;

/// Returns at once: there are no supervisors on this system.
pub fn supervise_if_asked() {}

/// Does nothing: there are no supervisors on this system.
pub fn set_supervisor(_: impl Into<PathBuf>) {}

/// Returns false: there are no supervisors on this system.
pub fn has_supervisor() -> bool {
    false
}

/// Returns false: there are no supervisors on this system.
pub fn has_namespaces() -> bool {
    false
}

/// Nothing: there are no supervisors on this system.
pub(crate) struct RuntimeWatch;

impl RuntimeWatch {
    /// Returns `None`: there are no supervisors on this system.
    pub(crate) fn start(_: PathBuf, _: PathBuf) -> Option<Self> {
        None
    }

    /// Returns `None`.
    pub(crate) fn process(&self) -> Option<u32> {
        None
    }

    /// Does nothing.
    pub(crate) fn begin_call(&self) {}

    /// Does nothing.
    pub(crate) fn end_call(&self) {}

    /// Does nothing.
    pub(crate) fn end(&self) {}
}
