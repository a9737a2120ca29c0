//! Messages that wait in the inbox of a session without an open evaluation: they start the next one.
//!
//! Taking them out of the inbox, the start of the evaluation and what they say are one batch, so a message either waits or is
//! part of an evaluation that can be resumed. Whoever resumes a session does not leave before the messages that were sent to it are
//! answered.

use backstitch_core::journal::InboxKind;

use super::Driver;
use super::inbox::message_of;
use crate::error::RuntimeError;
use crate::outcome::DriveOutcome;

impl Driver {
    /// Starts an evaluation with the messages that wait in the inbox, and drives it to its end, or to a pause. Returns `None` when
    /// no message waits. Fails with [`RuntimeError::EvaluationOpen`] while an evaluation is open, which would take them in itself.
    pub async fn start_waiting(&self) -> Result<Option<DriveOutcome>, RuntimeError> {
        let (mut said, mut taken) = (Vec::new(), Vec::new());
        for (id, item) in self.inbox.waiting().await? {
            // One that cannot be read is noted by the evaluation that is driven next.
            if let Some(mission) = (item.kind == InboxKind::Message).then(|| message_of(&item)).flatten() {
                said.push(mission);
                taken.push(id);
            }
        }
        if said.is_empty() {
            return Ok(None);
        }
        let evaluation = self.begin_with(said, None, taken).await?;
        self.drive(evaluation).await.map(Some)
    }

    /// Answers messages that came too late for the evaluation that was driven. One that failed, was cancelled or waits is
    /// returned first: resuming answers them then.
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
