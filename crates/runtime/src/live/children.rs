//! Child sessions, as their journals describe them.
//!
//! The intent of a call names its child session, so the parent finds it without a claim to it. If a child
//! session is named but does not exist, the process crashed before it was created.

use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{
    BudgetCharged, InboxKind, Origin, PauseReason, ProcessStarted, WorkspaceRevision,
};
use backstitch_core::ports::Store;
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use backstitch_core::view::{Call, JournalView};

use super::{LiveSession, SessionEnvironment, creation_of, find_view, load_view, open_waits};
use crate::error::{Result, RuntimeError};

impl LiveSession {
    /// Returns the environment of a child session: the same store, and as much of the files and resources as
    /// the call uses.
    pub(crate) fn lent(&self, workspace: WorkspaceUse, resources: ResourceUse) -> SessionEnvironment {
        SessionEnvironment {
            store: self.store().clone(),
            clock: self.clock().clone(),
            owner: self.claim().owner.clone(),
            resources: self.resources.clone().lent(resources),
            workspace: self.workspace().filter(|_| workspace != WorkspaceUse::None).cloned(),
            snapshot_interval: self.snapshots.interval,
        }
    }
}

/// True if a child session has observed the files that it was lent.
pub(crate) async fn has_files(parent: &LiveSession, session: SessionId) -> Result<bool> {
    Ok(find_view(&**parent.store(), session).await?.is_some_and(|view| view.files().is_some()))
}

/// True if there is nothing to roll back in a child session.
pub(crate) async fn is_withdrawn(parent: &LiveSession, session: SessionId) -> Result<bool> {
    Ok(find_view(&**parent.store(), session).await?.is_none_or(|view| view.latest_evaluation().is_none()))
}

/// True if a child session waits for a decision that was not sent yet.
pub(crate) async fn still_waits(parent: &LiveSession, session: SessionId) -> Result<bool> {
    let store = &**parent.store();
    // If it was removed, no decision can come from it.
    let Some(view) = find_view(store, session).await? else { return Ok(false) };
    // These pauses end when the parent is resumed.
    let is_decided = |reason| matches!(reason, PauseReason::Asked | PauseReason::Truncated);
    if view.pauses().all(|pause| is_decided(pause.reason)) {
        return Ok(false);
    }
    // So do waits for what has come by now.
    if let Some(open) = open_waits(store, &view, parent.clock().now()).await? {
        return Ok(!(open.times.is_empty() && open.signals.is_empty()));
    }
    let waiting = store.inbox(session).await?;
    Ok(!waiting.iter().any(|(_, item)| item.kind == InboxKind::Resolution))
}

/// Returns what a child session has spent, for a call that ends without its result.
pub(crate) async fn charge_for(parent: &LiveSession, call: &Call) -> Result<Option<BudgetCharged>> {
    let Some(child) = call.session() else { return Ok(None) };
    let Some(view) = find_view(&**parent.store(), child).await? else { return Ok(None) };
    let amounts = view.ledger().committed();
    Ok((amounts != Amounts::ZERO).then(|| BudgetCharged::new(None, amounts)))
}

/// Returns the files that the directory of a session held last, as far as journals say. If a sub-agent of an open
/// call works in it, these are the files of the sub-agent. `None` if the session has no files.
///
/// A session that was moved to another machine needs these files to continue there.
pub async fn latest_files(store: &dyn Store, session: SessionId) -> Result<Option<WorkspaceRevision>> {
    Ok(working_view(store, load_view(store, session, None).await?).await?.files())
}

/// Returns the files that a session continues with in a directory that holds nothing else: those before a call that was interrupted
/// while it wrote, or the latest ones. `None` if the session has no files.
pub(crate) async fn files_to_continue(
    store: &dyn Store,
    view: JournalView,
) -> Result<Option<WorkspaceRevision>> {
    let view = working_view(store, view).await?;
    let open = view.calls().filter(|call| call.is_open() && !call.files_restored);
    let before = open.filter_map(|call| {
        let intent = call.intent.as_ref().filter(|intent| intent.point.session == view.session_id())?;
        Some((intent.point.position, WorkspaceRevision::of(intent.record.root, intent.record.coverage)?))
    });
    let before = before.max_by_key(|(position, _)| *position).map(|(_, before)| before);
    Ok(view.owed_files().or(before).or(view.files()))
}

/// Returns the view of the session that works in the directory of another one: its own, or that of a sub-agent of an open call.
async fn working_view(store: &dyn Store, mut view: JournalView) -> Result<JournalView> {
    loop {
        let writes = |call: &&Call| call.intent.as_ref().is_some_and(|intent| intent.record.root.is_some());
        let child = view.pending_calls().filter(writes).filter_map(Call::session).last();
        let Some(child) = child else { return Ok(view) };
        match find_view(store, child).await? {
            Some(below) if below.files().is_some() => view = below,
            _ => return Ok(view),
        }
    }
}

/// Counts the calls between a session and its root. A parent that is not in this store ends the count: a fork of
/// a sub-agent may have been moved without it.
pub(crate) async fn depth(live: &LiveSession) -> Result<u32> {
    let mut origin = live.view().await.created().origin.clone();
    let (mut depth, mut seen) = (0, Vec::new());
    while let Some(parent) = origin.parent().filter(|parent| !seen.contains(parent)) {
        depth += u32::from(matches!(origin, Origin::Call { .. }));
        seen.push(parent);
        origin = match creation_of(&**live.store(), parent).await {
            Err(RuntimeError::SessionNotFound { .. }) => Origin::Root,
            created => created?.origin.clone(),
        };
    }
    Ok(depth)
}

/// Returns the processes that calls of a session and of its child sessions may have left running.
pub(crate) async fn left_running(live: &LiveSession, view: &JournalView) -> Result<Vec<Arc<ProcessStarted>>> {
    let mut processes = Vec::new();
    let mut views = vec![view.clone()];
    while let Some(view) = views.pop() {
        // The calls of a fork's parent belong to the parent, which may well be running.
        let own = view.calls().filter(|call| {
            let session = call.intent.as_ref().map(|intent| intent.point.session);
            call.is_open() && session == Some(view.session_id())
        });
        for call in own {
            processes.extend(call.processes.iter().cloned());
            let Some(child) = call.session() else { continue };
            views.extend(find_view(&**live.store(), child).await?);
        }
    }
    Ok(processes)
}
