//! How the files of sessions are opened, and how operations open sessions.
//!
//! There is one way to a directory: a [`WorkspaceSpec`], which the [`Adapters`](crate::Adapters) open with what the journal says
//! about the files of the session. Agents have one. An operation such as a rewind needs no agent: the journal names the directory
//! and its excludes. A directory that is gone, or that a link took the place of, is refused,
//! because its files may have been moved. A copy that was deleted is created again, but no operation runs the commands that set it up.
//!
//! Files are opened before the session is claimed. If they are in use because a process drives the session, that is the reason of
//! the error.
//!
//! A session is taken over by a claim: from then on its former driver cannot write to the journal. Its directory is never
//! taken from it, because no claim stops a write to a file that has begun. Instead the former driver notices within a second
//! that it lost the session, also inside of a long call. It then stops its calls, ends their processes and releases the
//! directory, and only after that the new driver opens it. If it does not, for example because the process hangs, the
//! take-over fails and no file is touched.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, SessionCreated};
use backstitch_core::ports::{BoxFuture, ClaimMode, Store, StoreError, Workspace, WorkspaceError};
use backstitch_core::session::BoxError;
use backstitch_core::view::JournalView;
use tokio::time::Instant;

use crate::adapters::{DirectoryError, SessionFiles};
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, creation_of, find_view};
use crate::runtime::{Runtime, SessionOptions};
use crate::workspace::{OpenedWorkspace, OperationFiles, WorkspaceSpec};

impl Runtime {
    /// Opens the files of a session as `start`, `ask` and `resume` do, for callers that need them before or after that. The
    /// workspace is for [`SessionOptions::workspace`], and the isolation for [`SessionOptions::isolation`]: a copy that was
    /// made for a new session is removed if the session cannot be started.
    pub fn open_workspace<'a>(
        &'a self,
        spec: &'a WorkspaceSpec,
        session: SessionId,
    ) -> BoxFuture<'a, Result<OpenedWorkspace>> {
        Box::pin(async move {
            if let Some(open) = spec.opened() {
                if let Some(directory) = open.host_directory() {
                    check_fork(&**self.store(), session, &directory).await?;
                }
                return Ok(open.clone().into());
            }
            if spec.in_place {
                let files = SessionFiles::Known { directory: Some(spec.path.clone()) };
                return self.open_directory(spec, session, files).await;
            }
            let mut known = spec.clone();
            let reading = self.read_off_thread(move |store| async move {
                let Some(view) = find_view(&*store, session).await? else {
                    return Ok((SessionFiles::New, known));
                };
                let files = SessionFiles::of(&view, &mut known);
                if matches!(view.created().origin, Origin::Fork { .. }) {
                    check_fork(&*store, session, &known.path).await?;
                }
                Ok((files, known))
            });
            let (files, spec) = reading.await?;
            self.open_directory(&spec, session, files).await
        })
    }

    async fn open_directory(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> Result<OpenedWorkspace> {
        let opened = self.adapters.workspace(spec, session, files).await;
        opened.map_err(|error| unopened(&spec.path, error))
    }

    /// Removes the copy that was made for a session, unless the session was stored.
    pub(super) async fn remove_copy(&self, session: SessionId, copy: Option<PathBuf>) {
        let Some(copy) = copy else { return };
        let is_stored = match self.store().head(session).await {
            Ok(head) => head != Position::START,
            Err(error) => !matches!(error, StoreError::NotFound { .. }),
        };
        if !is_stored {
            self.adapters.remove_copy(&copy, session).await;
        }
    }

    /// Opens a session with these files, performs one operation on it, and releases it.
    pub(super) async fn operate_with<T, F>(
        &self,
        session: SessionId,
        files: OperationFiles,
        operation: impl FnOnce(Arc<LiveSession>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let runtime = self.clone();
        let opening = async move {
            let workspace = match runtime.session_workspace(session, files).await {
                Err(error) => return Err(runtime.explain_held(session, error).await),
                Ok(workspace) => workspace,
            };
            runtime.open_idle(session, SessionOptions { workspace, ..SessionOptions::default() }).await
        };
        self.operate(session, opening, operation).await
    }

    /// Opens the files of a session for an operation. `None` if it has none, or they are left alone.
    pub(super) async fn session_workspace(
        &self,
        session: SessionId,
        files: OperationFiles,
    ) -> Result<Option<Arc<dyn Workspace>>> {
        let spec = match files {
            OperationFiles::Untouched => return Ok(None),
            OperationFiles::Within(spec) => Some(spec),
            OperationFiles::Recorded => recorded_directory(&self.view(session).await?)?,
        };
        let Some(spec) = spec else { return Ok(None) };
        let spec = self.with_recorded_excludes(spec, session).await?;
        Ok(Some(self.open_workspace(&spec, session).await?.workspace))
    }

    /// Adds the excludes that a session is recorded with to a directory that is named without any. Those of a sub-agent are
    /// the excludes of its caller, since they work on the same files.
    pub(super) async fn with_recorded_excludes(
        &self,
        mut spec: WorkspaceSpec,
        session: SessionId,
    ) -> Result<WorkspaceSpec> {
        if spec.opened().is_some() {
            return Ok(spec);
        }
        let mut line = self.callers_of(session).await?;
        while let (true, Some(session)) = (spec.excludes.is_empty(), line.pop()) {
            spec.excludes = self.view(session).await?.excludes().to_vec();
        }
        Ok(spec)
    }

    /// Opens a directory besides that of the session, which its changes are applied to. It has to exist. The journal names it
    /// without links, so one that took its place is refused. A user may name it by a link.
    pub(super) async fn open_target(
        &self,
        target: ApplyTarget,
        session: SessionId,
    ) -> Result<Arc<dyn Workspace>> {
        let (spec, directory) = match target {
            ApplyTarget::Recorded(directory) => (directory.clone().into(), Some(directory)),
            ApplyTarget::Given(spec) => (spec, None),
        };
        if let Some(open) = spec.opened() {
            return Ok(open.clone());
        }
        let spec = self.with_recorded_excludes(spec, session).await?;
        Ok(self.open_directory(&spec, session, SessionFiles::Known { directory }).await?.workspace)
    }

    /// Replaces the error that a directory is in use by the reason that a process holds the session, if one does.
    pub(super) async fn explain_held(&self, session: SessionId, error: RuntimeError) -> RuntimeError {
        if error.code() != ErrorCode::WorkspaceHeld {
            return error;
        }
        match self.store().holder(session).await {
            Ok(Some(owner)) => RuntimeError::Store(StoreError::Held { session, owner, process: None }),
            Ok(None) => error,
            Err(error) => RuntimeError::Store(error),
        }
    }

    /// Claims the session, and opens its directory once the former driver has released it.
    pub(super) async fn await_release(
        &self,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Option<OpenedWorkspace>> {
        let claim = self.store().claim(session, self.owner().clone(), ClaimMode::TakeOver);
        let claim = claim.await?;
        let until = Instant::now() + LONGEST_HANDOVER;
        let opened = loop {
            let opened = self.workspace_of(agent, session).await;
            match opened.as_ref().err().and_then(|error| holder(error, session)) {
                None => break opened,
                Some(_) if Instant::now() < until => tokio::time::sleep(TRY_EVERY).await,
                Some((path, holder)) => {
                    break Err(RuntimeError::DirectoryNotReleased { session, directory: path, holder });
                }
            }
        };
        // Opening the session claims it again.
        self.store().release(claim).await?;
        opened
    }
}

/// Names the directory that could not be opened.
pub(super) fn unopened(directory: &Path, error: BoxError) -> RuntimeError {
    match error.downcast::<DirectoryError>() {
        Ok(error) => RuntimeError::OpenDirectory(*error),
        Err(error) => RuntimeError::Directory { directory: directory.to_owned(), cause: Arc::from(error) },
    }
}

/// Fails if a fork with a directory of its own would work in that of a session that it was forked from. A session without a
/// recorded directory, and one that was removed, are not compared.
async fn check_fork(store: &dyn Store, session: SessionId, named: &Path) -> Result<()> {
    let mut parent = match creation_of(store, session).await {
        Err(RuntimeError::SessionNotFound { .. } | RuntimeError::Store(StoreError::NotFound { .. })) => None,
        created => parent_of(&*created?),
    };
    if parent.is_none() {
        return Ok(());
    }
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fork = find_view(store, session).await?;
    let Some(own) = fork.and_then(|view| view.directory().map(PathBuf::from)) else { return Ok(()) };
    let directory = resolved(named);
    if resolved(&own) == directory {
        return Ok(());
    }
    while let Some(ancestor) = parent {
        let Some(view) = find_view(store, ancestor).await? else { break };
        if view.directory().is_some_and(|known| resolved(Path::new(known)) == directory) {
            let of_parent = DirectoryError::OfParent { directory, own, session, parent: ancestor };
            return Err(RuntimeError::OpenDirectory(of_parent));
        }
        parent = parent_of(view.created());
    }
    Ok(())
}

/// Returns the session that a fork was forked from.
fn parent_of(created: &SessionCreated) -> Option<SessionId> {
    match created.origin {
        Origin::Fork { session, .. } => Some(session),
        Origin::Root | Origin::Call { .. } => None,
    }
}

/// A directory that the changes of a session are applied to.
pub(super) enum ApplyTarget {
    /// The journal names it.
    Recorded(PathBuf),
    /// The caller names it.
    Given(WorkspaceSpec),
}

/// Returns the copy of a project that was made for a new session.
pub(super) fn new_copy(options: &SessionOptions) -> Option<PathBuf> {
    options.isolation.as_ref()?;
    options.workspace.as_ref()?.host_directory()
}

/// Returns the directory that a journal names. `None` for a session without files.
fn recorded_directory(view: &JournalView) -> Result<Option<WorkspaceSpec>> {
    let session = view.session_id();
    // A fork of an isolated session has a directory of its own, which is not a copy of the project.
    let copy = view.isolation().filter(|isolated| isolated.point.session == session);
    let Some(directory) = view.directory().or(copy.map(|copy| copy.record.directory.as_str())) else {
        return match view.files() {
            Some(_) => Err(RuntimeError::NoWorkspace { session }),
            None => Ok(None),
        };
    };
    Ok(Some(WorkspaceSpec::new(directory)))
}

/// Maximum time for the former driver to release the directory. It includes that for handlers that are slow to stop.
const LONGEST_HANDOVER: Duration = Duration::from_secs(15);

/// Interval at which the directory is tried again.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Returns the directory and its holder, if the directory is held by this session.
pub(super) fn holder(error: &RuntimeError, session: SessionId) -> Option<(String, String)> {
    let RuntimeError::Directory { cause, .. } = error else { return None };
    match cause.downcast_ref::<WorkspaceError>() {
        Some(held @ WorkspaceError::Held { path, holder }) if held.is_held_by(session) => {
            Some((path.clone(), holder.clone()))
        }
        _ => None,
    }
}
