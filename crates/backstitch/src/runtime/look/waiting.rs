//! What a paused session waits for.

use backstitch_runtime::{RuntimeError, call_arguments, load_view};

use crate::journal::{PauseReason, SessionPaused};
use crate::ports::{BoxFuture, Store};
use crate::report::PendingDecision;
use crate::runtime::Runtime;
use crate::view::JournalView;

impl Runtime {
    /// Lists the decisions that a session waits for, including those of child sessions.
    pub async fn waiting(&self, view: &JournalView) -> Result<Vec<PendingDecision>, RuntimeError> {
        pending_decisions(&*self.store.store, view).await
    }
}

/// Lists the decisions that a session of a store waits for, including those of child sessions.
pub fn pending_decisions<'a>(
    store: &'a dyn Store,
    view: &'a JournalView,
) -> BoxFuture<'a, Result<Vec<PendingDecision>, RuntimeError>> {
    Box::pin(async move {
        let mut all = Vec::new();
        for pause in view.pauses() {
            if let Some(waits) = pause.session {
                // The pause names the session that waits, at any depth. Calls of the sessions between wait too.
                let child = pause.call_id.and_then(|call| view.call(call)?.session()).unwrap_or(waits);
                let below = load_view(store, child, None).await?;
                let below = pending_decisions(store, &below).await?;
                if !below.is_empty() {
                    all.extend(below);
                    continue;
                }
            }
            all.push(decision_about(store, view, pause).await?);
        }
        // A poisoned session has to be repaired before anything else can be decided.
        all.sort_by_key(|one| one.reason != PauseReason::Poisoned);
        Ok(all)
    })
}

/// Returns the decision that a pause is about, with all arguments of its call.
pub(super) async fn decision_about(
    store: &dyn Store,
    view: &JournalView,
    pause: &SessionPaused,
) -> Result<PendingDecision, RuntimeError> {
    let mut decision = PendingDecision {
        session: view.session_id(),
        reason: pause.reason,
        detail: pause.detail.clone().unwrap_or_default(),
        call: None,
        name: None,
        arguments: None,
        has_offer: pause.offer.is_some(),
        files_changed: pause.files_changed,
        files: pause.files.clone(),
    };
    if let Some(call) = pause.call_id.and_then(|id| view.call(id)) {
        let arguments = call_arguments(store, view, call.call_id).await?.current();
        (decision.call, decision.name) = (Some(call.call_id), Some(call.name.clone()));
        decision.arguments = Some(arguments).filter(|arguments| !arguments.is_null());
    }
    Ok(decision)
}
