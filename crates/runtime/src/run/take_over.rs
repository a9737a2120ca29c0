//! Take-overs of sessions that work in a directory.
//!
//! A session is taken over by a claim: from then on its former driver cannot write to the journal. Its directory is never
//! taken from it, because no claim stops a write to a file that has begun. Instead the former driver notices within a second
//! that it lost the session, also inside of a long call. It then stops its calls, ends their processes and releases the
//! directory, and only after that the new driver opens it. If it does not, for example because the process hangs, the
//! take-over fails and no file is touched.

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{ClaimMode, WorkspaceError};
use tokio::time::Instant;

use crate::agent::Agent;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::workspace::OpenedWorkspace;

/// Maximum time for the former driver to release the directory. It includes that for handlers that are slow to stop.
const LONGEST_HANDOVER: Duration = Duration::from_secs(15);

/// Interval at which the directory is tried again.
const TRY_EVERY: Duration = Duration::from_millis(50);

impl Runtime {
    /// Claims the session, and opens its directory once the former driver has released it.
    pub(super) async fn await_release(
        &self,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Option<OpenedWorkspace>, RuntimeError> {
        let claim = self.store().claim(session, self.owner().clone(), ClaimMode::TakeOver);
        let claim = claim.await?;
        let until = Instant::now() + LONGEST_HANDOVER;
        let opened = loop {
            let opened = self.workspace_of(agent, session).await;
            match opened.as_ref().err().and_then(|error| holder(error, session)) {
                None => break opened,
                Some(_) if Instant::now() < until => tokio::time::sleep(TRY_EVERY).await,
                Some((path, holder)) => {
                    break Err(RuntimeError::DirectoryNotReleased { session, directory: path, holder });
                }
            }
        };
        // Opening the session claims it again.
        self.store().release(claim).await?;
        opened
    }
}

/// Returns the directory and its holder, if the directory is held by this session.
pub(super) fn holder(error: &RuntimeError, session: SessionId) -> Option<(String, String)> {
    let RuntimeError::Directory { cause, .. } = error else { return None };
    match cause.downcast_ref::<WorkspaceError>() {
        Some(held @ WorkspaceError::Held { path, holder }) if held.is_held_by(session) => {
            Some((path.clone(), holder.clone()))
        }
        _ => None,
    }
}
