//! How an evaluation ends: what it still has open is given up, its end is one batch, and from then on its answer is a recorded one.

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Batch, Decision, EvaluationFinished, Outcome};
use backstitch_core::machine::Ending;
use backstitch_core::view::Transcript;

use super::Driver;
use crate::error::RuntimeError;
use crate::live::{Commit, fetch_json, push_changes};
use crate::outcome::Ended;

impl Driver {
    /// Records that the evaluation ended.
    pub(super) async fn finish(
        &self,
        evaluation: EvaluationId,
        ending: Ending,
    ) -> Result<Ended, RuntimeError> {
        self.give_up_calls(evaluation).await?;
        // Whatever was wished of the evaluation goes with it, so that nothing of it reaches the next one.
        let wishes = self.waiting_wishes(evaluation).await?;
        self.live
            .commit(|state| {
                let session = &state.execution.session;
                let (draft, ending) = self.with_output(session, ending);
                let mut prepared = session.prepare(&draft)?;
                if ending.outcome == Outcome::Completed {
                    session.prepare_more(&mut prepared, self.executed(state, evaluation, &ending))?;
                }
                let mut batch = Batch::at(self.live.clock().now());
                push_changes(&mut batch, &prepared)?;
                batch.push(EvaluationFinished {
                    evaluation_id: evaluation,
                    outcome: ending.outcome,
                    output: ending.output,
                    output_object: None,
                    error: ending.error,
                    extra: Extra::default(),
                });
                for item in wishes.cancels.into_iter().chain(wishes.pauses) {
                    batch.take(item);
                }
                Ok((Commit::now(batch, Some(prepared)), ()))
            })
            .await?;
        self.keep_snapshot().await;
        self.recorded(evaluation).await?.ok_or(RuntimeError::NoEvaluation { evaluation })
    }

    /// Gives up the calls that sessions still work for when the evaluation ends: what they did is put back.
    async fn give_up_calls(&self, evaluation: EvaluationId) -> Result<(), RuntimeError> {
        let open: Vec<_> = {
            let state = self.live.state().await;
            let open = state.view.pending_calls().filter(|call| call.evaluation_id == evaluation);
            let continued = open.filter(|call| self.continued(&state.view, call).is_some());
            continued.map(|call| call.call_id).collect()
        };
        for call in open {
            let reason = Some("its evaluation ended before it did".to_owned());
            self.live.resolve(Some(call), Decision::Fail { reason }, None).await?;
        }
        Ok(())
    }

    /// What the journal says of an evaluation, once it has ended.
    pub(super) async fn recorded(&self, evaluation: EvaluationId) -> Result<Option<Ended>, RuntimeError> {
        let (known, transcript) = {
            let state = self.live.state().await;
            let known = state.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
            (known.clone(), Transcript::of(&state.execution.session)?)
        };
        let Some(finished) = known.finished.as_ref().map(|finished| &finished.record) else {
            return Ok(None);
        };
        let store = &**self.live.store();
        let transcript = self.hydrated.transcript(store, transcript).await?;
        let output = match finished.output_object {
            Some(large) => Some(fetch_json(store, large).await?),
            None => finished.output.clone(),
        };
        Ok(Some(Ended::recorded(evaluation, finished, &transcript, output)))
    }

    /// Keeps the state beside the journal, so that it can be read without folding all of it. It is kept anew once the journal is
    /// twice as long as at the last time, so that all snapshots together cost no more than the journal. Failing to is no harm.
    pub(super) async fn keep_snapshot(&self) {
        let kept = match self.live.store().snapshot(self.live.id()).await {
            Ok(kept) => kept.map_or(0, |kept| kept.position.number()),
            Err(_) => 0,
        };
        let (position, json) = {
            let state = self.live.state().await;
            if state.view.head().number() < kept.saturating_mul(2) {
                return;
            }
            (state.view.head(), state.execution.session.snapshot().with_provenance(None).to_json())
        };
        let Ok(json) = json else { return };
        backstitch_core::crash_point!("snapshot.before");
        let (store, lease) = (self.live.store(), self.live.lease());
        let saved = store.save_snapshot(self.live.id(), lease.fence, position, json.into_bytes()).await;
        if let Err(error) = saved {
            tracing::warn!(session = %self.live.id(), %error, "the snapshot of the session could not be kept");
        }
        backstitch_core::crash_point!("snapshot.after");
    }
}
