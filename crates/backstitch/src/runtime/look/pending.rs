//! Everything of a store that waits for a person.

use backstitch_runtime::RuntimeError;

use crate::journal::PauseReason;
use crate::ports::{IndexedStatus, SessionQuery};
use crate::report::{ListOptions, PendingSession};
use crate::runtime::Runtime;

/// The statuses of sessions that do not continue by themselves.
const PENDING: [IndexedStatus; 6] = [
    IndexedStatus::Paused,
    IndexedStatus::Poisoned,
    IndexedStatus::Interrupted,
    IndexedStatus::New,
    IndexedStatus::Stopped,
    IndexedStatus::Runnable,
];

impl Runtime {
    /// Lists the sessions that wait for a person, the oldest first: those that wait for a decision, with all decisions of their
    /// sub-agents, those that were interrupted or stopped, new forks, and those whose messages nobody has answered. A decision names
    /// the session that records it. Sessions of the queue that workers continue without a decision are left out.
    pub async fn pending_sessions(&self) -> Result<Vec<PendingSession>, RuntimeError> {
        let query = PENDING.into_iter().fold(SessionQuery::roots(), SessionQuery::with_status);
        let list = self.session_list(ListOptions::of(query)).await?;
        // A store of an older version that is only read has no queue.
        let queued = self.queued_sessions().await.unwrap_or_default();
        let mut pending = Vec::new();
        for session in list.sessions {
            let is_paused = matches!(session.status, IndexedStatus::Paused | IndexedStatus::Poisoned);
            let decisions = match is_paused || session.reason.is_some() {
                true => self.waiting(&self.view(session.session).await?).await?,
                false => Vec::new(),
            };
            let needs_nobody = decisions.iter().all(|decision| decision.reason == PauseReason::Wait);
            if needs_nobody && queued.contains(&session.session) {
                continue;
            }
            pending.push(PendingSession { session, decisions });
        }
        Ok(pending)
    }
}
