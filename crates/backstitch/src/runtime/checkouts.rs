//! Checkouts: directories of a worker, in which sessions work that are not at home on this machine.
//!
//! A checkout holds the files of one session. When the session is claimed, they are made what the journal says, with content from the
//! store. If nobody else has claimed the session since this checkout was used, they are left to the recovery, which restores them too
//! and keeps what an interrupted call has left. Paths that the store does not hold are made by the commands of `setup`.
//!
//! A checkout that a process still uses is left to that process, which may have lost the session without knowing it.
//!
//! Where several machines share a store, each of them remembers which sessions are at home there: those that it has opened in their own
//! directories. Otherwise a directory of the same path, with other files, would be taken for that of the session.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_runtime::{
    CheckoutRequest, DirectoryError, Isolation, MovedFiles, OpenedWorkspace, WorkspaceSpec,
};
use backstitch_workspace::{
    Checkout, CheckoutMark, Coverage, HostWorkspace, IsolateError, ObjectsAhead, OpenOptions,
};

use super::adapters::{HostAdapters, blocking, check_apart, check_workspace};
use super::setup;
use super::workspace_event::WorkspaceEvent;
use crate::RuntimeError;
use crate::id::SessionId;
use crate::journal::WorkspaceRevision;
use crate::ports::{Objects, Workspace};
use crate::session::BoxError;
use crate::stores::{self, StoreAddress, StoresError};

/// The directories in which workers keep files of sessions, and for which sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkouts {
    pub(crate) place: PathBuf,
    /// Whether sessions that are at home on this machine work in their own directories.
    pub(crate) spares_home: bool,
}

impl Checkouts {
    /// Keeps the files of all sessions below a directory, which is created when it is needed.
    pub fn at(place: impl Into<PathBuf>) -> Self {
        Self { place: place.into(), spares_home: false }
    }

    /// Keeps the files of those sessions in the state directory of the user that have worked on another machine before.
    pub fn for_others() -> Result<Self, StoresError> {
        Ok(Self { place: stores::state_directory()?.join("copies/checkouts"), spares_home: true })
    }

    /// Creates the directory. Fails if no session of a store may work below it, so that a worker can refuse it at its start, before it
    /// fails with each session.
    pub fn create(&self, store: &StoreAddress) -> Result<(), RuntimeError> {
        let unusable = |cause: BoxError| RuntimeError::Directory {
            directory: self.place.clone(),
            cause: Arc::from(cause),
        };
        let around = self.place.ancestors().find(|path| path.exists());
        around.map_or(Ok(()), |around| check_apart(around, store))?;
        if !self.place.is_dir() {
            stores::make_private(&self.place).map_err(|error| unusable(error.into()))?;
        }
        check_workspace(&self.place)?;
        let tried = self.place.join(format!(".try-{}", std::process::id()));
        fs::create_dir(&tried).and_then(|()| fs::remove_dir(&tried)).map_err(|error| unusable(error.into()))
    }
}

impl HostAdapters {
    /// Opens the checkout of a session. `None` if the session works in its own directory.
    pub(crate) async fn open_checkout(
        &self,
        request: CheckoutRequest<'_>,
    ) -> Result<Option<OpenedWorkspace>, BoxError> {
        let Some(checkouts) = &self.checkouts else { return Ok(None) };
        if checkouts.spares_home && self.is_home(&request) {
            return Ok(None);
        }
        let (place, session) = (checkouts.place.clone(), request.session);
        let checkout =
            blocking(move || Ok(Checkout::claim(&place, &session.to_string()).map_err(failed)?)).await?;
        let checkout = Arc::new(checkout);
        let opened = match request.files {
            Some(files) => self.open_known(&request, files, checkout).await,
            None => self.open_first(&request, checkout).await,
        };
        opened.map(Some)
    }

    /// Opens the checkout of a session without files: a copy of its project if that is on this machine, or an empty directory.
    async fn open_first(
        &self,
        request: &CheckoutRequest<'_>,
        checkout: Arc<Checkout>,
    ) -> Result<OpenedWorkspace, BoxError> {
        let CheckoutRequest { spec, session, fence, .. } = *request;
        let (known, own) = (checkout.mark(), self.directory()?);
        let name = known.as_ref().map_or_else(|| Checkout::name_for(&spec.path), |mark| mark.name.clone());
        let mut isolation = Isolation { project: spec.path.clone(), left_out: Vec::new() };
        if known.is_none() {
            let has_project = spec.path.is_dir();
            if has_project {
                (self.report)(WorkspaceEvent::CopyStarted { project: spec.path.clone() });
            }
            let (project, made, copy) = (spec.path.clone(), checkout.clone(), name.clone());
            isolation.left_out = blocking(move || match has_project {
                true => Ok(made.copy_project(&project, &copy, &own).map_err(failed)?),
                false => {
                    made.create_directory(&copy).map_err(failed)?;
                    Ok(Vec::new())
                }
            })
            .await?;
            setup::run(spec, &checkout.directory(&name), &*self.report).await?;
        }
        let options = self.checkout_options(spec, session, &checkout, &name)?;
        let workspace = self.open_marked(options, checkout, CheckoutMark::new(name, fence.0)).await?;
        Ok(OpenedWorkspace { workspace, isolation: Some(isolation), moved: None })
    }

    /// Opens the checkout of a session with files.
    async fn open_known(
        &self,
        request: &CheckoutRequest<'_>,
        files: WorkspaceRevision,
        checkout: Arc<Checkout>,
    ) -> Result<OpenedWorkspace, BoxError> {
        let CheckoutRequest { spec, session, fence, .. } = *request;
        let known = checkout.mark();
        let name = known.as_ref().map_or_else(|| Checkout::name_for(&spec.path), |mark| mark.name.clone());
        let mark = CheckoutMark::new(name.clone(), fence.0);
        let mut options = self.checkout_options(spec, session, &checkout, &name)?;
        let is_recorded = request.directory.as_deref() == Some(&*options.root);
        // The files are those of the last claim, or what a call of it has left.
        let is_latest = |mark: &CheckoutMark| [mark.fence, mark.fence.saturating_add(1)].contains(&fence.0);
        if is_recorded && known.as_ref().is_some_and(is_latest) {
            return Ok(self.open_marked(options, checkout, mark).await?.into());
        }
        let ahead = Arc::new(ObjectsAhead::new(self.store.objects.clone()));
        options.objects = ahead.clone();
        let (made, store) = (checkout.clone(), self.store.address.clone());
        let (objects, prepared) = (self.store.objects.clone(), ahead.clone());
        let excludes = spec.excludes.clone();
        let (workspace, uncovered) = blocking(move || {
            made.set_mark(None).map_err(failed)?;
            let directory = made.create_directory(&name).map_err(failed)?;
            check_apart(&directory, &store)?;
            let workspace = Arc::new(HostWorkspace::open(options)?);
            prepared.prepare(files.root)?;
            workspace.restore_covering(files.root, files.coverage)?;
            workspace.forget_repository(files.coverage);
            Ok((workspace, uncovered_paths(&*objects, files, excludes)?))
        })
        .await?;
        let mut moved = MovedFiles { project: spec.path.clone(), uncovered, setup: Vec::new() };
        if known.is_none() {
            let (directory, uncovered) = (workspace.path().to_owned(), moved.uncovered.clone());
            (self.report)(WorkspaceEvent::CheckoutFilled { directory, uncovered });
            setup::run(spec, workspace.path(), &*self.report).await?;
            moved.setup.clone_from(&spec.setup);
        }
        let is_set_up = !moved.setup.is_empty();
        let moved = (known.is_none() || !is_recorded).then_some(moved);
        let filled = workspace.clone();
        blocking(move || {
            if is_set_up {
                // The commands may have changed files, too.
                filled.restore_covering(files.root, files.coverage)?;
            }
            // This learns which objects are stored, as long as the store need not be asked.
            filled.capture_covering(files.coverage)?;
            ahead.finish();
            checkout.set_mark(Some(&mark)).map_err(failed)?;
            Ok(())
        })
        .await?;
        Ok(OpenedWorkspace { workspace, isolation: None, moved })
    }

    fn checkout_options(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        checkout: &Arc<Checkout>,
        name: &str,
    ) -> std::io::Result<OpenOptions> {
        let mut options = self.options(spec, session)?;
        options.root = checkout.directory(name);
        options.cache = Some(checkout.cache());
        options.exclusive = true;
        options.companion = Some(checkout.clone());
        Ok(options)
    }

    /// Opens the files of a checkout as they are, and marks it as used by a claim.
    async fn open_marked(
        &self,
        options: OpenOptions,
        checkout: Arc<Checkout>,
        mark: CheckoutMark,
    ) -> Result<Arc<dyn Workspace>, BoxError> {
        let store = self.store.address.clone();
        blocking(move || {
            check_apart(&options.root, &store)?;
            let workspace: Arc<dyn Workspace> = Arc::new(HostWorkspace::open(options)?);
            checkout.set_mark(Some(&mark)).map_err(failed)?;
            Ok(workspace)
        })
        .await
    }

    /// Returns the file that names the directories of this machine that a session has worked in. `None` if no other machine can use the
    /// store.
    fn home(&self, session: SessionId) -> Option<PathBuf> {
        // Not beside the store: a server may have several addresses.
        let state = stores::state_directory().ok().filter(|_| self.store.address.is_server())?;
        Some(state.join("homes").join(session.to_string()))
    }

    /// Remembers that a session works in a directory of this machine, if other machines may use the store too.
    pub(crate) fn remember_home(&self, session: SessionId, directory: &Path) -> std::io::Result<()> {
        let Some(file) = self.home(session) else { return Ok(()) };
        let (mut known, directory) = (fs::read(&file).unwrap_or_default(), directory.as_os_str());
        if is_listed(&known, directory) {
            return Ok(());
        }
        known.extend_from_slice(directory.as_encoded_bytes());
        known.push(0);
        file.parent().map_or(Ok(()), stores::make_private)?;
        fs::write(file, known)
    }

    /// Returns whether a session works in its own directory here: it is new, or it has worked there on this machine, and nowhere else
    /// since.
    fn is_home(&self, request: &CheckoutRequest<'_>) -> bool {
        let Some(file) = self.home(request.session).filter(|_| request.files.is_some()) else { return true };
        let known = fs::read(file).unwrap_or_default();
        request.directory.as_ref().is_some_and(|directory| is_listed(&known, directory.as_os_str()))
    }
}

/// Returns whether a directory is in a list, which has a NUL after each.
fn is_listed(list: &[u8], directory: &OsStr) -> bool {
    list.split(|byte| *byte == 0).any(|one| one == directory.as_encoded_bytes())
}

/// Returns the paths and patterns of files that the store does not hold.
fn uncovered_paths(
    objects: &dyn Objects,
    files: WorkspaceRevision,
    mut paths: Vec<String>,
) -> Result<Vec<String>, BoxError> {
    if let Some(id) = files.coverage
        && let Some(object) = objects.get(id)?
    {
        let omitted = Coverage::from_json(object.bytes())?;
        let omitted = omitted.uncovered().filter(|one| !one.reason.covers_content()).map(|one| one.path);
        paths.extend(omitted.collect::<Vec<_>>());
        if Coverage::git_head(object.bytes())?.head.is_some() {
            paths.push(".git".to_owned());
        }
    }
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn failed(error: IsolateError) -> DirectoryError {
    DirectoryError::Copy { code: error.code(), source: error.into() }
}
