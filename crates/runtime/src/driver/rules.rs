//! Pauses that approval rules decide.
//!
//! A rule may be made after a call started to wait: by a person who decided about another call, or in the
//! configuration of the user. Then the call needs no decision of its own.

use backstitch_core::approval::ApprovalRules;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, PauseReason, SessionPaused};
use backstitch_core::ports::{BoxFuture, Store};
use backstitch_core::view::JournalView;

use super::Driver;
use crate::error::RuntimeError;
use crate::live::find_view;
use crate::runner::{decision_of, rules_of};
use crate::waiting::call_arguments;

impl Driver {
    /// Returns the decision of a rule about a call that waits for approval, and the rule as its author. If the
    /// call of a child session waits, rules that decide about all of its calls let it continue.
    pub(super) async fn rule_decision(
        &self,
        pause: &SessionPaused,
    ) -> Result<Option<(Decision, String)>, RuntimeError> {
        if pause.reason != PauseReason::Approval {
            return Ok(None);
        }
        let rules = rules_of(&self.live, &self.agent.approval_rules).await?;
        if rules.is_empty() {
            return Ok(None);
        }
        let store = &**self.live.store();
        if let Some(child) = pause.session {
            let is_settled = is_settled(store, child, &rules).await?;
            return Ok(is_settled.then(|| (Decision::Continue, "approval rules".to_owned())));
        }
        self.live.flush().await?;
        let view = self.live.state().await.view.clone();
        decision_by_rules(store, &view, pause, &rules).await
    }
}

/// Returns the decision of the rules about a waiting call of this session.
async fn decision_by_rules(
    store: &dyn Store,
    view: &JournalView,
    pause: &SessionPaused,
    rules: &ApprovalRules,
) -> Result<Option<(Decision, String)>, RuntimeError> {
    let Some(call) = pause.call_id.and_then(|id| view.call(id)) else { return Ok(None) };
    let arguments = call_arguments(store, view, call.call_id).await?.current();
    let Some(arguments) = arguments.as_object() else { return Ok(None) };
    Ok(rules.judge(&call.name, arguments).as_ref().and_then(decision_of))
}

/// Whether rules decide about everything that a child session waits for.
fn is_settled<'a>(
    store: &'a dyn Store,
    session: SessionId,
    rules: &'a ApprovalRules,
) -> BoxFuture<'a, Result<bool, RuntimeError>> {
    Box::pin(async move {
        let Some(view) = find_view(store, session).await? else { return Ok(false) };
        for pause in view.pauses() {
            let is_settled = match pause.session {
                _ if pause.reason != PauseReason::Approval => false,
                Some(child) => is_settled(store, child, rules).await?,
                None => decision_by_rules(store, &view, pause, rules).await?.is_some(),
            };
            if !is_settled {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
