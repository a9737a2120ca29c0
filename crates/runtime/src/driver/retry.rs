//! Retries of requests, with exponential backoff.
//!
//! The delays grow and have jitter, so that many clients that failed at once do not retry at once. The jitter
//! derives from the session's seed, so a session that is repeated has the same delays. If the provider asks
//! for a certain delay, the wait is that delay and a little more.
//!
//! Each failed attempt is recorded: before the delay that follows it, or with the end that it causes.
//! So is an error that stops the session, together with all buffered records.

use backstitch_core::budget::Amounts;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{AfterFailure, BudgetCharged, Note, RequestFailed, SessionStopped};
use backstitch_core::ports::{PolicyRequest, RequestInfo};
use backstitch_core::rng::{Rng, Seed};
use serde_json::json;

use super::Driver;
use super::ask::{AskOutcome, Asker};
use super::drive::millis;
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::events::{LiveKind, Retry};
use crate::live::Durable;
use crate::policy::WAITS;

impl Asker {
    /// Sends the request, and retries it where that may help. No delay outlasts the evaluation's deadline, and no
    /// attempt follows that the budget does not cover.
    pub(super) async fn with_retries(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        question: PolicyRequest,
        info: RequestInfo,
    ) -> Result<AskOutcome> {
        let (backoff, turn) = (agent.backoff, question.turn);
        let mut jitter = jitter_of(self.live.seed().await, turn);
        for attempt in 0_u32.. {
            let decided = tokio::select! {
                biased;
                decided = agent.policy.decide(question.clone(), info.clone()) => decided,
                never = self.arriving.save(&self.live, evaluation) => match never {},
            };
            let mut error = match decided {
                Ok(answer) => return Ok(AskOutcome::Answered(Box::new(answer), attempt + 1)),
                // Nothing failed: a person has not answered yet.
                Err(error) if error.kind == WAITS => return Err(error.into()),
                Err(error) => error,
            };
            error.message = recordable(&self.agent, &error.message);
            let partial = self.arriving.end_attempt().await;
            let mut usage = agent.prices.priced(error.request.usage, &info.provider, &info.model);
            if usage == Amounts::ZERO && !partial.kept.is_empty() {
                // The provider charges for what it has sent, and did not say how much.
                usage = self.cost_of(&partial.kept, info.estimate, &info.provider, &info.model);
            }
            let kept = partial.note(evaluation, true).map(Into::into);
            // A failed attempt that the provider counted is charged.
            let charged = (usage != Amounts::ZERO).then(|| BudgetCharged::new(None, usage).into());
            let failed = |then| RequestFailed {
                evaluation_id: evaluation,
                turn,
                attempt: attempt + 1,
                kind: error.kind.clone(),
                message: error.message.clone(),
                retry_after_millis: error.retry_after.map(millis),
                window: error.request.window,
                unexplained: error.request.unexplained,
                usage,
                then,
                extra: Extra::default(),
            };
            if !error.retryable || attempt >= backoff.retries {
                // If it was refused, a shorter or simpler request may follow, which is recorded as another one.
                let failed = failed(AfterFailure::Stop).into();
                let fallback = agent.after(&error.kind).map(|next| {
                    let (model, next) = (agent.model_name(), next.model_name());
                    let text =
                        format!("turn {turn} continues with {next}: {model} did not answer ({})", error.kind);
                    let data =
                        json!({ "evaluation_id": evaluation, "turn": turn, "from": model, "to": next });
                    Note::new("fallback", text).with_data(data).into()
                });
                // The choice of another model is durable before that is asked.
                let durable = if fallback.is_some() { Durable::Now } else { Durable::WithNext };
                let records = kept.into_iter().chain([failed]).chain(charged).chain(fallback).collect();
                self.live.record_when(records, durable).await?;
                return Err(error.into());
            }
            let mut wait = backoff.wait(attempt, error.retry_after, jitter.unit());
            if let Some(deadline) = self.live.deadline(evaluation) {
                wait = wait.min(deadline.since(self.live.clock().now()));
            }
            let failed = failed(AfterFailure::Retry { wait_millis: millis(wait) }).into();
            self.live.record(kept.into_iter().chain([failed]).chain(charged).collect()).await?;
            if let Some(exceeded) = self.exceeded_budget(evaluation).await {
                return Ok(AskOutcome::OutOfBudget(exceeded));
            }
            tracing::warn!(
                kind = error.kind,
                attempt = attempt + 1,
                ?wait,
                "the policy did not answer; it is asked again"
            );
            self.live.channel.publish(LiveKind::Retry(Box::new(Retry {
                evaluation,
                turn,
                attempt: attempt + 1,
                wait,
                kind: error.kind,
                message: error.message,
            })));
            tokio::time::sleep(wait).await;
        }
        unreachable!("invariant: the loop ends by returning")
    }

    /// Returns the limit that another attempt would exceed. The reservation of the request covers one attempt, and those that
    /// failed are charged beside it.
    async fn exceeded_budget(&self, evaluation: EvaluationId) -> Option<String> {
        let view = self.live.view().await;
        let known = view.evaluation(evaluation)?;
        let exceeded = known.budget?.check(view.spent_by(known)).err()?;
        Some(exceeded.to_string())
    }
}

/// Returns the jitter of one turn. It is independent of the random numbers of calls.
fn jitter_of(seed: Seed, turn: u64) -> Rng {
    let mut session = seed.rng();
    Seed::new(session.next_u64() ^ turn).rng()
}

/// The longest error text that is recorded, in characters. Some servers respond with whole pages.
const LONGEST: usize = 4_000;

/// Returns the text of an error as it is recorded and shown: without keys, and truncated.
pub(super) fn recordable(agent: &Agent, text: &str) -> String {
    let mut clean = agent.all_secrets().redact(text).into_owned();
    if let Some((end, _)) = clean.char_indices().nth(LONGEST) {
        clean.truncate(end);
        clean.push('…');
    }
    clean
}

impl Driver {
    /// Records that an error stopped the evaluation, with all buffered records, unless that is recorded
    /// already. Failures to record are only logged, because the error itself says why nothing can be
    /// recorded.
    pub(super) async fn record_stop(&self, evaluation: EvaluationId, error: &RuntimeError) {
        let is_known = match error.cause() {
            // Another process writes the journal, its content is unknown, or a pause records the error.
            RuntimeError::ClaimLost { .. }
            | RuntimeError::AheadOfStore { .. }
            | RuntimeError::Poisoned { .. } => true,
            _ => self.live.view().await.stopped().is_some(),
        };
        if is_known {
            return;
        }
        let message = match error.cause() {
            RuntimeError::Policy(error) => recordable(&self.agent, &error.message),
            other => recordable(&self.agent, &other.to_string()),
        };
        let stopped = SessionStopped::error(evaluation, error.kind(), message);
        if let Err(error) = self.live.record(vec![stopped.into()]).await {
            let session = self.live.id();
            tracing::warn!(%session, %error, "why the session stopped could not be recorded");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_same_for_the_same_session_and_turn() {
        let draws = |seed, turn| jitter_of(Seed::new(seed), turn).next_u64();
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }
}
