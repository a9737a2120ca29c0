//! Events about the directories of sessions while they are opened, for people who wait.

use std::path::PathBuf;

/// Receives the events.
pub(crate) type Report = dyn Fn(WorkspaceEvent) + Send + Sync;

/// Something that happens while the directory of a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspaceEvent {
    /// A copy that belongs to no session was removed.
    CopyRemoved {
        /// The copy.
        directory: PathBuf,
    },
    /// A project is being copied.
    CopyStarted {
        /// The project.
        project: PathBuf,
    },
    /// The copy of a session was gone, and its directory was created again. Its files are restored when the session is
    /// opened.
    CopyRestored {
        /// The copy.
        directory: PathBuf,
    },
    /// The files of a session that has worked elsewhere were written to a new checkout.
    CheckoutFilled {
        /// The checkout.
        directory: PathBuf,
        /// Paths and patterns that the store does not hold. They are missing, unless the commands of `setup` make them.
        uncovered: Vec<String>,
    },
    /// A command that sets up a copy starts.
    SetupStarted {
        /// The command.
        command: String,
    },
    /// A command that sets up a copy wrote a line.
    SetupOutput {
        /// The line.
        line: String,
    },
}
