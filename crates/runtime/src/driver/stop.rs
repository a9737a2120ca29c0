//! Records of errors that stop a session.

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::SessionStopped;

use super::Driver;
use crate::agent::Agent;
use crate::error::RuntimeError;

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
