//! The files of a session, outside of calls.
//!
//! Captures and restores hold the files exclusively, as a call that writes does. If the files cannot be
//! restored, the session is poisoned: it does not continue until a person decides.

use std::sync::Arc;

use backstitch_core::journal::{
    CallChanges, ObservationCause, Position, RecordBody, SessionRewound, WorkspaceObserved,
    WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    AnyValue, RestoreReport, UncoveredPath, Workspace, WorkspaceCapture, WorkspaceError,
};
use backstitch_core::view::JournalView;
use backstitch_filesystem::format::{Manifest, empty_tree};

use super::children::left_running;
use super::{LiveSession, read_records};
use crate::error::{Result, RuntimeError};
use crate::fence::{joined, off_thread};
use crate::process::end_survivors;

/// The most bytes of new content that are saved of files before they are restored.
pub(crate) const RESCUE_BYTES: u64 = 64 * 1024 * 1024;

impl LiveSession {
    /// The directory of the files, where the journal names another one or none.
    pub(crate) fn new_directory(&self, view: &JournalView) -> Option<String> {
        let directory = self.workspace.as_ref()?.host_directory()?;
        let directory = directory.to_string_lossy();
        (view.directory() != Some(&*directory)).then(|| directory.into_owned())
    }

    /// The patterns that the files are open without, where the journal names others.
    pub(crate) fn new_excludes(&self, view: &JournalView) -> Option<Vec<String>> {
        let excludes = self.workspace.as_ref()?.excludes();
        (view.excludes() != excludes).then_some(excludes)
    }

    /// Captures the files. `None` without a workspace.
    pub(crate) async fn capture_files(&self) -> Result<Option<WorkspaceCapture>> {
        let Some(workspace) = self.workspace.clone() else { return Ok(None) };
        let alone = self.files.clone().write_owned().await;
        // The capture continues if its caller is dropped, and keeps its hold on the files.
        let capture = move || {
            let _alone = alone;
            workspace.capture()
        };
        blocking(capture).await.map(Some)
    }

    /// Returns what changed between two states of the files. `brought` are objects that may not be stored yet.
    pub(crate) async fn changes_between(
        &self,
        from: Option<WorkspaceRoot>,
        to: Option<WorkspaceRoot>,
        brought: &[Object],
    ) -> Result<Option<CallChanges>> {
        let (Some(workspace), Some((from, to))) = (self.workspace.clone(), from.zip(to)) else {
            return Ok(None);
        };
        let brought = brought.to_vec();
        blocking(move || Ok(changes_between(&*workspace, from, to, &brought))).await
    }

    /// Restores the files. `rescue` is the position at which their current state is recorded.
    pub(crate) async fn restore_revision(
        &self,
        files: WorkspaceRevision,
        rescue: Option<Position>,
    ) -> Result<()> {
        self.restore_leaving(files, Vec::new(), rescue, Vec::new()).await
    }

    /// Does the same with objects that are not stored. `left` are paths that the files leave to others.
    pub(super) async fn restore_leaving(
        &self,
        files: WorkspaceRevision,
        brought: Vec<Object>,
        rescue: Option<Position>,
        left: Vec<UncoveredPath>,
    ) -> Result<()> {
        let restore =
            move |workspace: &dyn Workspace| workspace.restore_bringing(files.root, files.coverage, &brought);
        self.run_restore(restore, rescue, left).await
    }

    /// Restores the files where they differ from `found`, which is recorded at the position `rescue`. What others have changed since
    /// they were found stays, so nothing is lost that is not recorded.
    pub(crate) async fn restore_since(
        &self,
        found: WorkspaceRoot,
        files: WorkspaceRevision,
        rescue: Option<Position>,
    ) -> Result<()> {
        let restore = move |workspace: &dyn Workspace| {
            match workspace.restore_changes(found, files.root, files.coverage, &[]) {
                // Retention has removed the files that were found.
                Err(WorkspaceError::MissingObject { .. }) => {
                    workspace.restore_covering(files.root, files.coverage)
                }
                restored => restored,
            }
        };
        self.run_restore(restore, rescue, Vec::new()).await
    }

    async fn run_restore(
        &self,
        restore: impl FnOnce(&dyn Workspace) -> Result<RestoreReport, WorkspaceError> + Send + 'static,
        rescue: Option<Position>,
        left: Vec<UncoveredPath>,
    ) -> Result<()> {
        let Some(workspace) = self.workspace.clone() else {
            return Err(RuntimeError::NoWorkspace { session: self.id });
        };
        let alone = self.files.clone().write_owned().await;
        self.check_lease()?;
        let restore = move || {
            let _alone = alone;
            restore(&*workspace)
        };
        match blocking(restore).await {
            Ok(mut restored) => {
                restored.kept.extend(left);
                self.note_restored(restored, rescue).await
            }
            Err(error) => {
                let reason = format!("the files could not be restored: {error}");
                Err(self.fail_files(error, reason).await)
            }
        }
    }

    /// Records the state of the files, with the objects that are not stored yet.
    pub(crate) async fn observe_files(&self, found: WorkspaceCapture, cause: ObservationCause) -> Result<()> {
        let (files, objects) = recorded(found);
        self.record_files(observation(files, cause), objects).await.map(drop)
    }

    /// Records the files that an interrupted or failed call has left, before they are restored. Returns the
    /// position.
    pub(crate) async fn keep_rescue(
        &self,
        files: WorkspaceRevision,
        objects: Vec<Object>,
    ) -> Result<Position> {
        self.record_files(observation(files, ObservationCause::Interrupted), objects).await
    }

    /// Saves the current files before those of an interrupted call are restored to `before`.
    pub(super) async fn keep_interrupted(
        &self,
        files: WorkspaceRevision,
        objects: Vec<Object>,
        before: WorkspaceRevision,
    ) -> Result<Position> {
        let observed = observation(files, ObservationCause::Interrupted);
        self.record_files(WorkspaceObserved { restored: Some(before.root), ..observed }, objects).await
    }

    async fn record_files(&self, observed: WorkspaceObserved, objects: Vec<Object>) -> Result<Position> {
        self.commit(|commit| {
            commit.push(observed).add_objects(objects);
            Ok(commit.view().head())
        })
        .await
    }

    /// Waits for calls that were dropped, and ends processes that interrupted calls have left, so that
    /// nothing else writes while files are captured or restored.
    pub(crate) async fn end_survivors(&self) -> Result<()> {
        self.abandoned.wait().await;
        let view = self.view().await;
        let processes = left_running(self, &view).await?;
        end_survivors(processes.iter().map(|process| &**process)).await?;
        Ok(())
    }

    /// Restores the files to the state in the journal, if that is still owed after a rewind or in a fork.
    pub(crate) async fn settle_files(&self) -> Result<()> {
        self.end_survivors().await?;
        if self.condition().needs_restore() {
            self.restore_resources().await?;
        }
        let owed = self.view().await.owed_files();
        if let Some(owed) = owed.filter(|_| self.workspace.is_some()) {
            let rescue = self.keep_found(owed).await?;
            match self.owed_since(owed).await? {
                Some(found) => self.restore_since(found, owed, rescue).await?,
                None => self.restore_revision(owed, rescue).await?,
            }
            if let Some(found) = self.capture_files().await? {
                self.observe_files(found, ObservationCause::Restored).await?;
            }
        }
        self.condition().settle_files();
        Ok(())
    }

    /// Saves the current files before the session restores those that it owes, and returns the position: a
    /// person may have edited them since the process ended that was to restore them. `None` if there is
    /// nothing to save.
    async fn keep_found(&self, owed: WorkspaceRevision) -> Result<Option<Position>> {
        let (found, objects) = self.rescue(owed, u64::MAX).await?;
        let Some(root) = found.filter(|root| !holds_nothing(*root)) else { return Ok(None) };
        match self.rewound_from(root).await? {
            Some(known) => Ok(Some(known)),
            None => self.keep_rescue(WorkspaceRevision { root, ..owed }, objects).await.map(Some),
        }
    }

    /// Returns the files that an interrupted rewind has found, so that what others changed since stays. `None` in a fork, and where
    /// no files are left: there all files are restored.
    async fn owed_since(&self, owed: WorkspaceRevision) -> Result<Option<WorkspaceRoot>> {
        let rewound = self.latest_rewind().await?.map(|(_, rewound)| rewound);
        let rewound = rewound.filter(|rewound| rewound.root == Some(owed.root));
        let Some(rewound) = rewound else { return Ok(None) };
        let is_gone = self.capture_files().await?.is_some_and(|now| holds_nothing(now.root));
        Ok(Some(rewound.rescue.unwrap_or(owed.root)).filter(|_| !is_gone))
    }

    /// Returns the position of the latest rewind, if it saved exactly these files.
    async fn rewound_from(&self, root: WorkspaceRoot) -> Result<Option<Position>> {
        let latest = self.latest_rewind().await?;
        Ok(latest.filter(|(_, rewound)| rewound.rescue == Some(root)).map(|(at, _)| at))
    }

    /// Returns the latest rewind or restore of files, and its position.
    async fn latest_rewind(&self) -> Result<Option<(Position, Arc<SessionRewound>)>> {
        let latest = self.view().await.lineage().rewinds().last().copied();
        let Some((at, _)) = latest else { return Ok(None) };
        let records = read_records(&*self.store, self.id, at, Some(at.next())).await?;
        Ok(match records.first().map(|record| &record.body) {
            Some(RecordBody::Rewound(rewound)) => Some((at, rewound.clone())),
            _ => None,
        })
    }

    /// Captures the files before they are restored. Returns their root if it differs, and the objects to
    /// store for it.
    pub(crate) async fn rescue(
        &self,
        files: WorkspaceRevision,
        byte_budget: u64,
    ) -> Result<(Option<WorkspaceRoot>, Vec<Object>)> {
        let Some(workspace) = self.workspace().cloned() else { return Ok((None, Vec::new())) };
        let found = blocking(move || workspace.rescue(files.coverage, byte_budget)).await?;
        if found.captured.root == files.root && found.left_out.is_empty() {
            return Ok((None, Vec::new()));
        }
        let (rescued, objects) = recorded(found.captured);
        Ok((Some(rescued.root), objects))
    }

    /// Reconciles the files with the journal, if no call is writing them: an emptied directory is restored,
    /// and other changes since the last observation are recorded.
    pub(crate) async fn reconcile_files(&self) -> Result<()> {
        let Some(found) = self.restore_missing_files().await? else { return Ok(()) };
        self.note_files(found).await
    }

    /// Records the state of the files, and leaves them as they are.
    pub(crate) async fn adopt_files(&self) -> Result<()> {
        match self.capture_files().await? {
            Some(found) => self.note_files(found).await,
            None => Ok(()),
        }
    }

    async fn note_files(&self, found: WorkspaceCapture) -> Result<()> {
        let known = self.view().await.files();
        match known {
            Some(known) if known.root == found.root => Ok(()),
            Some(_) => self.observe_files(found, ObservationCause::Drifted).await,
            None => self.observe_files(found, ObservationCause::Started).await,
        }
    }

    /// Restores the files to their last recorded state, if they differ. Their state before that is saved.
    pub(crate) async fn undo_drift(&self) -> Result<()> {
        let Some(known) = self.view().await.files() else { return Ok(()) };
        let (rescue, objects) = self.rescue(known, u64::MAX).await?;
        let Some(root) = rescue else { return Ok(()) };
        let rescue = self.keep_rescue(WorkspaceRevision { root, ..known }, objects).await?;
        self.restore_since(root, known, Some(rescue)).await?;
        match self.capture_files().await? {
            Some(found) => self.observe_files(found, ObservationCause::Restored).await,
            None => Ok(()),
        }
    }

    /// Restores files that are missing altogether: those of a directory that was emptied, or of the memory of
    /// a process that has ended. Returns the files after that.
    pub(crate) async fn restore_missing_files(&self) -> Result<Option<WorkspaceCapture>> {
        let Some(found) = self.capture_files().await? else { return Ok(None) };
        let known = self.view().await.files();
        let Some(known) = known.filter(|known| holds_nothing(found.root) && known.root != found.root) else {
            return Ok(Some(found));
        };
        self.restore_revision(known, None).await?;
        let found = self.capture_files().await?;
        if let Some(found) = found.clone() {
            self.observe_files(found, ObservationCause::Restored).await?;
        }
        Ok(found)
    }

    /// Returns the files that a call has left: the current ones, unless all are missing. Then they are
    /// restored to their state before the call, since nothing else is left of them.
    pub(crate) async fn files_left_by(&self, before: WorkspaceRevision) -> Result<Option<WorkspaceCapture>> {
        match self.capture_files().await? {
            Some(found) if holds_nothing(found.root) && found.root != before.root => {
                self.restore_revision(before, None).await?;
                self.capture_files().await
            }
            found => Ok(found),
        }
    }
}

/// True for the root of an empty workspace.
pub(super) fn holds_nothing(root: WorkspaceRoot) -> bool {
    let no_tree = empty_tree().id() == root.tree;
    no_tree && Manifest::default().to_object().id() == root.manifest
}

fn observation(files: WorkspaceRevision, cause: ObservationCause) -> WorkspaceObserved {
    WorkspaceObserved { coverage: files.coverage, ..WorkspaceObserved::new(files.root, cause) }
}

/// Returns the revision to record for a capture, and the objects to store with it.
pub(crate) fn recorded(captured: WorkspaceCapture) -> (WorkspaceRevision, Vec<Object>) {
    let WorkspaceCapture { root, mut objects, coverage, .. } = captured;
    let files = WorkspaceRevision { root, coverage: coverage.as_ref().map(Object::id) };
    objects.extend(coverage);
    (files, objects)
}

/// Returns what changed between two states, as the end of a call records it; `None` if nothing did. Changes that cannot be
/// compared are left out, because they only repeat what the roots say.
pub(crate) fn changes_between(
    workspace: &dyn Workspace,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
    brought: &[Object],
) -> Option<CallChanges> {
    if from == to {
        return None;
    }
    let compared = workspace.changes(from, to, brought);
    compared.inspect_err(|error| tracing::warn!(%error, "the changes of a call could not be listed")).ok()
}

/// Runs work with files on a thread where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T> {
    let done = joined(off_thread(AnyValue::of_work(work)).await).ok_or(RuntimeError::ShuttingDown)?;
    done.into_value::<Result<T, WorkspaceError>>().map_err(RuntimeError::Workspace)
}
