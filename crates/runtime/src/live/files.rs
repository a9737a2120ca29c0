//! The files of a session, outside of calls.
//!
//! Whoever looks at them or puts them back holds them alone, as a call that writes does. Files that cannot be put back poison the
//! session: it does not go on until a person has looked.

use std::sync::atomic::Ordering;

use backstitch_core::journal::{
    ObservationCause, Position, RecordBody, WorkspaceObserved, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{WorkspaceCapture, WorkspaceError};
use backstitch_filesystem::format::{Manifest, empty_tree};

use super::children::left_running;
use super::{LiveSession, read_records};
use crate::error::RuntimeError;
use crate::process::end_survivors;

/// How much new content is kept of files before they are restored, unless something else is said.
pub(crate) const RESCUE_BYTES: u64 = 64 * 1024 * 1024;

impl LiveSession {
    /// What the files are now; `None` when there are none.
    pub(crate) async fn look_at_files(&self) -> Result<Option<WorkspaceCapture>, RuntimeError> {
        let Some(workspace) = self.workspace.clone() else { return Ok(None) };
        let alone = self.files.clone().write_owned().await;
        // Whoever waits for it may be dropped, and then it still works with them.
        let capture = move || {
            let _alone = alone;
            workspace.capture()
        };
        blocking(capture).await.map(Some)
    }

    /// Puts the files back to what they were. `rescue` is the position at which they are recorded as found.
    pub(crate) async fn put_files_back(
        &self,
        files: WorkspaceRevision,
        rescue: Option<Position>,
    ) -> Result<(), RuntimeError> {
        let Some(workspace) = self.workspace.clone() else {
            return Err(RuntimeError::NoWorkspace { session: self.id });
        };
        let alone = self.files.clone().write_owned().await;
        let restore = move || {
            let _alone = alone;
            workspace.restore_covering(files.root, files.coverage)
        };
        match blocking(restore).await {
            Ok(restored) => self.note_restored(restored, rescue).await,
            Err(error) => Err(self.poison(format!("the files could not be put back: {error}")).await),
        }
    }

    /// Records what the files are, with the objects that are not stored yet.
    pub(crate) async fn observe_files(
        &self,
        found: WorkspaceCapture,
        cause: ObservationCause,
    ) -> Result<(), RuntimeError> {
        let (files, objects) = recorded(found);
        self.record_files(files, objects, cause).await.map(drop)
    }

    /// Records what a call has left that was interrupted or failed, before its files are put back. Gives the position.
    pub(crate) async fn keep_rescue(
        &self,
        files: WorkspaceRevision,
        objects: Vec<Object>,
    ) -> Result<Position, RuntimeError> {
        self.record_files(files, objects, ObservationCause::Interrupted).await
    }

    async fn record_files(
        &self,
        files: WorkspaceRevision,
        objects: Vec<Object>,
        cause: ObservationCause,
    ) -> Result<Position, RuntimeError> {
        self.commit(|commit| {
            let WorkspaceRevision { root, coverage } = files;
            let observed = WorkspaceObserved { coverage, ..WorkspaceObserved::new(root, cause) };
            commit.push(observed).add_objects(objects);
            Ok(commit.view().head())
        })
        .await
    }

    /// Waits for calls that were dropped, and ends what interrupted ones have left running, so that nobody else writes while files
    /// are looked at or put back.
    pub(crate) async fn end_survivors(&self) -> Result<(), RuntimeError> {
        self.abandoned.wait().await;
        let view = self.state().await.view.clone();
        let processes = left_running(self, &view).await?;
        end_survivors(processes.iter().map(|process| &**process)).await?;
        Ok(())
    }

    /// Puts the files where the journal says that they have to be, if they still have to: after going back, or in a fork.
    pub(crate) async fn settle_files(&self) -> Result<(), RuntimeError> {
        self.end_survivors().await?;
        if self.owes.load(Ordering::SeqCst) {
            self.restore_resources().await?;
        }
        let owed = self.state().await.view.owed_files();
        if let Some(owed) = owed.filter(|_| self.workspace.is_some()) {
            let rescue = self.keep_found(owed).await?;
            self.put_files_back(owed, rescue).await?;
            if let Some(found) = self.look_at_files().await? {
                self.observe_files(found, ObservationCause::Restored).await?;
            }
        }
        self.owes_nothing();
        Ok(())
    }

    /// Makes durable what is found of files that the session has to restore, and returns the position: a person may have edited
    /// them since the process ended that was to restore them. `None` when there is nothing to keep.
    async fn keep_found(&self, owed: WorkspaceRevision) -> Result<Option<Position>, RuntimeError> {
        let (found, objects) = self.rescue(owed).await?;
        let Some(root) = found.filter(|root| !holds_nothing(*root)) else { return Ok(None) };
        match self.rewound_from(root).await? {
            Some(known) => Ok(Some(known)),
            None => self.keep_rescue(WorkspaceRevision { root, ..owed }, objects).await.map(Some),
        }
    }

    /// The position of the latest rewind, if it kept these very files.
    async fn rewound_from(&self, root: WorkspaceRoot) -> Result<Option<Position>, RuntimeError> {
        let latest = self.state().await.view.lineage().rewinds().last().copied();
        let Some((at, _)) = latest else { return Ok(None) };
        let records = read_records(&*self.store, self.id, at, Some(at.next())).await?;
        let kept = match records.first().map(|record| &record.body) {
            Some(RecordBody::Rewound(rewound)) => rewound.rescue,
            _ => None,
        };
        Ok((kept == Some(root)).then_some(at))
    }

    /// What the files are before they are put back, if that is something else, and what has to be stored of it.
    pub(crate) async fn rescue(
        &self,
        files: WorkspaceRevision,
    ) -> Result<(Option<WorkspaceRoot>, Vec<Object>), RuntimeError> {
        let Some(workspace) = self.workspace().cloned() else { return Ok((None, Vec::new())) };
        let found = blocking(move || workspace.rescue(files.coverage, RESCUE_BYTES)).await?;
        if found.captured.root == files.root && found.left_out.is_empty() {
            return Ok((None, Vec::new()));
        }
        let (rescued, objects) = recorded(found.captured);
        Ok((Some(rescued.root), objects))
    }

    /// Says that files and resources are what the journal says that they are.
    pub(crate) fn owes_nothing(&self) {
        self.owes.store(false, Ordering::SeqCst);
    }

    /// Makes the files and the journal agree, as long as no call is writing them: files that are gone altogether are brought back,
    /// and what else changed meanwhile is noted.
    pub(crate) async fn take_up_files(&self) -> Result<(), RuntimeError> {
        let Some(found) = self.bring_back_files().await? else { return Ok(()) };
        self.note_files(found).await
    }

    /// Notes what the files are, and leaves them so, whatever that is.
    pub(crate) async fn adopt_files(&self) -> Result<(), RuntimeError> {
        match self.look_at_files().await? {
            Some(found) => self.note_files(found).await,
            None => Ok(()),
        }
    }

    async fn note_files(&self, found: WorkspaceCapture) -> Result<(), RuntimeError> {
        let known = self.state().await.view.files();
        match known {
            Some(known) if known.root == found.root => Ok(()),
            Some(_) => self.observe_files(found, ObservationCause::Drifted).await,
            None => self.observe_files(found, ObservationCause::Started).await,
        }
    }

    /// Puts the files back to what is known of them, when they are something else. As found they are kept.
    pub(crate) async fn undo_drift(&self) -> Result<(), RuntimeError> {
        let Some(known) = self.state().await.view.files() else { return Ok(()) };
        let (rescue, objects) = self.rescue(known).await?;
        let Some(root) = rescue else { return Ok(()) };
        let rescue = self.keep_rescue(WorkspaceRevision { root, ..known }, objects).await?;
        self.put_files_back(known, Some(rescue)).await?;
        match self.look_at_files().await? {
            Some(found) => self.observe_files(found, ObservationCause::Restored).await,
            None => Ok(()),
        }
    }

    /// Brings back files that are gone altogether: those of a directory that was emptied, or of the memory of a process that has
    /// ended. Gives what the files are then.
    pub(crate) async fn bring_back_files(&self) -> Result<Option<WorkspaceCapture>, RuntimeError> {
        let Some(found) = self.look_at_files().await? else { return Ok(None) };
        let known = self.state().await.view.files();
        let Some(known) = known.filter(|known| holds_nothing(found.root) && known.root != found.root) else {
            return Ok(Some(found));
        };
        self.put_files_back(known, None).await?;
        let found = self.look_at_files().await?;
        if let Some(found) = found.clone() {
            self.observe_files(found, ObservationCause::Restored).await?;
        }
        Ok(found)
    }

    /// The files as a call has left them that nobody interrupted any more: as they are, unless they are gone altogether. Then they
    /// are put back to before the call, since nothing else is left of them.
    pub(crate) async fn files_left_by(
        &self,
        before: WorkspaceRevision,
    ) -> Result<Option<WorkspaceCapture>, RuntimeError> {
        match self.look_at_files().await? {
            Some(found) if holds_nothing(found.root) && found.root != before.root => {
                self.put_files_back(before, None).await?;
                self.look_at_files().await
            }
            found => Ok(found),
        }
    }
}

/// Whether a root is that of no files at all.
fn holds_nothing(root: WorkspaceRoot) -> bool {
    let no_tree = empty_tree().id() == root.tree;
    no_tree && Manifest::default().to_object().id() == root.manifest
}

/// What is recorded of a capture, and what has to be stored with it.
pub(crate) fn recorded(captured: WorkspaceCapture) -> (WorkspaceRevision, Vec<Object>) {
    let WorkspaceCapture { root, mut objects, coverage, .. } = captured;
    let files = WorkspaceRevision { root, coverage: coverage.as_ref().map(Object::id) };
    objects.extend(coverage);
    (files, objects)
}

/// Work with files, where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, RuntimeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(RuntimeError::Workspace),
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(_) => Err(RuntimeError::ShuttingDown),
    }
}
