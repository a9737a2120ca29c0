//! Pauses, and the reasons for them.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InboxId, PauseReason, SessionPaused};
use backstitch_core::machine::final_text;

use super::content::Content;
use super::drive::LoopStep;
use crate::error::RuntimeError;
use crate::live::{LiveSession, load_view};
use crate::outcome::DriveOutcome;

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
    ) -> Result<LoopStep, RuntimeError> {
        self.pause_with(evaluation, reason, detail.into(), Vec::new()).await.map(LoopStep::End)
    }

    /// Records a pause, and removes the items from the inbox that requested it.
    pub(super) async fn pause_with(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: String,
        taken: Vec<InboxId>,
    ) -> Result<DriveOutcome, RuntimeError> {
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
        let pause = self.live.state().await.view.pause().cloned();
        let stopped = || Arc::new(SessionPaused::new(PauseReason::Asked).with_detail("it was stopped"));
        self.outcome_of_pause(evaluation, &pause.unwrap_or_else(stopped)).await
    }
}
