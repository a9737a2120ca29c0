//! The end of an evaluation: its open calls are given up, and its end is recorded as one batch.

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Decision, EvaluationFinished, EvaluationOutcome};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::message::Large;

use super::Driver;
use crate::error::RuntimeError;
use crate::outcome::DriveOutcome;

impl Driver {
    /// Records that the evaluation ended.
    pub(crate) async fn finish(
        &self,
        evaluation: EvaluationId,
        ending: EvaluationResult,
    ) -> Result<DriveOutcome, RuntimeError> {
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
    async fn give_up_calls(&self, evaluation: EvaluationId) -> Result<(), RuntimeError> {
        let open: Vec<_> = {
            let state = self.live.state().await;
            let open = state.view.pending_calls().filter(|call| call.evaluation_id == evaluation);
            let continued = open.filter(|call| self.calls.continued(&state.view, call).is_some());
            continued.map(|call| call.call_id).collect()
        };
        for call in open {
            let reason = Some("its evaluation ended before it did".to_owned());
            self.live.resolve(Some(call), Decision::Fail { reason }, None).await?;
        }
        Ok(())
    }

    /// Returns the recorded outcome of an evaluation, once it has ended.
    pub(super) async fn recorded_outcome(
        &self,
        evaluation: EvaluationId,
    ) -> Result<Option<DriveOutcome>, RuntimeError> {
        let known = {
            let state = self.live.state().await;
            let known = state.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
            known.clone()
        };
        let Some(mut finished) = known.finished.map(|finished| finished.record) else { return Ok(None) };
        let messages = match finished.outcome {
            EvaluationOutcome::Completed => self.content.messages_of(evaluation).await?,
            _ => Vec::new(),
        };
        self.content.held().fetch_large(&mut finished).await?;
        Ok(Some(DriveOutcome::recorded(evaluation, &finished, &messages)))
    }
}
