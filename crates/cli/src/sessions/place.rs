//! Opening the store, a session and its workspace, as the arguments name them.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::Runtime;
use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::{Origin, Position, RecordBody};
use backstitch::ports::{Owner, Store};
use backstitch::store::SqliteStore;
use backstitch::stores::{self, DIRECTORY, FILE, StoresError};
use backstitch::view::JournalView;
use backstitch::workspace::{HostWorkspace, OpenOptions, ProjectCopy};

use super::trusted;
use crate::common::Common;
use crate::error::CommandError;
use crate::usage::Usage;

/// An open store, and a runtime over it.
pub(super) struct OpenStore {
    pub(super) store: Arc<SqliteStore>,
    pub(super) runtime: Runtime,
}

impl OpenStore {
    /// Opens the existing store. Fails with a hint if there is none.
    pub(super) fn existing(common: &Common) -> anyhow::Result<Self> {
        Self::open(&Self::path(common)?)
    }

    /// Returns the path of the existing store.
    pub(super) fn path(common: &Common) -> anyhow::Result<PathBuf> {
        let path = match &common.store {
            Some(path) => path.clone(),
            None => {
                let here = std::env::current_dir()?;
                let known = match trusted::store_beside(common, &here)? {
                    Some(beside) => Some(beside),
                    None => stores::of_project(&here).map_err(elsewhere)?,
                };
                known.ok_or_else(|| {
                    CommandError::new(ErrorCode::StoreNotFound, "this project has no store yet").with_hint(
                        "`backstitch run` creates one, `--store PATH` names one elsewhere, `backstitch ls --all` lists the sessions of other projects",
                    )
                })?
            }
        };
        if !path.exists() {
            let message = format!("there is no store at {}", path.display());
            return Err(CommandError::new(ErrorCode::StoreNotFound, message).into());
        }
        Ok(path)
    }

    /// Opens the existing store read-only.
    pub(super) fn for_reading(common: &Common) -> anyhow::Result<Self> {
        Self::reading(&Self::path(common)?)
    }

    /// Opens the store at a path read-only.
    pub(super) fn reading(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let store = SqliteStore::open_read_only(&path)
            .with_context(|| format!("the store {} cannot be opened", path.display()))?;
        Ok(Self::over(store))
    }

    /// Opens the existing store, or creates one for the project of a directory.
    pub(super) fn existing_or_new(common: &Common, directory: &Path) -> anyhow::Result<Self> {
        Self::existing_or_new_for(common, directory, None)
    }

    /// Opens the existing store, or creates one for the project of a directory. None is created that could not be used
    /// with the workspace.
    pub(super) fn existing_or_new_for(
        common: &Common,
        directory: &Path,
        workspace: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let path = match &common.store {
            Some(path) => path.clone(),
            None => match trusted::store_beside(common, directory)? {
                Some(beside) => beside,
                None => stores::of_project_or_new(directory).map_err(elsewhere)?,
            },
        };
        let is_new = !path.exists();
        if let Some(workspace) = workspace.filter(|_| is_new) {
            check_apart(workspace, &std::path::absolute(&path)?)?;
        }
        let opened = Self::open(&path)?;
        if is_new {
            trusted::trust_new_store(opened.store.path());
        }
        Ok(opened)
    }

    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        stores::prepare(&path).map_err(elsewhere)?;
        let store = SqliteStore::open(&path)
            .with_context(|| format!("the store {} cannot be opened", path.display()))?;
        Ok(Self::over(store))
    }

    pub(super) fn over(store: SqliteStore) -> Self {
        let store = Arc::new(store);
        let runtime = Runtime::new(store.clone()).with_owner(Owner::new(whoami()));
        #[cfg(feature = "bridge")]
        let runtime = runtime.with_engines(Arc::new(backstitch_bridge::InstalledEngines {
            key: crate::keys::key,
            relay: super::relay::relay_command,
        }));
        Self { store, runtime }
    }

    /// Returns the directory of the store, which no tool may touch.
    pub(super) fn directory(&self) -> PathBuf {
        self.store.path().parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
    }

    /// Finds a session by the beginning or end of its id, or the latest one.
    pub(super) async fn session(&self, name: Option<&str>) -> anyhow::Result<SessionId> {
        let sessions = self.store.sessions().await?;
        let Some(name) = name else { return self.latest(&sessions).await };
        let name = part_of_id(name)?;
        let matching: Vec<_> = sessions
            .iter()
            .filter(|id| {
                let id = id.to_string();
                id.starts_with(&name) || id.ends_with(&name)
            })
            .collect();
        match matching[..] {
            [one] => Ok(*one),
            [] => {
                let message = format!("there is no session {name}");
                Err(CommandError::new(ErrorCode::SessionNotFound, message).into())
            }
            ref several => {
                let message = format!("`{name}` matches {} sessions; type more of the id", several.len());
                Err(CommandError::new(ErrorCode::SessionAmbiguous, message).into())
            }
        }
    }

    /// Returns the latest session that is not a child session of a call.
    async fn latest(&self, sessions: &[SessionId]) -> anyhow::Result<SessionId> {
        for session in sessions.iter().rev() {
            let first = self.store.read(*session, Position::START, 1).await?;
            let is_below = first.first().is_some_and(|record| {
                matches!(&record.body, RecordBody::SessionCreated(created) if matches!(created.origin, Origin::Call { .. }))
            });
            if !is_below {
                return Ok(*session);
            }
        }
        Err(CommandError::new(ErrorCode::SessionNotFound, "there is no session yet")
            .with_hint("`backstitch run` starts one")
            .into())
    }

    pub(super) async fn view(&self, session: SessionId) -> anyhow::Result<JournalView> {
        Ok(self.runtime.view(session).await?)
    }

    /// Opens the workspace of a session, if it has one. A missing directory is not created again: it may have
    /// been moved.
    pub(super) fn workspace(
        &self,
        definition: &AgentDefinition,
        session: SessionId,
    ) -> anyhow::Result<Option<Arc<HostWorkspace>>> {
        let workspace = &definition.workspace;
        let Some(directory) = &workspace.path else { return Ok(None) };
        if !directory.is_dir() {
            let message = format!(
                "the directory {} of session {session} is gone, and nothing was changed",
                directory.display()
            );
            return Err(CommandError::new(ErrorCode::WorkspaceGone, message)
                .with_hint("if it was moved, `--workspace DIR` names its new path")
                .into());
        }
        // It was recorded without links. One that a command has put in its place would lead the session elsewhere.
        if let Some(link) = directory.ancestors().filter(|part| part.is_symlink()).last() {
            let message = format!(
                "{} was a directory when session {session} started and is a link now, and nothing was changed",
                link.display()
            );
            return Err(CommandError::new(ErrorCode::WorkspaceGone, message)
                .with_hint("if the files were moved, `--workspace DIR` names their new path")
                .into());
        }
        self.open_workspace(directory, &workspace.excludes, &session.to_string()).map(Some)
    }

    /// Opens a new copy of a project.
    pub(super) fn open_copy(
        &self,
        copy: Arc<ProjectCopy>,
        excludes: &[String],
        session: SessionId,
    ) -> anyhow::Result<Arc<HostWorkspace>> {
        let mut options = self.options(&copy.directory, excludes, &session.to_string());
        options.companion = Some(copy as Arc<dyn Any + Send + Sync>);
        opened(options)
    }

    pub(super) fn open_workspace(
        &self,
        directory: &Path,
        excludes: &[String],
        holder: &str,
    ) -> anyhow::Result<Arc<HostWorkspace>> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        check_apart(directory, self.store.path())?;
        opened(self.options(directory, excludes, holder))
    }

    /// Opens the workspace of a session that another program works in, to capture it as fast as possible.
    pub(super) fn open_to_capture(
        &self,
        directory: &Path,
        session: SessionId,
    ) -> anyhow::Result<Arc<HostWorkspace>> {
        check_apart(directory, self.store.path())?;
        let mut options = self.options(directory, &[], &session.to_string());
        options.sweeps = false;
        opened(options)
    }

    fn options(&self, directory: &Path, excludes: &[String], holder: &str) -> OpenOptions {
        let mut options = OpenOptions::new(directory, self.directory(), self.store.clone());
        options.holder = format!("session {holder}");
        options.excludes = excludes.to_vec();
        options
    }
}

fn opened(options: OpenOptions) -> anyhow::Result<Arc<HostWorkspace>> {
    let directory = options.root.clone();
    let workspace = HostWorkspace::open(options)
        .with_context(|| format!("the workspace {} cannot be opened", directory.display()))?;
    Ok(Arc::new(workspace))
}

/// Fails if a directory of files lies in that of a store.
fn check_apart(directory: &Path, store: &Path) -> anyhow::Result<()> {
    let own = store.parent().unwrap_or(Path::new("."));
    if let (Ok(files), Ok(own)) = (directory.canonicalize(), own.canonicalize())
        && files.starts_with(&own)
    {
        let message =
            format!("the store {} needs a directory of its own, which no agent works in", store.display());
        let elsewhere = own.join(DIRECTORY).join(FILE);
        return Err(CommandError::new(ErrorCode::WorkspaceRefused, message)
            .with_hint(format!("`--store {}` keeps it in one", elsewhere.display()))
            .into());
    }
    Ok(())
}

/// Adds the option that helps to an error about the location of stores.
pub(super) fn elsewhere(error: StoresError) -> anyhow::Error {
    anyhow::Error::from(error).context("the store cannot be kept here; `--store PATH` keeps it elsewhere")
}

/// Minimum length of a part of an id. An empty one, such as an unset variable of a script, would match every
/// id.
const SHORTEST_ID: usize = 4;

/// Checks a part of an id, and normalizes it for comparison.
pub(super) fn part_of_id(name: &str) -> Result<String, Usage> {
    let is_of_id = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if name.len() >= SHORTEST_ID && is_of_id {
        Ok(name.to_ascii_lowercase())
    } else {
        Err(Usage(format!(
            "{name:?} is no id: type at least {SHORTEST_ID} characters of its beginning or its end"
        )))
    }
}

/// Returns the end of an id, as it is shown to people. Ids start with the time, so their beginnings are
/// alike.
pub(super) fn short(id: impl ToString) -> String {
    let id = id.to_string();
    id.rsplit('-').next().map_or(id.clone(), str::to_owned)
}

/// Describes this process, for the error that another process gets when the session is held.
fn whoami() -> String {
    format!("{} (process {})", user_name(), std::process::id())
}

/// Returns the name of the user: that of the environment, else that of the system, else its number.
pub(super) fn user_name() -> String {
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
pub(super) fn uncovered_paths(workspace: &HostWorkspace) -> Vec<String> {
    workspace.coverage().uncovered().map(|one| one.path).collect()
}

/// Formats the uncovered paths as one line; `None` if there are none.
pub(super) fn uncovered(workspace: &HostWorkspace) -> Option<String> {
    let paths = uncovered_paths(workspace);
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    match paths.len() {
        0 => None,
        few if few <= 5 => Some(shown),
        many => Some(format!("{shown} and {} more", many - 5)),
    }
}
