//! Files around a call.
//!
//! A call that may write is alone with the files: it is captured before, and after it either captured again or put back. The
//! lock is granted in the order in which it is asked for, which is the order of the calls in a turn.

use std::sync::Arc;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::Object;
use backstitch_core::ports::{Captured, Workspace, WorkspaceError};
use backstitch_core::tool::WorkspaceUse;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::error::RuntimeError;

/// A call's hold on the files.
pub(super) enum Hold {
    None,
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { workspace: Arc<dyn Workspace>, _guard: OwnedRwLockWriteGuard<()> },
}

/// The files as a failed call left them, before they were put back.
pub(super) struct Rescue {
    pub(super) root: WorkspaceRoot,
    pub(super) objects: Vec<Object>,
}

impl Hold {
    pub(super) async fn take(
        workspace: Option<&Arc<dyn Workspace>>,
        lock: &Arc<RwLock<()>>,
        wanted: WorkspaceUse,
    ) -> Self {
        match (workspace, wanted) {
            (None, _) | (_, WorkspaceUse::None) => Self::None,
            (Some(_), WorkspaceUse::Read) => Self::Shared { _guard: lock.clone().read_owned().await },
            (Some(workspace), WorkspaceUse::Write) => {
                Self::Alone { workspace: workspace.clone(), _guard: lock.clone().write_owned().await }
            }
        }
    }

    /// The files as they are, for a call that may write.
    pub(super) async fn capture(&self) -> Result<Option<Captured>, RuntimeError> {
        let Self::Alone { workspace, .. } = self else { return Ok(None) };
        let workspace = workspace.clone();
        blocking(move || workspace.capture()).await.map(Some)
    }

    /// Puts the files back, and gives what they were like if that was different.
    pub(super) async fn put_back(&self, root: WorkspaceRoot) -> Result<Option<Rescue>, RuntimeError> {
        let Self::Alone { workspace, .. } = self else { return Ok(None) };
        let workspace = workspace.clone();
        blocking(move || {
            let found = workspace.capture()?;
            if found.root == root {
                return Ok(None);
            }
            workspace.restore(root)?;
            Ok(Some(Rescue { root: found.root, objects: found.objects }))
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, RuntimeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(RuntimeError::Workspace),
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(_) => Err(RuntimeError::ShuttingDown),
    }
}
