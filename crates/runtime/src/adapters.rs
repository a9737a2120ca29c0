//! Adapters: how a runtime opens the models and directories that agents name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::WorkspaceRevision;
use backstitch_core::ports::{BoxFuture, FenceToken, Policy, ProcessError};
use backstitch_core::session::BoxError;
use backstitch_core::view::JournalView;

use crate::workspace::{OpenedWorkspace, WorkspaceSpec};

/// Opens the models and directories that agents name. An agent is data, and the runtime that drives it opens
/// them.
pub trait Adapters: Send + Sync {
    /// Returns the policy that calls the model of this name.
    fn model(&self, name: &str) -> Result<Arc<dyn Policy>, BoxError>;

    /// Opens the directory of a specification for a session, with its excludes. For a new session of an isolated agent
    /// the directory is copied, and the copy set up. Errors that are [`DirectoryError`]s keep their code.
    fn workspace<'a>(
        &'a self,
        spec: &'a WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> BoxFuture<'a, Result<OpenedWorkspace, BoxError>>;

    /// Returns whether sessions that this process has claimed may work in checkouts.
    fn has_checkouts(&self) -> bool {
        false
    }

    /// Opens the checkout of a session that this process has claimed, with the files that it continues with. `None` if the session
    /// works in its own directory here.
    fn checkout<'a>(
        &'a self,
        request: CheckoutRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<OpenedWorkspace>, BoxError>> {
        let _ = request;
        Box::pin(async { Ok(None) })
    }

    /// Removes the copy that was made for a session which could not be stored.
    fn remove_copy<'a>(&'a self, directory: &'a Path, session: SessionId) -> BoxFuture<'a, ()> {
        let _ = (directory, session);
        Box::pin(async {})
    }
}

/// A session whose files are opened for the process that has claimed it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CheckoutRequest<'a> {
    /// The session.
    pub session: SessionId,
    /// The files, as its agent specifies them.
    pub spec: &'a WorkspaceSpec,
    /// Number of the claim.
    pub fence: FenceToken,
    /// The directory that the session worked in last, without links. `None` if it had no files.
    pub directory: Option<PathBuf>,
    /// The files that it continues with. `None` if it is new.
    pub files: Option<WorkspaceRevision>,
}

impl<'a> CheckoutRequest<'a> {
    /// Creates the request for a session that has no files yet.
    pub fn new(session: SessionId, spec: &'a WorkspaceSpec, fence: FenceToken) -> Self {
        Self { session, spec, fence, directory: None, files: None }
    }
}

/// What is known about the files of a session whose directory is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionFiles {
    /// The session is not stored yet.
    New,
    /// The session is stored.
    Known {
        /// The directory that it worked in last, without links. `None` if it had no files.
        directory: Option<PathBuf>,
    },
    /// The session works in a copy of a project. A copy that was deleted is created again, without files.
    Copy {
        /// The project.
        project: PathBuf,
    },
}

impl SessionFiles {
    /// Returns what a journal says about the files of its session, and sets the directory of the specification to the
    /// copy that the session works in, if it has one.
    pub(crate) fn of(view: &JournalView, spec: &mut WorkspaceSpec) -> Self {
        let directory = view.directory().map(PathBuf::from);
        // Enqueued by a process that did not open its files.
        let is_new =
            view.files().is_none() && view.calls().next().is_none() && view.created().origin.is_root();
        if is_new && view.isolation().is_none() {
            return Self::New;
        }
        let Some(isolated) = view.isolation() else { return Self::Known { directory } };
        let (project, copy) =
            (PathBuf::from(&isolated.record.project), PathBuf::from(&isolated.record.directory));
        let last = directory.clone().unwrap_or_else(|| copy.clone());
        let named = spec.path.canonicalize().unwrap_or_else(|_| spec.path.clone());
        let is_named = |path: &PathBuf| *path == named || *path == spec.path;
        if ![&project, &copy, &last].into_iter().any(is_named) {
            return Self::Known { directory };
        }
        spec.path.clone_from(&last);
        if last == copy { Self::Copy { project } } else { Self::Known { directory } }
    }
}

/// The directory of a session cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// It does not exist any more. It is not created again: it may have been moved.
    #[error("the directory {} of session {session} is gone, and nothing was changed", directory.display())]
    Gone {
        /// The directory.
        directory: PathBuf,
        /// The session.
        session: SessionId,
    },
    /// A link took the place of the directory, or of one around it. It would lead the session elsewhere.
    #[error(
        "{} was a directory when session {session} started and is a link now, and nothing was changed",
        link.display()
    )]
    Replaced {
        /// The link.
        link: PathBuf,
        /// The session.
        session: SessionId,
    },
    /// A fork would work in the directory of its parent, in one inside of it, or in one around it.
    #[error(
        "{} lies in or around the session's own directory {}; name one beside it", directory.display(), own.display()
    )]
    Overlaps {
        /// The directory that was named for the fork.
        directory: PathBuf,
        /// The directory of the parent.
        own: PathBuf,
    },
    /// A fork would work in the directory of a session that it was forked from.
    #[error(
        "session {session} is a fork with files of its own in {}, and the agent works in {}, the directory of session {parent}, \
         which it was forked from; nothing was changed: give the agent the directory of the fork, or continue session {parent}",
        own.display(),
        directory.display()
    )]
    OfParent {
        /// The directory of the agent.
        directory: PathBuf,
        /// The directory of the fork.
        own: PathBuf,
        /// The fork.
        session: SessionId,
        /// The session whose directory it is.
        parent: SessionId,
    },
    /// There is no free name for the directory of a fork beside that of its parent.
    #[error("there is no room for the directory of a fork beside {}", own.display())]
    NoRoom {
        /// The directory of the parent.
        own: PathBuf,
    },
    /// It lies in the directory of the store.
    #[error("the store {} needs a directory of its own, which no agent works in", store.display())]
    InStore {
        /// The store.
        store: PathBuf,
    },
    /// It holds files that are not those of the session. They are not touched.
    #[error("{} holds files that are not those of session {session}: {}", directory.display(), listed(files))]
    OtherFiles {
        /// The directory.
        directory: PathBuf,
        /// The session.
        session: SessionId,
        /// The paths of these files.
        files: Vec<String>,
    },
    /// It could not be copied.
    #[error("{source}")]
    Copy {
        /// The stable code of the error.
        code: ErrorCode,
        /// The error.
        source: BoxError,
    },
    /// The copy of the session was deleted, and could not be created again.
    #[error("the copy of session {session} is gone and cannot be created again")]
    CopyGone {
        /// The session.
        session: SessionId,
        /// The error.
        source: BoxError,
    },
    /// A command that sets up a copy failed.
    #[error("the setup command `{command}` failed: {reason}")]
    Setup {
        /// The command.
        command: String,
        /// The exit status, in words.
        reason: String,
        /// Whether it ran in a sandbox.
        is_confined: bool,
    },
    /// A command that sets up a copy could not be started.
    #[error("the setup command `{command}` cannot be run")]
    SetupStart {
        /// The command.
        command: String,
        /// The error.
        source: ProcessError,
    },
}

impl DirectoryError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Gone { .. } | Self::Replaced { .. } | Self::CopyGone { .. } => ErrorCode::WorkspaceGone,
            Self::InStore { .. }
            | Self::OtherFiles { .. }
            | Self::Overlaps { .. }
            | Self::OfParent { .. }
            | Self::NoRoom { .. } => ErrorCode::WorkspaceRefused,
            Self::Copy { code, .. } => *code,
            Self::Setup { .. } => ErrorCode::SetupFailed,
            Self::SetupStart { source, .. } => source.code(),
        }
    }
}

/// Lists the first of several paths.
fn listed(paths: &[String]) -> String {
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(5) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Opens nothing. For runtimes whose agents come with their policies and workspaces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoAdapters;

impl Adapters for NoAdapters {
    fn model(&self, _: &str) -> Result<Arc<dyn Policy>, BoxError> {
        Err("this runtime opens no models: give the agent a policy, or the runtime adapters".into())
    }

    fn workspace<'a>(
        &'a self,
        _: &'a WorkspaceSpec,
        _: SessionId,
        _: SessionFiles,
    ) -> BoxFuture<'a, Result<OpenedWorkspace, BoxError>> {
        Box::pin(async {
            Err("this runtime opens no directories: give the agent an open workspace, or the runtime adapters"
                .into())
        })
    }
}
