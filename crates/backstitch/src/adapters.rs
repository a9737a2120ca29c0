//! Adapters of this machine: models with keys from the environment, and directories.
//!
//! A directory is opened with the excludes of its agent, apart from the store. That of an existing session is neither created
//! again nor followed to another place: one that is gone, or that a link took the place of, is refused. A new session of an
//! isolated agent gets a copy of its directory, in which the commands of `setup` run first. If that fails, the copy is removed.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use backstitch_runtime::{
    Adapters, DirectoryError, Isolation, OpenedWorkspace, PrivateDirectory, SessionFiles, WorkspaceSpec,
};
use backstitch_workspace::{
    HostWorkspace, IsolateError, OpenOptions, ProjectCopy, remove_copy, restore_copy,
};

use crate::agent_file::AgentDefinition;
use crate::id::SessionId;
use crate::isolated;
use crate::ports::{BoxFuture, Objects, Policy, Store, Workspace, directory_holder};
use crate::session::BoxError;
use crate::setup;
use crate::workspace_event::{Report, WorkspaceEvent};

/// Opens models with keys from the environment, and directories of this machine.
pub struct HostAdapters {
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    private: Private,
    report: Arc<Report>,
}

/// Directory for data of workspaces besides their objects, such as stat caches.
enum Private {
    /// The directory of the store in this file.
    Beside(PathBuf),
    /// Directories that are created when they are needed, and removed with the runtime.
    Temporary {
        own: OnceLock<PrivateDirectory>,
        /// Copies of projects.
        copies: OnceLock<PrivateDirectory>,
    },
}

impl HostAdapters {
    /// Opens directories for the sessions of the store in this file.
    pub fn beside<S: Store + Objects + 'static>(store: Arc<S>, file: impl Into<PathBuf>) -> Self {
        Self::new(store, Private::Beside(file.into()))
    }

    /// Opens directories for the sessions of a store in memory.
    pub fn in_memory<S: Store + Objects + 'static>(store: Arc<S>) -> Self {
        Self::new(store, Private::Temporary { own: OnceLock::new(), copies: OnceLock::new() })
    }

    fn new<S: Store + Objects + 'static>(store: Arc<S>, private: Private) -> Self {
        Self { objects: store.clone(), store, private, report: Arc::new(|_| {}) }
    }

    /// Calls a function for everything that happens while directories are opened.
    #[must_use]
    pub fn with_report(mut self, report: impl Fn(WorkspaceEvent) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Returns the file of the store, or a directory that stands for it.
    fn store_file(&self) -> std::io::Result<PathBuf> {
        match &self.private {
            Private::Beside(file) => Ok(file.clone()),
            Private::Temporary { own, .. } => Ok(temporary(own)?.join("memory")),
        }
    }

    /// Returns the options of a directory, and the file of the store.
    fn options(&self, spec: &WorkspaceSpec, session: SessionId) -> std::io::Result<(OpenOptions, PathBuf)> {
        let store = self.store_file()?;
        let private = store.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        let mut options = OpenOptions::new(&spec.path, private, self.objects.clone());
        options.holder = directory_holder(session);
        options.excludes.clone_from(&spec.excludes);
        Ok((options, store))
    }

    /// Opens the directory of a session. That of a new one is created if it does not exist.
    async fn open(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> Result<OpenedWorkspace, BoxError> {
        let (options, store) = self.options(spec, session)?;
        let opening = move || -> Result<OpenedWorkspace, BoxError> {
            let directory = &options.root;
            match &files {
                SessionFiles::Known { directory: known } => {
                    check_directory(directory, known.as_deref(), session)?;
                }
                SessionFiles::Copy { .. } => check_directory(directory, Some(directory), session)?,
                _ => std::fs::create_dir_all(directory)?,
            }
            check_apart(directory, &store)?;
            let workspace: Arc<dyn Workspace> = Arc::new(HostWorkspace::open(options)?);
            Ok(workspace.into())
        };
        blocking(opening).await
    }

    /// Makes a copy for a new session, sets it up, and opens it.
    async fn open_copy(&self, spec: &WorkspaceSpec, session: SessionId) -> Result<OpenedWorkspace, BoxError> {
        self.remove_unclaimed(&spec.path).await?;
        (self.report)(WorkspaceEvent::CopyStarted { project: spec.path.clone() });
        let copy = Arc::new(self.copy(&spec.path, session).await?);
        let opened = self.open_new(spec, session, copy.clone()).await;
        if opened.is_err()
            && let Some(whole) = copy.directory.parent()
        {
            let _ = remove_copy(whole);
        }
        opened
    }

    async fn copy(&self, project: &Path, session: SessionId) -> Result<ProjectCopy, BoxError> {
        let store = self.store_file()?;
        let place = match &self.private {
            Private::Beside(_) => None,
            // Not the directory itself, which is locked for its process.
            Private::Temporary { copies, .. } => Some(temporary(copies)?.join("copies")),
        };
        let project = project.to_owned();
        let copying = move || -> Result<ProjectCopy, BoxError> {
            check_apart(&project, &store)?;
            let own = store.parent().unwrap_or(Path::new("."));
            let copied = match place {
                None => isolated::copy_for(own, &project, session),
                Some(place) => isolated::copy_into(&place, own, &project, session),
            };
            let failed = |error: isolated::CopyError| DirectoryError::Copy {
                code: error.code(),
                source: error.into(),
            };
            Ok(copied.map_err(failed)?)
        };
        blocking(copying).await
    }

    /// Sets up a new copy, and opens it. The copy is claimed as long as it is open.
    async fn open_new(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        copy: Arc<ProjectCopy>,
    ) -> Result<OpenedWorkspace, BoxError> {
        setup::run(spec, &copy.directory, &*self.report).await?;
        let (mut options, _) = self.options(spec, session)?;
        options.root.clone_from(&copy.directory);
        options.companion = Some(copy.clone());
        let project = spec.path.clone();
        let opening = move || -> Result<OpenedWorkspace, BoxError> {
            let isolation = Isolation { project: project.canonicalize()?, left_out: copy.left_out.clone() };
            let workspace = Arc::new(HostWorkspace::open(options)?);
            Ok(OpenedWorkspace { workspace, isolation: Some(isolation) })
        };
        blocking(opening).await
    }

    /// Creates the directory of a copy again if it was deleted, without files.
    async fn restore_copy(
        &self,
        spec: &WorkspaceSpec,
        project: PathBuf,
        session: SessionId,
    ) -> Result<(), BoxError> {
        let directory = spec.path.clone();
        let restoring = move || -> Result<bool, BoxError> {
            if directory.is_dir() {
                return Ok(false);
            }
            let gone =
                |error: IsolateError| DirectoryError::CopyGone { session, source: BoxError::from(error) };
            restore_copy(&project, &directory).map_err(gone)?;
            Ok(true)
        };
        if blocking(restoring).await? {
            (self.report)(WorkspaceEvent::CopyRestored { directory: spec.path.clone() });
            setup::run(spec, &spec.path, &*self.report).await?;
        }
        Ok(())
    }

    /// Removes copies of a project that belong to no session, as a process that was killed leaves them.
    async fn remove_unclaimed(&self, project: &Path) -> Result<(), BoxError> {
        let Private::Beside(store) = &self.private else { return Ok(()) };
        let own = store.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        let project = project.to_owned();
        let unclaimed = blocking(move || Ok(isolated::unclaimed(&own, &project))).await?;
        let known = self.store.sessions().await?;
        let report = self.report.clone();
        let removing = move || {
            let known: HashSet<String> = known.iter().map(ToString::to_string).collect();
            for copy in unclaimed {
                if copy.session().is_some_and(|session| known.contains(session)) {
                    continue;
                }
                // What cannot be removed now is removed by a later session.
                if let Ok(directory) = copy.remove() {
                    report(WorkspaceEvent::CopyRemoved { directory });
                }
            }
            Ok(())
        };
        blocking(removing).await
    }

    /// Returns the directory of a whole copy of this store's sessions.
    fn whole_copy<'a>(&self, directory: &'a Path, session: SessionId) -> Option<&'a Path> {
        match &self.private {
            Private::Beside(_) => isolated::copy_of(directory, session),
            Private::Temporary { copies, .. } => {
                let place = copies.get()?;
                directory.parent().filter(|whole| whole.starts_with(place.path()))
            }
        }
    }
}

fn temporary(made: &OnceLock<PrivateDirectory>) -> std::io::Result<PathBuf> {
    if let Some(made) = made.get() {
        return Ok(made.path().to_owned());
    }
    let new = PrivateDirectory::new()?;
    Ok(made.get_or_init(|| new).path().to_owned())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BoxError> + Send + 'static,
) -> Result<T, BoxError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.into()))
}

impl Adapters for HostAdapters {
    fn model(&self, name: &str) -> Result<Arc<dyn Policy>, BoxError> {
        Ok(AgentDefinition::of_model(name)?.policy()?)
    }

    fn workspace<'a>(
        &'a self,
        spec: &'a WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> BoxFuture<'a, Result<OpenedWorkspace, BoxError>> {
        Box::pin(async move {
            match &files {
                SessionFiles::New if spec.isolated => return self.open_copy(spec, session).await,
                SessionFiles::Copy { project } => self.restore_copy(spec, project.clone(), session).await?,
                _ => {}
            }
            self.open(spec, session, files).await
        })
    }

    fn remove_copy<'a>(&'a self, directory: &'a Path, session: SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(whole) = self.whole_copy(directory, session).map(Path::to_owned) else { return };
            // What cannot be removed now is removed by a later session.
            let _ = blocking(move || Ok(remove_copy(&whole)?)).await;
        })
    }
}

impl fmt::Debug for HostAdapters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HostAdapters").finish_non_exhaustive()
    }
}

/// Fails if a directory of files lies in that of a store.
pub fn check_apart(directory: &Path, store: &Path) -> Result<(), DirectoryError> {
    let own = store.parent().unwrap_or(Path::new("."));
    match (directory.canonicalize(), own.canonicalize()) {
        (Ok(files), Ok(own)) if files.starts_with(&own) => {
            Err(DirectoryError::InStore { store: store.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Fails if the directory of an existing session is gone, or if it leads elsewhere because a link took the place of the
/// directory that was recorded.
pub fn check_directory(
    directory: &Path,
    recorded: Option<&Path>,
    session: SessionId,
) -> Result<(), DirectoryError> {
    if !directory.is_dir() {
        return Err(DirectoryError::Gone { directory: directory.to_owned(), session });
    }
    let Some(recorded) = recorded else { return Ok(()) };
    let Some(link) = first_link(recorded) else { return Ok(()) };
    // A user may name the directory by a link of their own. Files that were moved have a place without links.
    let leads_there =
        || first_link(directory).is_some() && directory.canonicalize().ok() == recorded.canonicalize().ok();
    if directory == recorded || leads_there() {
        return Err(DirectoryError::Replaced { link: link.to_owned(), session });
    }
    Ok(())
}

/// Returns the outermost link in a path.
fn first_link(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|part| part.is_symlink()).last()
}
