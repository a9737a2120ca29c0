//! Pauses, and the reasons for them.
//!
//! Approval rules decide some of them. A rule may be made after a call started to wait: by a person who decided about
//! another call, or in the configuration of the user. Then the call needs no decision of its own.

use std::sync::Arc;

use backstitch_core::approval::ApprovalRules;
use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{Decision, InboxId, PauseReason, SessionPaused};
use backstitch_core::machine::final_text;
use backstitch_core::ports::{BoxFuture, Store};
use backstitch_core::view::JournalView;

use super::Driver;
use super::content::Content;
use super::drive::LoopStep;
use crate::error::Result;
use crate::live::{LiveSession, find_view, load_view};
use crate::outcome::DriveOutcome;
use crate::runner::{decision_of, rules_of};
use crate::waiting::call_arguments;

/// Pauses a session, and returns the reason of a pause.
#[derive(Clone)]
pub(super) struct Pauses {
    live: Arc<LiveSession>,
    content: Arc<Content>,
}

impl Pauses {
    pub(super) fn new(live: Arc<LiveSession>, content: Arc<Content>) -> Self {
        Self { live, content }
    }

    /// Records a pause, which ends the loop.
    pub(super) async fn pause_for(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: impl Into<String>,
    ) -> Result<LoopStep> {
        self.pause_with(evaluation, reason, detail.into(), Vec::new()).await.map(LoopStep::End)
    }

    /// Records a pause, and removes the items from the inbox that requested it.
    pub(super) async fn pause_with(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: String,
        taken: Vec<InboxId>,
    ) -> Result<DriveOutcome> {
        if reason == PauseReason::Asked {
            // What was stopped because of the lease does not wait for a person, even if the lease is renewed now.
            self.live.check_lease()?;
        }
        let paused = SessionPaused::new(reason).with_detail(detail.clone());
        self.live
            .commit(|commit| {
                commit.push(paused).take(taken);
                Ok(())
            })
            .await?;
        let partial = match reason {
            PauseReason::Truncated => Some(self.content.final_text(evaluation).await?),
            _ => None,
        };
        Ok(DriveOutcome::Paused { evaluation, reason, call: None, detail, session: None, partial })
    }

    /// Returns the outcome for a pause. If a child session waits, the outcome names the call of that session.
    pub(super) async fn outcome_of_pause(
        &self,
        evaluation: EvaluationId,
        pause: &SessionPaused,
    ) -> DriveOutcome {
        let mut detail = pause.detail.clone().unwrap_or_default();
        let mut partial = None;
        let call = match pause.session {
            Some(child) => match load_view(&**self.live.store(), child, None).await {
                Ok(view) => {
                    let own = view.pause();
                    // If the effect of a call is unknown, the detail names its tool, even if a child session
                    // made the call.
                    if let Some(tool) = own.filter(|own| own.reason == PauseReason::EffectUnknown) {
                        detail = tool.detail.clone().unwrap_or(detail);
                    }
                    if pause.reason == PauseReason::Truncated
                        && let (Some(latest), Ok(transcript)) = (view.latest_evaluation(), view.transcript())
                    {
                        partial = Some(final_text(&transcript.inner_messages(latest.evaluation_id)));
                    }
                    own.and_then(|own| own.call_id)
                }
                Err(_) => None,
            },
            None => pause.call_id,
        };
        DriveOutcome::Paused {
            evaluation,
            reason: pause.reason,
            call,
            detail,
            session: pause.session,
            partial,
        }
    }

    /// Returns the outcome for the current pause.
    pub(super) async fn waiting(&self, evaluation: EvaluationId) -> DriveOutcome {
        let pause = self.live.view().await.pause().cloned();
        let stopped = || Arc::new(SessionPaused::new(PauseReason::Asked).with_detail("it was stopped"));
        self.outcome_of_pause(evaluation, &pause.unwrap_or_else(stopped)).await
    }
}

impl Driver {
    /// Returns the decision of a rule about a call that waits for approval, and the rule as its author. If the
    /// call of a child session waits, rules that decide about all of its calls let it continue.
    pub(super) async fn rule_decision(&self, pause: &SessionPaused) -> Result<Option<(Decision, String)>> {
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
        let view = self.live.view().await;
        decision_by_rules(store, &view, pause, &rules).await
    }
}

/// Returns the decision of the rules about a waiting call of this session.
async fn decision_by_rules(
    store: &dyn Store,
    view: &JournalView,
    pause: &SessionPaused,
    rules: &ApprovalRules,
) -> Result<Option<(Decision, String)>> {
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
) -> BoxFuture<'a, Result<bool>> {
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
