//! Recording that an error stopped a session.

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::SessionStopped;

use super::Driver;
use crate::agent::Agent;
use crate::error::RuntimeError;

/// The longest error text that is recorded, in characters. Some servers answer with whole pages.
const LONGEST: usize = 4_000;

/// The text of an error as it may be recorded and shown: without keys, and not too long.
pub(super) fn recordable(agent: &Agent, text: &str) -> String {
    let mut clean = agent.all_secrets().redact(text).into_owned();
    if let Some((end, _)) = clean.char_indices().nth(LONGEST) {
        clean.truncate(end);
        clean.push('…');
    }
    clean
}

impl Driver {
    /// Records that an error stopped the evaluation, with whatever is still held, unless that is recorded already. Where nothing can
    /// be recorded any more the error says why, so a failure to record is only logged.
    pub(super) async fn record_stop(&self, evaluation: EvaluationId, error: &RuntimeError) {
        let is_known = match error.cause() {
            // Somebody else writes the journal, nobody knows what it holds, or a pause says it.
            RuntimeError::LeaseLost { .. }
            | RuntimeError::AheadOfStore { .. }
            | RuntimeError::Poisoned { .. } => true,
            _ => self.live.state().await.view.stopped().is_some(),
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
