//! The workspaces of sessions: what agents specify, and what is open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::ports::{Sandbox, UncoveredPath, Workspace};

/// The files that the sessions of an agent work on: a directory, which the runtime opens for each session, or an open
/// workspace.
///
/// ```
/// use backstitch_runtime::{Agent, WorkspaceSpec};
///
/// let mut shop = WorkspaceSpec::new("/home/ada/shop");
/// shop.excludes = vec!["fabrics/".to_owned()];
/// shop.isolated = true;
/// shop.setup = vec!["npm ci".to_owned()];
/// let agent = Agent::new("tailor").model("anthropic:MODEL").workspace(shop);
/// assert!(agent.workspace_spec().is_some_and(|spec| spec.isolated));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct WorkspaceSpec {
    /// The directory. That of a new session is created if it does not exist.
    pub path: PathBuf,
    /// Patterns of paths that are neither captured nor restored, as in a `.gitignore`.
    pub excludes: Vec<String>,
    /// Whether each new session works in a copy of the directory. A session with a copy continues in it.
    pub isolated: bool,
    /// Commands that are executed in a new copy, and in a new checkout of a worker, in order.
    pub setup: Vec<String>,
    /// Limits of the processes of `setup`.
    pub sandbox: Sandbox,
    /// Whether the session works in `path` itself, whatever it has recorded: its files were moved there, or no copies are
    /// made. The directory has to exist, and its path must have no links.
    pub in_place: bool,
    open: Option<Arc<dyn Workspace>>,
}

impl WorkspaceSpec {
    /// Specifies a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// Returns the workspace that is open already, if there is one.
    pub(crate) fn opened(&self) -> Option<&Arc<dyn Workspace>> {
        self.open.as_ref()
    }
}

debug_fields!(WorkspaceSpec { path, excludes, isolated, setup });

macro_rules! from_directory {
    ($($directory:ty),*) => {
        $(impl From<$directory> for WorkspaceSpec {
            fn from(directory: $directory) -> Self {
                Self::new(directory)
            }
        })*
    };
}

from_directory!(&str, &Path, PathBuf, String);

impl<W: Workspace + 'static> From<Arc<W>> for WorkspaceSpec {
    fn from(workspace: Arc<W>) -> Self {
        Self::from(workspace as Arc<dyn Workspace>)
    }
}

impl From<Arc<dyn Workspace>> for WorkspaceSpec {
    fn from(workspace: Arc<dyn Workspace>) -> Self {
        let path = workspace.host_directory().unwrap_or_default();
        Self { open: Some(workspace), ..Self::new(path) }
    }
}

/// The files that an operation on a session works with, such as a rewind. No agent is needed for them: by default
/// they are those of the directory that the session names.
///
/// ```
/// use backstitch_runtime::{OperationFiles, RewindOptions};
///
/// let options = RewindOptions { files: OperationFiles::within("/home/ada/hem"), ..RewindOptions::default() };
/// assert!(matches!(options.files, OperationFiles::Within(_)));
/// ```
#[derive(Debug, Clone, Default)]
pub enum OperationFiles {
    /// Those of the directory that the journal names, with the excludes that it was opened with last. If the session has
    /// files and names no directory, as with files in memory, the operation fails with
    /// [`RuntimeError::NoWorkspace`](crate::RuntimeError::NoWorkspace).
    #[default]
    Recorded,
    /// Those of this workspace, for example because they were moved. A directory without excludes has the recorded ones.
    Within(WorkspaceSpec),
    /// None: they are left as they are.
    Untouched,
}

impl OperationFiles {
    /// Names a workspace: a directory, or one that is open.
    pub fn within(workspace: impl Into<WorkspaceSpec>) -> Self {
        Self::Within(workspace.into())
    }
}

/// The project that a session works in a copy of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Directory of the project.
    pub project: PathBuf,
    /// Paths of the project that were not copied.
    pub left_out: Vec<UncoveredPath>,
}

/// The files of a session, once a worker has written them to a checkout of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedFiles {
    /// Directory of the project.
    pub project: PathBuf,
    /// Paths and patterns that the store does not hold. They are missing, unless the commands have made them.
    pub uncovered: Vec<String>,
    /// The commands of `setup` that were executed.
    pub setup: Vec<String>,
}

/// The workspace of a session, once it is open.
#[derive(Clone)]
pub struct OpenedWorkspace {
    /// The workspace.
    pub workspace: Arc<dyn Workspace>,
    /// The project, if a copy of it was made for a new session.
    pub isolation: Option<Isolation>,
    /// The move, if the files were written to a new checkout.
    pub moved: Option<MovedFiles>,
}

impl From<Arc<dyn Workspace>> for OpenedWorkspace {
    fn from(workspace: Arc<dyn Workspace>) -> Self {
        Self { workspace, isolation: None, moved: None }
    }
}
