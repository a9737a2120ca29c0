//! The end of an evaluation: its open calls are given up, and its end is recorded as one batch.
//!
//! The events about an evaluation are here as well: that its prompt was rendered, and that it has an answer.

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Decision, EvaluationFinished, EvaluationOutcome};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::message::Large;
use backstitch_core::slices::{PromptExecuted, PromptRendered, RunContext, excerpt, small};
use backstitch_core::view::JournalView;

use super::Driver;
use crate::error::{Result, RuntimeError};
use crate::outcome::DriveOutcome;

impl Driver {
    /// Records that the evaluation ended.
    pub(crate) async fn finish(
        &self,
        evaluation: EvaluationId,
        ending: EvaluationResult,
    ) -> Result<DriveOutcome> {
        self.give_up_calls(evaluation).await?;
        // Requests to stop the evaluation are consumed with it, so that they do not reach the next one.
        let stop_requests = self.inbox.waiting_requests(evaluation).await?;
        self.live
            .commit(|commit| {
                let (draft, ending) = self.with_output(commit.session(), ending);
                commit.keep(|session| session.prepare(&draft))?;
                if ending.outcome == EvaluationOutcome::Completed {
                    commit.dispatch(self.executed(commit.view(), evaluation, &ending))?;
                }
                commit.push(EvaluationFinished {
                    output: ending.output.map(Large::Inline),
                    error: ending.error,
                    ..EvaluationFinished::new(evaluation, ending.outcome)
                });
                commit.take(stop_requests.cancels.into_iter().chain(stop_requests.pauses));
                Ok(())
            })
            .await?;
        self.recorded_outcome(evaluation).await?.ok_or(RuntimeError::NoEvaluation { evaluation })
    }

    /// Gives up the calls whose child sessions are still open when the evaluation ends. Their changes are
    /// rolled back.
    async fn give_up_calls(&self, evaluation: EvaluationId) -> Result<()> {
        let view = self.live.view().await;
        for call in self.live.pending_calls(|call| call.evaluation_id == evaluation).await {
            if self.calls.continued(&view, &call).is_some() {
                let reason = Some("its evaluation ended before it did".to_owned());
                self.live.resolve(Some(call.call_id), Decision::Fail { reason }, None).await?;
            }
        }
        Ok(())
    }

    /// Returns the recorded outcome of an evaluation, once it has ended.
    pub(super) async fn recorded_outcome(&self, evaluation: EvaluationId) -> Result<Option<DriveOutcome>> {
        let view = self.live.view().await;
        let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let finished = known.finished.as_ref().map(|finished| finished.record.clone());
        let Some(mut finished) = finished else { return Ok(None) };
        let messages = match finished.outcome {
            EvaluationOutcome::Completed => self.content.messages_of(evaluation).await?,
            _ => Vec::new(),
        };
        self.content.held().fetch_large(&mut finished).await?;
        Ok(Some(DriveOutcome::recorded(evaluation, &finished, &messages)))
    }

    /// Returns the event for the prompt, if the system message was rendered from one.
    pub(super) fn rendered(&self, evaluation: EvaluationId) -> Option<PromptRendered> {
        let prompt = self.agent.prompt.as_ref()?;
        let text = self.agent.system.as_deref().unwrap_or_default();
        Some(PromptRendered {
            prompt_ns: self.agent.ns.clone(),
            prompt_key: self.agent.key.clone(),
            prompt_name: prompt.name.clone(),
            adapter: self.agent.policy.name().to_string(),
            render_inputs: small(prompt.inputs.clone()),
            rendered: Digest::of(text.as_bytes()),
            rendered_bytes: text.len() as u64,
            descriptor: Some(prompt.descriptor),
            run: RunContext::new(self.live.id(), evaluation),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        })
    }

    /// Returns the event for an answer.
    pub(super) fn executed(
        &self,
        view: &JournalView,
        evaluation: EvaluationId,
        ending: &EvaluationResult,
    ) -> PromptExecuted {
        let messages = view.transcript().map(|transcript| transcript.inner_messages(evaluation));
        let text = messages.ok().and_then(|messages| messages.last().map(|message| message.content()));
        PromptExecuted {
            prompt_name: self.agent.prompt_name(),
            adapter: self.agent.policy.name().to_string(),
            text: text.filter(|text| !text.is_empty()).map(|text| excerpt(&text)),
            output: ending.output.clone().and_then(small),
            usage: None,
            run: RunContext::new(self.live.id(), evaluation),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        }
    }
}
