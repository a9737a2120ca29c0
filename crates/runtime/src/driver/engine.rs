//! What an evaluation needs that another program works on.
//!
//! A driver with a [`ForeignLoop`] gives it the evaluation instead of running a machine. The start, the recovery, the
//! pauses and the end of an evaluation are the same as for any other.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InboxKind, InnerMessage, PauseReason, Role};
use backstitch_core::message::{MessageBuilder, PolicyName};
use backstitch_core::ports::BoxFuture;
use backstitch_core::view::Call;

use super::Driver;
use super::inbox::{InboxRequests, message_of};
use crate::error::Result;
use crate::live::Durable;
use crate::outcome::DriveOutcome;

/// Works on evaluations in place of a machine.
pub(crate) trait ForeignLoop: Send + Sync {
    /// Works on an evaluation from the state in its journal to its end, or to a pause. Before that, the calls that an
    /// earlier process left open were closed.
    fn drive<'a>(
        &'a self,
        driver: &'a Driver,
        evaluation: EvaluationId,
    ) -> BoxFuture<'a, Result<DriveOutcome>>;

    /// Ends what an earlier process has left running, before any file is touched.
    fn end_survivors<'a>(&'a self, driver: &'a Driver) -> BoxFuture<'a, Result<()>>;

    /// The end of a sentence about a call without an end, for the program.
    fn without_end(&self, call: &Call) -> &'static str;
}

/// Why the work on an evaluation has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// The session pauses.
    Pause,
    /// The evaluation ends.
    Cancel,
    /// The evaluation is out of time.
    OutOfTime,
}

impl Driver {
    /// Returns why the work on an evaluation has to stop, if that is known already.
    pub(crate) async fn waiting_stop(&self, evaluation: EvaluationId) -> Result<Option<StopRequest>> {
        let stop_requests = self.inbox.waiting_requests(evaluation).await?;
        Ok(if self.inbox.cancel.is_cancelled() || !stop_requests.cancels.is_empty() {
            Some(StopRequest::Cancel)
        } else if self.inbox.stop.is_cancelled() || !stop_requests.pauses.is_empty() {
            Some(StopRequest::Pause)
        } else {
            None
        })
    }

    /// Records the messages that wait in the inbox, as messages of the user to the program.
    pub(crate) async fn take_messages(&self, evaluation: EvaluationId) -> Result<Vec<Arc<InnerMessage>>> {
        let mut taken = Vec::new();
        for (id, item) in self.inbox.waiting().await? {
            // A message that cannot be read is noted by the next evaluation.
            if let Some(mission) = (item.kind == InboxKind::Message).then(|| message_of(&item)).flatten() {
                taken.push(self.inbox.consume_message(evaluation, id, mission).await?);
            }
        }
        Ok(taken)
    }

    /// Completes when the work on an evaluation has to stop. Time in which a person is asked does not count.
    pub(crate) async fn wait_for_stop_request(
        &self,
        evaluation: EvaluationId,
        counts_time: bool,
    ) -> StopRequest {
        tokio::select! {
            biased;
            () = self.inbox.stop.cancelled() => StopRequest::Pause,
            () = self.inbox.wait_for_request(evaluation, InboxRequests::is_any) => {
                let stop_requests = self.inbox.waiting_requests(evaluation).await.unwrap_or_default();
                let cancels = self.inbox.cancel.is_cancelled() || !stop_requests.cancels.is_empty();
                if cancels { StopRequest::Cancel } else { StopRequest::Pause }
            }
            () = self.inbox.out_of_time(evaluation), if counts_time => StopRequest::OutOfTime,
        }
    }

    /// Processes the decisions that wait in the inbox.
    pub(crate) async fn receive_decisions(&self) -> Result<()> {
        self.inbox.receive_decisions().await
    }

    /// Records a pause, and removes the requests for it from the inbox.
    pub(crate) async fn pause_engine(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: String,
    ) -> Result<DriveOutcome> {
        let stop_requests = self.inbox.waiting_requests(evaluation).await?;
        let ended = self.pauses.pause_with(evaluation, reason, detail, stop_requests.pauses).await?;
        self.live.flush().await?;
        Ok(ended)
    }

    /// Returns the messages of an evaluation with all of their content.
    pub(crate) async fn messages_of(&self, evaluation: EvaluationId) -> Result<Vec<Arc<InnerMessage>>> {
        self.content.messages_of(evaluation).await
    }

    /// Records a message to the program, in the name of the runtime.
    pub(crate) async fn notify_engine(
        &self,
        evaluation: EvaluationId,
        text: &str,
    ) -> Result<Arc<InnerMessage>> {
        let added = self
            .live
            .commit(|commit| {
                let turns = commit.view().evaluation(evaluation).map_or(0, |known| known.turns);
                let mut builder = MessageBuilder::continue_step(turns + 1, commit.session().ids());
                builder.policy(PolicyName::runtime()).add_text(text);
                let message = builder.to_message()?;
                commit.durable(Durable::WithNext).say(evaluation, turns, message)
            })
            .await?;
        debug_assert_eq!(added.role(), Role::User);
        Ok(added)
    }

    /// Ends the calls that did not end, of the program and of its tools. Their files are restored, or kept as they are.
    pub(crate) async fn end_engine_calls(
        &self,
        why: impl Fn(&Call) -> &'static str,
        keeps_files: bool,
    ) -> Result<()> {
        if keeps_files {
            for call in self.live.pending_calls(Call::may_have_run).await {
                self.live.end_keeping_files(&call).await?;
            }
            self.live.adopt_files().await?;
        }
        self.end_outside_calls(why).await
    }
}
