//! Asking again, after a while.
//!
//! The waits grow, and a part of each is chance, so that many that were turned away at once do not come back at once. The chance is
//! the session's: a session that is repeated waits the same. Whoever was told how long to wait waits that long, and a little more.
//!
//! Each failed attempt is recorded: before the wait that follows it, or with the end that it brings about.

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{AfterFailure, RequestFailed};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest, RequestInfo};
use backstitch_core::rng::{Rng, Seed};

use super::ask::Asker;
use super::drive::millis;
use super::stop::recordable;
use crate::error::RuntimeError;
use crate::events::{LiveKind, Retry};
use crate::live::Durable;
use crate::policy::WAITS;

impl Asker {
    /// Asks, and asks again when that may help. No wait lasts longer than the evaluation. Returns the answer with the number of the
    /// attempt that was answered.
    pub(super) async fn with_retries(
        &self,
        evaluation: EvaluationId,
        question: PolicyRequest,
        info: RequestInfo,
    ) -> Result<(PolicyAnswer, u32), RuntimeError> {
        let (backoff, turn) = (self.agent.backoff, question.turn);
        let mut chance = chance_of(self.live.seed().await, turn);
        for attempt in 0_u32.. {
            let mut error = match self.agent.policy.decide(question.clone(), info.clone()).await {
                Ok(answer) => return Ok((answer, attempt + 1)),
                // Nothing failed: a person has not answered yet.
                Err(error) if error.kind == WAITS => return Err(error.into()),
                Err(error) => error,
            };
            error.message = recordable(&self.agent, &error.message);
            let failed = |then| RequestFailed {
                evaluation_id: evaluation,
                turn,
                attempt: attempt + 1,
                kind: error.kind.clone(),
                message: error.message.clone(),
                retry_after_millis: error.retry_after.map(millis),
                then,
                extra: Extra::default(),
            };
            if !error.retryable || attempt >= backoff.retries {
                let failed = failed(AfterFailure::Stop);
                self.live.record_when(vec![failed.into()], Durable::WithNext).await?;
                return Err(error.into());
            }
            let mut wait = backoff.wait(attempt, error.retry_after, chance.unit());
            if let Some(deadline) = self.live.deadline(evaluation) {
                wait = wait.min(deadline.since(self.live.clock().now()));
            }
            let failed = failed(AfterFailure::Retry { wait_millis: millis(wait) });
            self.live.record(vec![failed.into()]).await?;
            tracing::warn!(
                kind = error.kind,
                attempt = attempt + 1,
                ?wait,
                "the policy did not answer; it is asked again"
            );
            self.live.publish(LiveKind::Retry(Box::new(Retry {
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
}

/// The chance of one turn. It is no part of what calls draw.
fn chance_of(seed: Seed, turn: u64) -> Rng {
    let mut session = seed.rng();
    Seed::new(session.next_u64() ^ turn).rng()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_the_same_for_the_same_session_and_turn() {
        let draws = |seed, turn| chance_of(Seed::new(seed), turn).next_u64();
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }
}
