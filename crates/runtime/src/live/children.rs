//! What the journals of sessions say that work for calls of another session.
//!
//! Such a session is named by the intent of its call, so its caller finds it without holding a claim to it. A session that was named
//! and never created has done nothing: a crash came before it.

use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{
    BudgetCharged, InboxKind, Origin, PauseReason, Position, ProcessStarted, RecordBody,
};
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use backstitch_core::view::{Call, JournalView};

use super::{LiveSession, SessionEnvironment, load_view, read_records};
use crate::error::RuntimeError;

impl LiveSession {
    /// What a session that works for a call of this one lives with: the same store, and as much of the files and resources as
    /// the call uses.
    pub(crate) fn lent(&self, workspace: WorkspaceUse, resources: ResourceUse) -> SessionEnvironment {
        SessionEnvironment {
            store: self.store().clone(),
            clock: self.clock().clone(),
            owner: self.lease().owner.clone(),
            resources: self.resources().clone().lent(resources),
            workspace: self.workspace().filter(|_| workspace != WorkspaceUse::None).cloned(),
        }
    }
}

/// Whether a session that works for a call has looked at the files that it was lent.
pub(crate) async fn has_files(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    match load_view(&**parent.store(), session, None).await {
        Ok(view) => Ok(view.files().is_some()),
        Err(RuntimeError::SessionNotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is nothing to take back of what a session did for a call.
pub(crate) async fn is_withdrawn(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    match load_view(&**parent.store(), session, None).await {
        Ok(view) => Ok(view.latest_evaluation().is_none()),
        Err(RuntimeError::SessionNotFound { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether a session that works for a call waits for a decision that nobody has made yet.
pub(crate) async fn still_waits(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    let store = &**parent.store();
    let view = load_view(store, session, None).await?;
    // What only has to be resumed goes on with its caller.
    let is_decided = |reason| matches!(reason, PauseReason::Asked | PauseReason::Truncated);
    if view.pauses().all(|pause| is_decided(pause.reason)) {
        return Ok(false);
    }
    let waiting = store.inbox(session).await.map_err(RuntimeError::Store)?;
    Ok(!waiting.iter().any(|(_, item)| item.kind == InboxKind::Resolution))
}

/// What a session that works for a call has spent, where the call ends without it.
pub(crate) async fn spent_for(
    parent: &LiveSession,
    call: &Call,
) -> Result<Option<BudgetCharged>, RuntimeError> {
    let Some(child) = call.session() else { return Ok(None) };
    let amounts = match load_view(&**parent.store(), child, None).await {
        Ok(view) => view.ledger().committed(),
        Err(RuntimeError::SessionNotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((amounts != Amounts::ZERO).then(|| BudgetCharged::new(None, amounts)))
}

/// How many calls lie between a session and one that a person asked.
pub(crate) async fn depth(live: &LiveSession) -> Result<u32, RuntimeError> {
    let mut origin = live.state().await.view.created().origin.clone();
    let (mut depth, mut seen) = (0, Vec::new());
    while let Some(parent) = origin.parent().filter(|parent| !seen.contains(parent)) {
        depth += u32::from(matches!(origin, Origin::Call { .. }));
        seen.push(parent);
        let next = Some(Position::START.next());
        let first = read_records(&**live.store(), parent, Position::START, next).await?;
        origin = match first.first().map(|record| &record.body) {
            Some(RecordBody::SessionCreated(created)) => created.origin.clone(),
            _ => Origin::Root,
        };
    }
    Ok(depth)
}

/// The processes that calls of a session, and of those that work for them, may have left running.
pub(crate) async fn left_running(
    live: &LiveSession,
    view: &JournalView,
) -> Result<Vec<Arc<ProcessStarted>>, RuntimeError> {
    let mut processes = Vec::new();
    let mut views = vec![view.clone()];
    while let Some(view) = views.pop() {
        // In a fork the calls of its parent are the parent's, which may well be running.
        let own = view.calls().filter(|call| {
            let session = call.intent.as_ref().map(|intent| intent.point.session);
            call.is_open() && session == Some(view.session_id())
        });
        for call in own {
            processes.extend(call.processes.iter().cloned());
            let Some(child) = call.session() else { continue };
            match load_view(&**live.store(), child, None).await {
                Ok(child) => views.push(child),
                Err(RuntimeError::SessionNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(processes)
}
