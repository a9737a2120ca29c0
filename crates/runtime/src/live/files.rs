//! The files of a session, outside of calls.
//!
//! Whoever looks at them or puts them back holds them alone, as a call that writes does. Files that cannot be put back poison the
//! session: it does not go on until a person has looked.

use backstitch_core::extra::Extra;
use backstitch_core::journal::{Batch, Files, ObservationCause, WorkspaceObserved};
use backstitch_core::object::Object;
use backstitch_core::ports::{Captured, WorkspaceError};

use super::{Commit, LiveSession};
use crate::error::RuntimeError;

impl LiveSession {
    /// What the files are now; `None` when there are none.
    pub(crate) async fn look_at_files(&self) -> Result<Option<Captured>, RuntimeError> {
        let Some(workspace) = self.workspace.clone() else { return Ok(None) };
        let _alone = self.files.write().await;
        blocking(move || workspace.capture()).await.map(Some)
    }

    /// Puts the files back to what they were.
    pub(crate) async fn put_files_back(&self, files: Files) -> Result<(), RuntimeError> {
        let Some(workspace) = self.workspace.clone() else {
            return Err(RuntimeError::NoWorkspace { session: self.id });
        };
        let _alone = self.files.write().await;
        match blocking(move || workspace.restore_covering(files.root, files.coverage)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.poison(format!("the files could not be put back: {error}")).await),
        }
    }

    /// Records what the files are, with the objects that are not stored yet.
    pub(crate) async fn observe_files(
        &self,
        found: Captured,
        cause: ObservationCause,
    ) -> Result<(), RuntimeError> {
        self.commit(|_| {
            let (files, objects) = recorded(found);
            let Files { root, coverage } = files;
            let observed = WorkspaceObserved { root, coverage, cause, extra: Extra::default() };
            let mut batch = Batch::at(self.clock.now()).with(observed);
            for object in objects {
                batch.add_object(object);
            }
            Ok((Commit::now(batch, None), ()))
        })
        .await
    }

    /// Records what an interrupted call has left, before its files are put back.
    pub(crate) async fn keep_rescue(&self, files: Files, objects: Vec<Object>) -> Result<(), RuntimeError> {
        self.commit(|_| {
            let (Files { root, coverage }, cause) = (files, ObservationCause::Interrupted);
            let observed = WorkspaceObserved { root, coverage, cause, extra: Extra::default() };
            let mut batch = Batch::at(self.clock.now()).with(observed);
            for object in objects {
                batch.add_object(object);
            }
            Ok((Commit::now(batch, None), ()))
        })
        .await
    }

    /// Puts the files where the journal says that they have to be, if they still have to: after going back, or in a fork.
    pub(crate) async fn settle_files(&self) -> Result<(), RuntimeError> {
        let Some(owed) = self.state().await.view.owed_files() else { return Ok(()) };
        if self.workspace.is_none() {
            return Ok(());
        }
        self.put_files_back(owed).await?;
        let found = self.look_at_files().await?;
        if let Some(found) = found {
            self.observe_files(found, ObservationCause::Restored).await?;
        }
        Ok(())
    }
}

/// What is recorded of a capture, and what has to be stored with it.
pub(crate) fn recorded(captured: Captured) -> (Files, Vec<Object>) {
    let Captured { root, mut objects, coverage, .. } = captured;
    let files = Files { root, coverage: coverage.as_ref().map(Object::id) };
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
