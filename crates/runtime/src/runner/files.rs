//! Holds of calls on files and resources.
//!
//! One hold covers the files and the snapshotable resources of a session. Only a call that may change files
//! costs a scan.
//!
//! A call that may write holds the files exclusively: they are captured before it, and after it either
//! captured again or restored. The coverage is determined before the call and applies until it has ended, so
//! that a rollback is exact. The lock is fair, so it is granted in the order of the calls in a turn.
//!
//! A handler may make calls through a runner of its own session. A call holds files and snapshotable
//! resources until it has ended, so a call inside of it that needs them as well would wait for itself. Two
//! calls that only read share one hold; any other such call is refused before it starts. A handler's calls
//! are recognized by its task: a call that it makes in a task which it spawned is not, and waits.
//!
//! Snapshotable resources are part of the transaction: the first guard that changes one captures the state
//! for a rollback, and a call that succeeds records the new states. A sub-agent changes resources through the
//! calls of its own session. For the parent call, all resources that were lent may have changed.

use std::sync::Arc;

use backstitch_core::journal::{CallChanges, OmittedFile, WorkspaceRevision};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    FilePath, GuardMode, GuardOutcome, RepositoryChange, RestoreReport, UncoveredPath, Workspace,
};
use backstitch_core::tool::{ResourceUse, Tool, ToolName, WorkspaceUse};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::{Attempt, ToolRunner};
use crate::agent::SubAgent;
use crate::error::Result;
use crate::live::{CapturedResource, blocking, changes_between, left_to_others, recorded, reversal_since};

/// The most omitted files of a rescue that are listed.
const MOST_LISTED: usize = 1_000;

/// A call's hold on files and snapshotable resources.
pub(super) enum Hold {
    None,
    Shared {
        guard: Arc<OwnedRwLockReadGuard<()>>,
    },
    Alone {
        /// The files, if the call may change them.
        workspace: Option<Arc<dyn Workspace>>,
        _guard: OwnedRwLockWriteGuard<()>,
    },
}

/// The files after a call that succeeded.
pub(super) struct FilesAfter {
    pub(super) files: WorkspaceRevision,
    pub(super) objects: Vec<Object>,
    /// What the call changed.
    pub(super) changes: Option<CallChanges>,
    /// Changes of what git executes.
    pub(super) repositories: Vec<RepositoryChange>,
}

/// The files that a failed call left, before they are restored.
#[derive(Default)]
pub(super) struct Rescue {
    /// `None` if they did not change.
    pub(super) files: Option<WorkspaceRevision>,
    pub(super) objects: Vec<Object>,
    /// What the call changed.
    pub(super) changes: Option<CallChanges>,
    pub(super) left_out: Vec<OmittedFile>,
    /// Paths that are not covered, or that the restore left alone. A rollback does not undo changes of them.
    pub(super) not_restored: Vec<UncoveredPath>,
    /// Whether the restore left something alone.
    pub(super) is_partial: bool,
    /// Changes of what git executes.
    pub(super) repositories: Vec<RepositoryChange>,
}

impl Hold {
    /// Waits for the hold that a call needs. Fails with the hold of the call that it runs inside of, if it would wait for
    /// that one.
    pub(super) async fn take(
        workspace: Option<&Arc<dyn Workspace>>,
        lock: &Arc<RwLock<()>>,
        (files, resources): (WorkspaceUse, ResourceUse),
    ) -> Result<Self, OuterHold> {
        let files = workspace.map_or(WorkspaceUse::None, |_| files);
        let writes = files == WorkspaceUse::Write || resources == ResourceUse::Write;
        if (files, resources) == (WorkspaceUse::None, ResourceUse::None) {
            return Ok(Self::None);
        }
        match outer_hold(lock) {
            Some(OuterHold { shared: Some(guard), .. }) if !writes => Ok(Self::Shared { guard }),
            Some(outer) => Err(outer),
            None if writes => Ok(Self::Alone {
                workspace: workspace.filter(|_| files == WorkspaceUse::Write).cloned(),
                _guard: lock.clone().write_owned().await,
            }),
            None => Ok(Self::Shared { guard: Arc::new(lock.clone().read_owned().await) }),
        }
    }

    /// Returns the guard of a hold that others may share.
    pub(super) fn shared(&self) -> Option<Arc<OwnedRwLockReadGuard<()>>> {
        match self {
            Self::Shared { guard } => Some(guard.clone()),
            Self::None | Self::Alone { .. } => None,
        }
    }

    /// Returns whether the call may change files.
    pub(super) fn writes_files(&self) -> bool {
        matches!(self, Self::Alone { workspace: Some(_), .. })
    }

    /// Returns the files that the call may change.
    fn workspace(&self) -> Option<Arc<dyn Workspace>> {
        match self {
            Self::Alone { workspace, .. } => workspace.clone(),
            Self::None | Self::Shared { .. } => None,
        }
    }

    /// Captures the files before a call that may write.
    pub(super) async fn capture(&self) -> Result<Option<(WorkspaceRevision, Vec<Object>)>> {
        let Some(workspace) = self.workspace() else { return Ok(None) };
        blocking(move || {
            let captured = workspace.capture()?;
            workspace.guard_repositories()?;
            Ok(Some(recorded(captured)))
        })
        .await
    }

    /// Captures the files after a call that may write, with the coverage from before it. What git executes is
    /// checked before that.
    pub(super) async fn capture_after(
        &self,
        before: Option<WorkspaceRevision>,
        mode: GuardMode,
    ) -> Result<Option<FilesAfter>> {
        let Some((workspace, before)) = self.workspace().zip(before) else { return Ok(None) };
        blocking(move || {
            let mut captured = workspace.capture_covering(before.coverage)?;
            // New repositories are known from the capture.
            let repositories = workspace.check_repositories(mode)?;
            if repositories.iter().any(|change| change.outcome != GuardOutcome::Kept) {
                let objects = captured.objects;
                captured = workspace.capture_covering(before.coverage)?;
                captured.objects.extend(objects);
            }
            let (files, objects) = recorded(captured);
            let changes = changes_between(&*workspace, before.root, files.root, &objects);
            Ok(Some(FilesAfter { files, objects, changes, repositories }))
        })
        .await
    }

    /// Checks what git executes after a call that was rolled back.
    pub(super) async fn check_repositories(&self) -> Result<Vec<RepositoryChange>> {
        let Some(workspace) = self.workspace() else { return Ok(Vec::new()) };
        blocking(move || workspace.check_repositories(GuardMode::Restore)).await
    }

    /// Captures the files before they are restored, if they differ from those before the call.
    pub(super) async fn rescue(&self, before: Option<WorkspaceRevision>, byte_budget: u64) -> Result<Rescue> {
        let Some((workspace, before)) = self.workspace().zip(before) else { return Ok(Rescue::default()) };
        blocking(move || {
            let mut found = workspace.rescue(before.coverage, byte_budget)?;
            let not_restored = std::mem::take(&mut found.captured.uncovered);
            if found.captured.root == before.root && found.left_out.is_empty() {
                return Ok(Rescue { not_restored, ..Rescue::default() });
            }
            let left_out = found.left_out.into_iter().take(MOST_LISTED);
            let (files, objects) = recorded(found.captured);
            let changes = changes_between(&*workspace, before.root, files.root, &objects);
            Ok(Rescue {
                files: Some(files),
                objects,
                changes,
                left_out: left_out.map(|one| OmittedFile { path: one.path, bytes: one.bytes }).collect(),
                not_restored,
                ..Rescue::default()
            })
        })
        .await
    }

    /// Restores the files, except for paths that others changed.
    pub(super) async fn restore(
        &self,
        before: WorkspaceRevision,
        of_others: Vec<FilePath>,
    ) -> Result<RestoreReport> {
        let Some(workspace) = self.workspace() else { return Ok(RestoreReport::default()) };
        blocking(move || {
            if of_others.is_empty() {
                return workspace.restore_covering(before.root, before.coverage);
            }
            let left: Vec<_> = left_to_others(&of_others).collect();
            let reversed = workspace.capture_reversed(&reversal_since(before, of_others))?;
            let (files, brought) = recorded(reversed.captured);
            let mut restored = workspace.restore_bringing(files.root, files.coverage, &brought)?;
            restored.kept.extend(left);
            Ok(restored)
        })
        .await
    }
}

tokio::task_local! {
    /// The holds of the calls that the handler of this task runs inside of, including its own.
    static OUTER: Vec<OuterHold>;
}

/// The hold of a call whose handler is running.
#[derive(Clone)]
pub(super) struct OuterHold {
    /// The lock of the session.
    lock: Arc<RwLock<()>>,
    /// The hold itself, if others may share it.
    pub(super) shared: Option<Arc<OwnedRwLockReadGuard<()>>>,
    /// The tool of the call.
    pub(super) tool: ToolName,
}

/// Returns the hold on this lock that the calling task runs inside of.
pub(super) fn outer_hold(lock: &Arc<RwLock<()>>) -> Option<OuterHold> {
    let find = |outer: &Vec<OuterHold>| outer.iter().rfind(|one| Arc::ptr_eq(&one.lock, lock)).cloned();
    OUTER.try_with(find).ok().flatten()
}

/// Makes calls inside of a handler know the hold of its call.
pub(super) fn inside<F: Future>(
    hold: &Hold,
    lock: &Arc<RwLock<()>>,
    tool: &ToolName,
    handler: F,
) -> impl Future<Output = F::Output> + use<F> {
    let mut outer = OUTER.try_with(Clone::clone).unwrap_or_default();
    if !matches!(hold, Hold::None) {
        outer.push(OuterHold { lock: lock.clone(), shared: hold.shared(), tool: tool.clone() });
    }
    OUTER.scope(outer, handler)
}

impl ToolRunner {
    /// Returns how a tool uses snapshotable resources, if the session has any.
    pub(super) fn resource_use(&self, tool: &Tool) -> ResourceUse {
        match self.live.resources.registered().next() {
            Some(_) => tool.spec.resources,
            None => ResourceUse::None,
        }
    }

    /// Captures the resources that a call has changed.
    pub(super) fn capture_resources(&self, started: &Attempt) -> Result<Vec<CapturedResource>> {
        let changed = started.resources.before_changes();
        let is_lent = self.lends_resources(started);
        let resources = self.live.resources.registered();
        let resources = resources.filter(|one| is_lent || changed.contains_key(one.name()));
        Ok(resources.map(CapturedResource::of).collect::<Result<_, _>>()?)
    }

    /// Restores the resources to their state before a call. A failure poisons the session.
    pub(super) async fn restore_resources(&self, started: &Attempt) -> Result<()> {
        if self.lends_resources(started) {
            return self.live.restore_held_resources().await;
        }
        let before = started.resources.before_changes();
        match self.live.resources.restore(&before) {
            Ok(()) => Ok(()),
            Err(error) => {
                started.end_resources(false);
                let what = format!("the resources before {} could not be restored", started.tool.name());
                Err(self.live.poison_for(&error, &what).await)
            }
        }
    }

    fn lends_resources(&self, started: &Attempt) -> bool {
        let lends = self.resource_use(&started.tool) == ResourceUse::Write;
        lends && SubAgent::behind(&started.tool).is_some()
    }
}
