//! The history that a machine is rebuilt from, with all of its content.

use backstitch_core::id::EvaluationId;
use backstitch_core::machine::EvaluationHistory;

use super::content::Content;
use super::hydrate::ObjectSource;
use crate::error::RuntimeError;

impl Content {
    /// Returns the history of an evaluation. Content that is too large for records is fetched.
    pub(super) async fn past(&self, evaluation: EvaluationId) -> Result<EvaluationHistory, RuntimeError> {
        let mut past = EvaluationHistory::of(&self.live.state().await.view, evaluation)?;
        let before = past.followed.iter_mut().flat_map(|followed| &mut followed.messages);
        for message in before.chain(&mut past.messages) {
            *message = self.message(message).await?;
        }
        with_content(self.held(), past).await
    }
}

/// Fetches the content that is too large for the records of programs and of structured answers.
pub(super) async fn with_content(
    held: ObjectSource<'_>,
    mut past: EvaluationHistory,
) -> Result<EvaluationHistory, RuntimeError> {
    for record in past.large_records_mut() {
        held.fetch_large(record).await?;
    }
    Ok(past)
}
