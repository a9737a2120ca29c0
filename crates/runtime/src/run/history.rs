//! Operations on the history of a session: rewind, undo, redo, restore, fork.
//!
//! Each opens the session with its files, claims it, and releases it, also if its caller is dropped. A session that a process
//! drives is refused with the code `session_held`, whether it is this process or another. Files are not moved while a session that
//! is driven holds the directory (`workspace_held`), or a program has an open call in it (`guard_busy`).

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{BoxFuture, FilePath, ReversalConflicts};
use serde_json::Value;

use super::opening::new_copy;
use crate::error::{Result, RuntimeError};
use crate::history::{
    FileRestoreReport, ForkReport, RewindReport, RewindScope, check_room, discarded_effects,
};
use crate::live::{KeptFiles, LiveSession, RestoredFiles, read_records};
use crate::point::PointSpec;
use crate::report::Version;
use crate::runtime::{Runtime, SessionOptions};
use crate::workspace::{OperationFiles, WorkspaceSpec};

/// Options of a rewind, an undo, a redo and a restore of single files.
#[derive(Clone, Default)]
pub struct RewindOptions {
    /// The reason of a rewind, which the log shows. The other operations record reasons of their own.
    pub reason: Option<String>,
    /// The files of the session.
    pub files: OperationFiles,
    /// Files that are left as they are, unless they are restored by name.
    pub kept: Option<KeptFiles>,
    /// What is rewound. By default, the conversation and the files that the session changed. A restore of single files only
    /// reads from it what the root stands for, and whether it is a dry run.
    pub scope: RewindScope,
}

impl RewindOptions {
    /// Creates options with this workspace.
    pub fn within(workspace: impl Into<WorkspaceSpec>) -> Self {
        Self { files: OperationFiles::within(workspace), ..Self::default() }
    }
}

/// Options of a fork.
#[derive(Clone, Default)]
pub struct ForkOptions {
    /// The workspace of the fork, which must not be that of its parent. The files at the point are restored into it. A session
    /// with files needs one. If it is [isolated](WorkspaceSpec::isolated), they are restored into a copy of it. A directory
    /// without excludes has those that the parent is recorded with.
    pub workspace: Option<WorkspaceSpec>,
    /// The definition of the agent that drives the fork. By default it is that of its parent. The directory in it is replaced
    /// by that of the fork.
    pub definition: Option<Value>,
}

impl ForkOptions {
    /// Creates options with this workspace.
    pub fn within(workspace: impl Into<WorkspaceSpec>) -> Self {
        Self { workspace: Some(workspace.into()), ..Self::default() }
    }
}

/// A step through the history of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryStep {
    /// Rewinds to a point.
    To(PointSpec),
    /// Undoes the latest rewind that is not undone.
    Undo,
    /// Repeats the rewind that was undone last.
    Redo,
    /// Undoes what one call changed in the files. The call is named by the beginning or the end of its id.
    UndoCall(String),
}

impl Runtime {
    /// Rewinds a session to a point: conversation, state, resources, and the files that
    /// the session changed. What others changed in them is merged. [`Runtime::undo`] undoes it.
    pub async fn rewind(&self, session: SessionId, to: PointSpec) -> Result<RewindReport> {
        self.rewind_with(session, to, RewindOptions::default()).await
    }

    /// Like [`rewind`](Self::rewind), with options: a reason, and files elsewhere than in the recorded directory.
    pub async fn rewind_with(
        &self,
        session: SessionId,
        to: PointSpec,
        options: RewindOptions,
    ) -> Result<RewindReport> {
        self.step(session, HistoryStep::To(to), options).await
    }

    /// Undoes the latest rewind of a session; again, the one before it.
    pub async fn undo(&self, session: SessionId) -> Result<RewindReport> {
        self.undo_with(session, RewindOptions::default()).await
    }

    /// Like [`undo`](Self::undo), with options.
    pub async fn undo_with(&self, session: SessionId, options: RewindOptions) -> Result<RewindReport> {
        self.step(session, HistoryStep::Undo, options).await
    }

    /// Repeats the rewind that was undone last. Fails with [`RuntimeError::NothingToRedo`] if none was undone, or if the
    /// session has continued since then.
    pub async fn redo(&self, session: SessionId) -> Result<RewindReport> {
        self.redo_with(session, RewindOptions::default()).await
    }

    /// Like [`redo`](Self::redo), with options.
    pub async fn redo_with(&self, session: SessionId, options: RewindOptions) -> Result<RewindReport> {
        self.step(session, HistoryStep::Redo, options).await
    }

    /// Rewinds a session, undoes or repeats a rewind, or undoes a call.
    pub fn step(
        &self,
        session: SessionId,
        step: HistoryStep,
        mut options: RewindOptions,
    ) -> BoxFuture<'_, Result<RewindReport>> {
        Box::pin(async move {
            let (reason, scope) = (options.reason.take(), options.scope);
            let travel = move |live: Arc<LiveSession>| async move {
                match step {
                    HistoryStep::To(point) => live.rewind_within(&point, reason, scope).await,
                    HistoryStep::Undo => live.undo_within(scope).await,
                    HistoryStep::Redo => live.redo_within(scope).await,
                    HistoryStep::UndoCall(name) => live.undo_call(&name, scope).await,
                }
            };
            let (report, restored) = self.travel(session, options, travel).await?;
            Ok(RewindReport { restored, ..report })
        })
    }

    /// Restores files and directories to their state at a point. A path that did not exist there is removed, and the root
    /// stands for all files that the session changed since. State and conversation stay. [`Runtime::undo`] undoes it.
    pub async fn restore(
        &self,
        session: SessionId,
        from: PointSpec,
        paths: impl IntoIterator<Item = FilePath>,
    ) -> Result<FileRestoreReport> {
        self.restore_with(session, from, paths, RewindOptions::default()).await
    }

    /// Like [`restore`](Self::restore), with options.
    pub async fn restore_with(
        &self,
        session: SessionId,
        from: PointSpec,
        paths: impl IntoIterator<Item = FilePath>,
        options: RewindOptions,
    ) -> Result<FileRestoreReport> {
        let (paths, point): (Vec<FilePath>, _) = (paths.into_iter().collect(), from.clone());
        let scope = options.scope;
        let restore = move |live: Arc<LiveSession>| async move {
            let done = live.restore_files_within(&point, paths, scope).await?;
            let changed = live.changes_of(&done).await?;
            Ok::<_, RuntimeError>((done, changed))
        };
        let ((done, changed), restored) = self.travel(session, options, restore).await?;
        Ok(FileRestoreReport::new(from, done, changed, restored))
    }

    /// Returns the restores of a session's files that were recorded since a position of its journal.
    pub async fn restores(&self, session: SessionId, since: Position) -> Result<Vec<RestoredFiles>> {
        self.read_off_thread(move |store| async move {
            let records = read_records(&*store, session, since, None).await?;
            Ok(records.iter().filter_map(|record| RestoredFiles::of(session, &record.body)).collect())
        })
        .await
    }

    /// Forks a session without files at a point, and returns the new one with the outside effects of its parent after
    /// that point.
    pub async fn fork(&self, parent: SessionId, at: PointSpec) -> Result<ForkReport> {
        self.fork_with(parent, at, ForkOptions::default()).await
    }

    /// Like [`fork`](Self::fork), with options: the workspace of the fork, into which the files at the point are restored.
    pub fn fork_with(
        &self,
        parent: SessionId,
        at: PointSpec,
        options: ForkOptions,
    ) -> BoxFuture<'_, Result<ForkReport>> {
        Box::pin(async move {
            let ForkOptions { workspace, definition } = options;
            let id = self.new_id()?;
            let runtime = self.clone();
            let effects = discarded_effects(&**self.store(), parent, &at).await?;
            let opening = async move {
                let of_parent = runtime.view(parent).await?.created().agent.clone();
                let mut options = SessionOptions { id: Some(id), ..SessionOptions::default() };
                if let Some(spec) = workspace {
                    let spec = runtime.with_recorded_excludes(spec, parent).await?;
                    let opened = runtime.open_workspace(&spec, id).await?;
                    if opened.isolation.is_none() {
                        check_room(&**runtime.store(), parent, &at, opened.workspace.clone()).await?;
                    }
                    (options.workspace, options.isolation) = (Some(opened.workspace), opened.isolation);
                }
                let directory = options.workspace.as_ref().and_then(|workspace| workspace.host_directory());
                options.definition = Some(moved_to(definition.unwrap_or(of_parent), directory));
                let copy = new_copy(&options);
                let forked = runtime.fork_session(parent, at, options).await;
                if forked.is_err() {
                    runtime.remove_copy(id, copy).await;
                }
                forked
            };
            let forked = |live: Arc<LiveSession>| async move {
                let directory = live.workspace().and_then(|workspace| workspace.host_directory());
                Ok(directory.map(|directory| directory.to_string_lossy().into_owned()))
            };
            let workspace = self.operate(id, opening, forked).await?;
            Ok(ForkReport { v: Version, session: id, fork_of: parent, workspace, effects })
        })
    }

    /// Changes the history of a session. Also returns the restores of its files that were recorded meanwhile.
    async fn travel<T, F>(
        &self,
        session: SessionId,
        options: RewindOptions,
        travel: impl FnOnce(Arc<LiveSession>) -> F + Send + 'static,
    ) -> Result<(T, Vec<RestoredFiles>)>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let RewindOptions { files, kept, scope, .. } = options;
        let travel = move |live: Arc<LiveSession>| async move {
            if scope.moves_files() && scope.conflicts == ReversalConflicts::LeaveAlone {
                live.check_neighbours().await?;
            }
            if let Some(kept) = kept {
                live.keep_files(kept);
            }
            let since = live.view().await.head();
            travel(live).await.map(|done| (done, since))
        };
        let (done, since) = self.operate_with(session, files, travel).await?;
        Ok((done, self.restores(session, since).await?))
    }
}

/// Replaces the directory in the recorded definition of an agent.
fn moved_to(mut definition: Value, directory: Option<PathBuf>) -> Value {
    let directory = directory.map(|directory| Value::from(directory.to_string_lossy()));
    match (definition.get_mut("workspace"), directory) {
        (Some(Value::Object(workspace)), Some(directory)) => {
            workspace.insert("path".to_owned(), directory);
        }
        (Some(Value::Object(workspace)), None) => {
            workspace.remove("path");
        }
        (Some(workspace @ Value::String(_)), Some(directory)) => *workspace = directory,
        _ => {}
    }
    definition
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_definition_of_a_fork_names_its_own_directory() {
        let moved = |definition: Value| moved_to(definition, Some("/other".into()));
        let named = json!({"name": "tailor", "workspace": {"path": "/shop", "isolated": true}});
        assert_eq!(moved(named.clone())["workspace"], json!({"path": "/other", "isolated": true}));
        assert_eq!(moved_to(named, None)["workspace"], json!({"isolated": true}));
        assert_eq!(moved(json!({"workspace": "/shop"}))["workspace"], "/other");
        for without in [json!({"name": "tailor"}), Value::Null] {
            assert_eq!(moved(without.clone()), without);
        }
    }
}
