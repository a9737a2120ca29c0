//! Operations on the history of sessions that need this machine: the directories of forks, and applications that survive a
//! crash.
//!
//! The fork of a session with files has a directory of its own, by default a new one beside that of its parent. One in or around
//! the parent's is refused, since the two would change each other's files.
//!
//! An application of changes may be interrupted between its record and the last file. So a file beside the store names each
//! session that is being applied, and [`Runtime::complete_applies`] completes what it finds there. Nothing else has to read
//! the journals of all sessions for that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_runtime::{
    ApplyDirection, ApplyOptions, ApplyReport, DirectoryError, ForkOptions, ForkReport, PointSpec,
    RuntimeError, WorkspaceSpec,
};

use super::Runtime;
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::ports::{StoreError, WorkspaceError};
use crate::stores::make_private;

/// Name of the directory of the files that name sessions which are being applied, beside the store.
const MARKS: &str = crate::stores::side_files::APPLIES;

/// The most forks beside one directory.
const MOST_FORKS: usize = 1_000;

impl Runtime {
    /// Forks a session at a point, and returns the new one with the outside effects of its parent after that point. Files are
    /// restored into a new directory beside that of the parent.
    pub async fn fork(&self, parent: SessionId, at: PointSpec) -> Result<ForkReport, RuntimeError> {
        self.fork_with(parent, at, ForkOptions::default()).await
    }

    /// Like [`fork`](Self::fork), with options: the workspace of the fork, into which the files at the point are restored. A
    /// directory in or around that of the parent is refused. By default the fork has the current definition of its parent, with
    /// the limits of this user if it was imported.
    pub async fn fork_with(
        &self,
        parent: SessionId,
        at: PointSpec,
        mut options: ForkOptions,
    ) -> Result<ForkReport, RuntimeError> {
        if options.definition.is_none() {
            // A session whose agent is not defined by data has none.
            let definition = self.recorded_agent(parent).await.ok();
            options.definition = definition.map(|definition| definition.to_recorded());
        }
        let defined = options
            .definition
            .as_ref()
            .and_then(|definition| definition.pointer("/workspace/path")?.as_str().map(PathBuf::from));
        let own = match defined {
            Some(own) => Some(own),
            None => self.view(parent).await?.directory().map(PathBuf::from),
        };
        options.workspace = fork_directory(own, options.workspace)?;
        self.engine.fork_with(parent, at, options).await
    }

    /// Merges the changes of an isolated session into its project, or undoes the latest application of them, in the directory
    /// that they were applied to. With conflicts, nothing is written. If the process dies in between,
    /// [`complete_applies`](Self::complete_applies) completes it.
    pub async fn apply(
        &self,
        session: SessionId,
        options: ApplyOptions,
    ) -> Result<ApplyReport, RuntimeError> {
        let mark = self.mark_of(session).filter(|_| !options.dry_run);
        if let Some(mark) = &mark {
            set_mark(mark)
                .map_err(|source| WorkspaceError::Io { path: mark.display().to_string(), source })?;
        }
        let applied = self.engine.apply(session, options).await;
        if let Some(mark) = mark
            && self.view(session).await.is_ok_and(|view| view.pending_apply().is_none())
        {
            let _ = fs::remove_file(mark);
        }
        applied
    }

    /// Undoes the latest application of a session's changes, in the directory that they were applied to.
    pub async fn undo_apply(
        &self,
        session: SessionId,
        options: ApplyOptions,
    ) -> Result<ApplyReport, RuntimeError> {
        self.apply(session, ApplyOptions { direction: ApplyDirection::Undo, ..options }).await
    }

    /// Completes the applications of this store that were interrupted, and returns each with its result. Those of sessions
    /// that a process holds are left to it.
    pub async fn complete_applies(&self) -> Vec<(SessionId, Result<ApplyReport, RuntimeError>)> {
        let Some(directory) = self.store.address.directory() else { return Vec::new() };
        let mut completed = Vec::new();
        for session in interrupted_applies(directory) {
            match self.complete_marked(session).await {
                Ok(report) => completed.extend(report.map(|report| (session, Ok(report)))),
                Err(error) if error.code() == ErrorCode::SessionHeld => {}
                Err(error) => completed.push((session, Err(error))),
            }
        }
        completed
    }

    /// Completes the application of a session, if it was interrupted.
    async fn complete_marked(&self, session: SessionId) -> Result<Option<ApplyReport>, RuntimeError> {
        let view = match self.view(session).await {
            // It was removed.
            Err(error) if matches!(error.cause(), RuntimeError::SessionNotFound { .. }) => None,
            view => Some(view?),
        };
        let mut completed = None;
        if let Some(view) = view {
            // A process that holds the session may be about to apply it.
            if let Some(owner) = self.store.store.holder(session).await? {
                return Err(RuntimeError::Store(StoreError::Held { session, owner, process: None }));
            }
            if view.pending_apply().is_some() {
                completed = self.engine.complete_apply(session, None).await?;
            }
        }
        if let Some(mark) = self.mark_of(session) {
            let _ = fs::remove_file(mark);
        }
        Ok(completed)
    }

    /// Returns the file that names a session which is being applied. A store in memory has none.
    fn mark_of(&self, session: SessionId) -> Option<PathBuf> {
        Some(self.store.address.directory()?.join(MARKS).join(session.to_string()))
    }
}

/// Returns the sessions whose changes are being applied, or were when a process died, by the directory of their store.
pub fn interrupted_applies(store_directory: &Path) -> Vec<SessionId> {
    let Ok(marks) = fs::read_dir(store_directory.join(MARKS)) else { return Vec::new() };
    marks.flatten().filter_map(|mark| mark.file_name().to_str()?.parse().ok()).collect()
}

fn set_mark(mark: &Path) -> io::Result<()> {
    if let Some(directory) = mark.parent() {
        make_private(directory)?;
    }
    fs::write(mark, "")
}

/// Returns the workspace of a fork, apart from the directory of its parent.
fn fork_directory(
    own: Option<PathBuf>,
    named: Option<WorkspaceSpec>,
) -> Result<Option<WorkspaceSpec>, RuntimeError> {
    let Some(own) = own else { return Ok(named) };
    let Some(mut spec) = named else { return Ok(Some(beside(&own)?.into())) };
    // The fork works in a copy of its own, or on files in memory.
    if spec.isolated || spec.path.as_os_str().is_empty() {
        return Ok(Some(spec));
    }
    let (directory, own) = (resolve_beginning(&spec.path)?, resolve_beginning(&own)?);
    if directory.starts_with(&own) || own.starts_with(&directory) {
        return Err(DirectoryError::Overlaps { directory, own }.into());
    }
    spec.path = directory;
    Ok(Some(spec))
}

/// Returns the path of a directory beside that of a session, which does not exist yet.
fn beside(own: &Path) -> Result<PathBuf, DirectoryError> {
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or("workspace");
    let names = (1..MOST_FORKS).map(|number| format!("{name}-fork-{number}"));
    let free = own
        .parent()
        .and_then(|around| names.map(|name| around.join(name)).find(|directory| !directory.exists()));
    free.ok_or_else(|| DirectoryError::NoRoom { own: own.to_owned() })
}

/// Resolves the links of a path of which possibly only the beginning exists. A path that leaves something that does not exist is refused.
pub fn resolve_beginning(path: &Path) -> Result<PathBuf, RuntimeError> {
    let failed =
        |error: io::Error| RuntimeError::Directory { directory: path.to_owned(), cause: Arc::new(error) };
    let path = std::path::absolute(path).map_err(failed)?;
    let (mut beginning, mut rest) = (path.as_path(), Vec::new());
    loop {
        match (beginning.canonicalize(), beginning.parent(), beginning.file_name()) {
            (Ok(there), ..) => return Ok(rest.iter().rev().fold(there, |there, name| there.join(name))),
            (Err(_), Some(parent), Some(name)) => {
                rest.push(name);
                beginning = parent;
            }
            (Err(error), ..) => return Err(failed(error)),
        }
    }
}
