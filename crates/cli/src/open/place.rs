//! Opening the store and a session, as the arguments name them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::host::{OpenedWorkspace, WorkspaceEvent, check_apart};
use backstitch::id::SessionId;
use backstitch::ports::{Objects, OpenError, Owner, Store, StoreAdmin, Workspace};
use backstitch::stores::{self, OpenedStore, StoreAddress, StoresError};
use backstitch::view::JournalView;
use backstitch::{Agent, Runtime, RuntimeError};

use super::trusted;
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::terminal;

/// An open store, and a runtime over it.
pub(crate) struct OpenStore {
    pub(crate) address: StoreAddress,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) admin: Arc<dyn StoreAdmin>,
    pub(crate) runtime: Runtime,
    /// Directory of the store, which no tool may touch. That beside a store in memory is removed with the runtime.
    pub(crate) directory: PathBuf,
}

impl OpenStore {
    /// Opens the existing store. Fails with a hint if there is none.
    pub(crate) fn existing(common: &Common) -> anyhow::Result<Self> {
        Self::open(&Self::address(common)?)
    }

    /// Opens the existing store, and finds a session in it: that of a name, or the latest.
    pub(crate) async fn with_session(
        common: &Common,
        name: Option<&str>,
    ) -> anyhow::Result<(Self, SessionId)> {
        let place = Self::existing(common)?;
        let session = place.session(name).await?;
        Ok((place, session))
    }

    /// Returns the address of the existing store.
    pub(crate) fn address(common: &Common) -> anyhow::Result<StoreAddress> {
        Self::address_in(common, &std::env::current_dir()?)
    }

    /// Returns the address of the existing store of a directory's project.
    pub(crate) fn address_in(common: &Common, directory: &Path) -> anyhow::Result<StoreAddress> {
        let address = match &common.store {
            Some(address) => address.clone(),
            None => {
                let known = match trusted::store_beside(common, directory)? {
                    Some(beside) => Some(beside),
                    None => stores::of_project(directory).map_err(with_store_hint)?,
                };
                let known = known.ok_or_else(|| {
                    CommandError::new(ErrorCode::StoreNotFound, "this project has no store yet").with_hint(
                        "`backstitch run` creates one, `--store PATH` names one elsewhere, `backstitch ls --all` lists the sessions of other projects",
                    )
                })?;
                StoreAddress::File(known)
            }
        };
        if address.is_missing() {
            let message = format!("there is no store at {address}");
            return Err(CommandError::new(ErrorCode::StoreNotFound, message).into());
        }
        Ok(address)
    }

    /// Opens the existing store read-only.
    pub(crate) fn for_reading(common: &Common) -> anyhow::Result<Self> {
        Self::reading(&Self::address(common)?)
    }

    /// Opens the store at an address read-only.
    pub(crate) fn reading(address: &StoreAddress) -> anyhow::Result<Self> {
        Self::over(stores::open_read_only(address).map_err(|error| unopened(address, error))?)
    }

    /// Opens the existing store, or creates one for the project of a directory.
    pub(crate) fn existing_or_new(common: &Common, directory: &Path) -> anyhow::Result<Self> {
        Self::existing_or_new_for(common, directory, None)
    }

    /// Opens the existing store, or creates one for the project of a directory. None is created that could not be used
    /// with the workspace.
    pub(crate) fn existing_or_new_for(
        common: &Common,
        directory: &Path,
        workspace: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let address = match &common.store {
            Some(address) => address.clone(),
            None => StoreAddress::File(match trusted::store_beside(common, directory)? {
                Some(beside) => beside,
                None => stores::of_project_or_new(directory).map_err(with_store_hint)?,
            }),
        };
        let is_new = address.is_missing();
        if let Some(workspace) = workspace.filter(|_| is_new) {
            check_apart(workspace, &address.absolute()?).map_err(RuntimeError::from)?;
        }
        let opened = Self::open(&address)?;
        if let Some(path) = opened.address.path().filter(|_| is_new) {
            trusted::trust_new_store(path);
        }
        Ok(opened)
    }

    pub(crate) fn open(address: &StoreAddress) -> anyhow::Result<Self> {
        let opened = stores::open(address).map_err(|error| match error {
            StoresError::Open { source, .. } => unopened(address, source),
            other => with_store_hint(other),
        });
        Self::over(opened?)
    }

    pub(crate) fn over(opened: OpenedStore) -> anyhow::Result<Self> {
        // For the error that another process gets when the session is held.
        let owner = Owner::new(format!("{} (process {})", user_name(), std::process::id()));
        let runtime = Runtime::over(opened.clone()).with_report(report).with_owner(owner);
        // Messages of all sessions are in one file, wherever their store is.
        let runtime = runtime.with_input_history(stores::input_history::path());
        #[cfg(feature = "bridge")]
        let runtime = runtime.with_engines(Arc::new(backstitch_bridge::InstalledEngines {
            key: crate::keys::key,
            relay: super::relay::relay_command,
        }));
        let directory = runtime.store_directory()?;
        let OpenedStore { address, store, objects, admin, .. } = opened;
        Ok(Self { address, store, objects, admin, runtime, directory })
    }

    /// Finds a session by the beginning or end of its id, or the latest one.
    pub(crate) async fn session(&self, name: Option<&str>) -> anyhow::Result<SessionId> {
        Ok(match name {
            Some(name) => self.runtime.find_session(name).await?,
            None => self.runtime.latest_session().await?,
        })
    }

    pub(crate) async fn view(&self, session: SessionId) -> anyhow::Result<JournalView> {
        Ok(self.runtime.view(session).await?)
    }

    /// Opens the files of an agent's session, if it has any.
    pub(crate) async fn open_files(
        &self,
        agent: &Agent,
        session: SessionId,
    ) -> anyhow::Result<Option<OpenedWorkspace>> {
        Ok(match agent.workspace_spec() {
            Some(spec) => Some(self.runtime.open_workspace(&spec, session).await?),
            None => None,
        })
    }
}

/// Prints what happens to the copies of projects.
fn report(event: WorkspaceEvent) {
    match event {
        WorkspaceEvent::CopyRemoved { directory } => {
            eprintln!("removed an unfinished copy: {}", directory.display());
        }
        WorkspaceEvent::CopyStarted { project } if !terminal::is_quiet() => {
            eprintln!("copying {}", project.display());
        }
        WorkspaceEvent::CopyRestored { directory } => eprintln!(
            "the copy {} was gone: its files are restored from the store, commits that were made in it are lost",
            directory.display()
        ),
        WorkspaceEvent::CheckoutFilled { directory, uncovered } => {
            eprintln!("the files of a session were written to {}", directory.display());
            if let Some(paths) = listed(&uncovered) {
                eprintln!(
                    "  not in the store, and missing unless the setup of the agent makes them: {paths}"
                );
            }
        }
        WorkspaceEvent::SetupStarted { command } => eprintln!("setup: {command}"),
        WorkspaceEvent::SetupOutput { line } => eprintln!("  {line}"),
        _ => {}
    }
}

/// Names the store that cannot be opened.
pub(crate) fn unopened(address: &StoreAddress, error: OpenError) -> anyhow::Error {
    let address = address.absolute().unwrap_or_else(|_| address.clone());
    anyhow::Error::from(error).context(format!("the store {address} cannot be opened"))
}

/// Adds the option that helps to an error about the location of stores.
pub(crate) fn with_store_hint(error: StoresError) -> anyhow::Error {
    anyhow::Error::from(error).context("the store cannot be kept here; `--store PATH` keeps it elsewhere")
}

/// Returns the end of an id, as it is shown to people. Ids start with the time, so their beginnings are
/// alike.
pub(crate) fn short(id: impl ToString) -> String {
    let id = id.to_string();
    id.rsplit('-').next().map_or(id.clone(), str::to_owned)
}

/// Returns the name of the user: that of the environment, else that of the system, else its number.
pub(crate) fn user_name() -> String {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    named.unwrap_or_else(|| {
        let number = rustix::process::geteuid().as_raw().to_string();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let of_line = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2) == Some(&number.as_str())).then(|| fields[0].to_owned())
        };
        users.lines().find_map(of_line).unwrap_or_else(|| format!("user {number}"))
    })
}

/// Returns the paths that are neither captured nor restored.
pub(crate) fn uncovered_paths(workspace: &(dyn Workspace + 'static)) -> Vec<String> {
    workspace.uncovered().into_iter().map(|one| one.path).collect()
}

/// Formats the uncovered paths as one line; `None` if there are none.
pub(crate) fn uncovered(workspace: &(dyn Workspace + 'static)) -> Option<String> {
    listed(&uncovered_paths(workspace))
}

/// Formats paths as one line, only the first of many; `None` if there are none.
pub(crate) fn listed(paths: &[String]) -> Option<String> {
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    match paths.len() {
        0 => None,
        few if few <= 5 => Some(shown),
        many => Some(format!("{shown} and {} more", many - 5)),
    }
}
