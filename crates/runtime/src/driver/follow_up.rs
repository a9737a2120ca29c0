//! Messages that wait in the inbox of a session without an open evaluation. They start the next one.
//!
//! The messages are taken out of the inbox in the batch that starts the evaluation and records them. So a
//! message is either waiting, or part of an evaluation that can be resumed. Resuming a session returns only
//! after the messages that were sent to it are answered.

use backstitch_core::journal::InboxKind;

use super::Driver;
use super::inbox::message_of;
use crate::error::RuntimeError;
use crate::outcome::DriveOutcome;

impl Driver {
    /// Starts an evaluation with the messages that wait in the inbox, and drives it to its end, or to a
    /// pause. Returns `None` if no message waits. Fails with [`RuntimeError::EvaluationOpen`] while an
    /// evaluation is open, since that one processes them itself.
    pub async fn start_waiting(&self) -> Result<Option<DriveOutcome>, RuntimeError> {
        let (mut missions, mut taken) = (Vec::new(), Vec::new());
        for (id, item) in self.inbox.waiting().await? {
            // A message that cannot be read is noted by the next evaluation.
            if let Some(mission) = (item.kind == InboxKind::Message).then(|| message_of(&item)).flatten() {
                missions.push(mission);
                taken.push(id);
            }
        }
        if missions.is_empty() {
            return Ok(None);
        }
        let evaluation = self.begin_with(missions, None, taken).await?;
        self.drive(evaluation).await.map(Some)
    }

    /// Answers messages that arrived too late for the driven evaluation. If that one failed, was cancelled or
    /// paused, its outcome is returned, and the messages are answered on the next resume.
    pub(super) async fn and_answer_waiting(
        &self,
        mut ended: DriveOutcome,
    ) -> Result<DriveOutcome, RuntimeError> {
        let is_stopped = || self.inbox.stop.is_cancelled() || self.inbox.cancel.is_cancelled();
        while matches!(ended, DriveOutcome::Completed(_)) && !is_stopped() {
            match self.start_waiting().await? {
                Some(next) => ended = next,
                None => break,
            }
        }
        Ok(ended)
    }
}
