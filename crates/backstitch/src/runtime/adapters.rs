//! Adapters of this machine: models with keys from the environment, and directories.
//!
//! A directory is opened with the excludes of its agent, apart from the store. That of an existing session is neither created
//! again nor followed to another place: one that is gone, or that a link took the place of, is refused. A new session of an
//! isolated agent gets a copy of its directory, in which the commands of `setup` run first. If that fails, the copy is removed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use backstitch_runtime::{
    Adapters, CheckoutRequest, DirectoryError, Isolation, OpenedWorkspace, PrivateDirectory, SessionFiles,
    WorkspaceSpec,
};
use backstitch_workspace::{
    HostFilesystem, HostWorkspace, IsolateError, OpenOptions, ProjectCopy, remove_copy, restore_copy,
};

use super::checkouts::Checkouts;
use super::setup;
use super::workspace_event::{Report, WorkspaceEvent};
use crate::RuntimeError;
use crate::agent_file::AgentDefinition;
use crate::id::SessionId;
use crate::isolated;
use crate::ports::{Access, AnyValue, BoxFuture, FilesystemLimits, Policy, Workspace, directory_holder};
use crate::session::BoxError;
use crate::stores::{OpenedStore, StoreAddress};

/// Opens models with keys from the environment, and directories of this machine.
pub(crate) struct HostAdapters {
    pub(super) store: OpenedStore,
    pub(super) report: Arc<Report>,
    pub(super) checkouts: Option<Checkouts>,
    /// Data of workspaces besides their objects, such as stat caches, of a store that is not a file. This directory and the next
    /// one are created when they are needed, and removed with the adapters.
    own: OnceLock<PrivateDirectory>,
    /// Copies of projects, for a store that is not a file. They are not in the other directory, which is locked for its process.
    copies: OnceLock<PrivateDirectory>,
}

impl HostAdapters {
    /// Opens directories for the sessions of a store. `report` is called for everything that happens to them meanwhile.
    pub(crate) fn new(store: OpenedStore, report: Arc<Report>, checkouts: Option<Checkouts>) -> Self {
        Self { store, report, checkouts, own: OnceLock::new(), copies: OnceLock::new() }
    }

    /// Returns the directory of the store, for data of workspaces besides their objects, such as stat caches. That of a store
    /// in memory is created now, and removed with the adapters.
    pub(crate) fn directory(&self) -> std::io::Result<PathBuf> {
        match self.store.address.directory() {
            Some(own) => Ok(own.to_owned()),
            None => create_once(&self.own),
        }
    }

    pub(super) fn options(&self, spec: &WorkspaceSpec, session: SessionId) -> std::io::Result<OpenOptions> {
        let mut options = OpenOptions::new(&spec.path, self.directory()?, self.store.objects.clone());
        options.holder = directory_holder(session);
        options.excludes.clone_from(&spec.excludes);
        Ok(options)
    }

    /// Opens the directory of a session. That of a new one is created if it does not exist.
    async fn open(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> Result<OpenedWorkspace, BoxError> {
        let (options, store) = (self.options(spec, session)?, self.store.address.clone());
        let workspace = blocking(move || {
            let directory = &options.root;
            match &files {
                SessionFiles::Known { directory: known } => {
                    check_directory(directory, known.as_deref(), session)?;
                }
                SessionFiles::Copy { .. } => check_directory(directory, Some(directory), session)?,
                _ => std::fs::create_dir_all(directory)?,
            }
            check_apart(directory, &store)?;
            Ok(Arc::new(HostWorkspace::open(options)?))
        })
        .await?;
        self.remember_home(session, workspace.path())?;
        let workspace: Arc<dyn Workspace> = workspace;
        Ok(workspace.into())
    }

    /// Opens a directory only to capture it, as fast as possible. It has to exist.
    pub(crate) async fn open_to_capture(
        &self,
        directory: &Path,
        holder: String,
    ) -> Result<Arc<HostWorkspace>, BoxError> {
        let mut options = OpenOptions::new(directory, self.directory()?, self.store.objects.clone());
        options.holder = holder;
        // Captures leave out what would be removed.
        options.sweeps = false;
        let store = self.store.address.clone();
        blocking(move || {
            check_apart(&options.root, &store)?;
            Ok(Arc::new(HostWorkspace::open(options)?))
        })
        .await
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
        let (store, own) = (self.store.address.clone(), self.directory()?);
        let place = match store.directory() {
            Some(_) => None,
            None => Some(create_once(&self.copies)?.join("copies")),
        };
        let project = project.to_owned();
        blocking(move || {
            check_apart(&project, &store)?;
            Ok(isolated::copy_for(place, &own, &project, session)?)
        })
        .await
    }

    /// Sets up a new copy, and opens it. The copy is claimed as long as it is open.
    async fn open_new(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        copy: Arc<ProjectCopy>,
    ) -> Result<OpenedWorkspace, BoxError> {
        setup::run(spec, &copy.directory, &*self.report).await?;
        let mut options = self.options(spec, session)?;
        options.root.clone_from(&copy.directory);
        options.companion = Some(copy.clone());
        let project = spec.path.clone();
        self.remember_home(session, &copy.directory)?;
        blocking(move || {
            let isolation = Isolation { project: project.canonicalize()?, left_out: copy.left_out.clone() };
            let workspace = Arc::new(HostWorkspace::open(options)?);
            Ok(OpenedWorkspace { workspace, isolation: Some(isolation), moved: None })
        })
        .await
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
        let Some(own) = self.store.address.directory().map(Path::to_owned) else { return Ok(()) };
        let project = project.to_owned();
        let unclaimed = blocking(move || Ok(isolated::unclaimed(&own, &project))).await?;
        let known = self.store.store.sessions().await?;
        let report = self.report.clone();
        blocking(move || {
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
        })
        .await
    }

    /// Returns the directory of a whole copy of this store's sessions.
    pub(crate) fn whole_copy<'a>(&self, directory: &'a Path, session: SessionId) -> Option<&'a Path> {
        if self.store.address.directory().is_some() {
            return isolated::copy_of(directory, session);
        }
        let place = self.copies.get()?;
        directory.parent().filter(|whole| whole.starts_with(place.path()))
    }
}

fn create_once(made: &OnceLock<PrivateDirectory>) -> std::io::Result<PathBuf> {
    if let Some(made) = made.get() {
        return Ok(made.path().to_owned());
    }
    let new = PrivateDirectory::new()?;
    Ok(made.get_or_init(|| new).path().to_owned())
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BoxError> + Send + 'static,
) -> Result<T, BoxError> {
    tokio::task::spawn_blocking(AnyValue::of_work(work)).await?.into_value()
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

    fn has_checkouts(&self) -> bool {
        self.checkouts.is_some()
    }

    fn checkout<'a>(
        &'a self,
        request: CheckoutRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<OpenedWorkspace>, BoxError>> {
        Box::pin(self.open_checkout(request))
    }

    fn remove_copy<'a>(&'a self, directory: &'a Path, session: SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(whole) = self.whole_copy(directory, session).map(Path::to_owned) else { return };
            // What cannot be removed now is removed by a later session.
            let _ = blocking(move || Ok(remove_copy(&whole)?)).await;
        })
    }
}

/// Fails if a directory of files lies in that of a store. A store that is not a file has none.
pub fn check_apart(directory: &Path, store: &StoreAddress) -> Result<(), DirectoryError> {
    let (Some(file), Some(own)) = (store.path(), store.directory()) else { return Ok(()) };
    match (directory.canonicalize(), own.canonicalize()) {
        (Ok(files), Ok(own)) if files.starts_with(&own) => {
            Err(DirectoryError::InStore { store: file.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Fails if no session may work in a directory, such as a home directory. Nothing is claimed.
pub fn check_workspace(directory: &Path) -> Result<(), RuntimeError> {
    match HostFilesystem::open(directory, None, Access::ReadOnly, FilesystemLimits::default()) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(RuntimeError::Directory { directory: directory.to_owned(), cause: Arc::new(error) })
        }
    }
}

/// Fails if the directory of an existing session is gone, or if it leads elsewhere because a link took the place of the
/// directory that was recorded.
pub(crate) fn check_directory(
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
