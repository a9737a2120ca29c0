//! The loop: executes the actions of the machine, and passes their results to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InboxKind, PauseReason, RecordBody};
use backstitch_core::machine::{EvaluationResult, Machine, MachineAction, MachineEvent};
use tracing::Instrument as _;

use super::Driver;
use super::ask::OUT_OF_TIME;
use super::output::OutputCheck;
use crate::error::{Result, RuntimeError};
use crate::fence::joined;
use crate::heap::boxed;
use crate::live::Durable;
use crate::outcome::DriveOutcome;
use crate::spans;

/// The longest time for which the outcome of a call is only buffered while a program computes its next
/// action.
const HELD_FOR: Duration = Duration::from_millis(20);

/// The result of an action.
pub(super) enum LoopStep {
    /// The machine continues.
    Continue,
    /// Driving ends.
    End(DriveOutcome),
    /// The evaluation ends.
    Finish(EvaluationResult),
}

/// The result of running a machine.
pub(super) enum Advance {
    /// It has a next action.
    Action(MachineAction),
    /// It was stopped because the evaluation is out of time.
    OutOfTime,
    /// It was stopped for another reason.
    Interrupted,
}

/// Stops a machine when its caller is dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Driver {
    /// Drives an evaluation from the state in its journal to its end, or to a pause.
    pub(crate) async fn drive(&self, evaluation: EvaluationId) -> Result<DriveOutcome> {
        let span = spans::evaluation(self.live.id(), evaluation, &self.agent.prompt_name());
        self.live.condition().start_driving();
        let ended = boxed(|| self.drive_on(evaluation)).instrument(span.clone()).await;
        if let Err(error) = &ended {
            self.record_stop(evaluation, error).await;
        }
        self.live.condition().stop_driving();
        if let Ok(DriveOutcome::Failed { failure, .. }) = &ended {
            spans::record_failure(&span, &failure.kind);
        }
        ended
    }

    async fn drive_on(&self, evaluation: EvaluationId) -> Result<DriveOutcome> {
        if let Some(engine) = &self.engine {
            return engine.drive(self, evaluation).await;
        }
        let mut machine = self.agent.machines().rebuild(&self.content.past(evaluation).await?)?;
        loop {
            let next = match boxed(|| self.attend(evaluation, &mut *machine)).await? {
                LoopStep::Continue => {
                    let (back, wanted) = boxed(|| self.next_action(evaluation, machine)).await?;
                    machine = back;
                    self.save_checkpoint().await?;
                    match wanted {
                        Advance::Action(action) => self.act(evaluation, action, &mut *machine).await?,
                        Advance::OutOfTime => {
                            self.pauses.pause_for(evaluation, PauseReason::Deadline, OUT_OF_TIME).await?
                        }
                        // The reason of the interruption is handled first.
                        Advance::Interrupted => LoopStep::Continue,
                    }
                }
                other => other,
            };
            match next {
                LoopStep::Continue => {}
                LoopStep::End(ended) => {
                    self.live.flush().await?;
                    self.save_checkpoint().await?;
                    return Ok(ended);
                }
                LoopStep::Finish(ending) => match boxed(|| self.judge(evaluation, ending)).await? {
                    OutputCheck::Ends(ending) => {
                        let ended = boxed(|| self.finish(evaluation, ending)).await?;
                        // A completed evaluation needs no checkpoint.
                        if !matches!(ended, DriveOutcome::Completed(_)) {
                            self.save_checkpoint().await?;
                        }
                        return Ok(ended);
                    }
                    OutputCheck::AsksAgain(reply) => machine.handle(MachineEvent::MessageAdded(reply)),
                },
            }
        }
    }

    /// Processes the items of the inbox, and requests to stop.
    async fn attend(&self, evaluation: EvaluationId, machine: &mut dyn Machine) -> Result<LoopStep> {
        let waiting = self.inbox.waiting().await?;
        let stop_requests = self.inbox.requests_for(evaluation, &waiting).await;
        // A request to cancel is consumed when the evaluation ends. Messages that it did not process are left
        // to the next evaluation.
        if !stop_requests.cancels.is_empty() || self.inbox.cancel.is_cancelled() {
            return Ok(LoopStep::Finish(EvaluationResult::cancelled()));
        }
        let is_decided = waiting.iter().any(|(_, item)| item.kind == InboxKind::Resolution);
        for (id, item) in waiting.into_iter().filter(|(id, _)| !stop_requests.pauses.contains(id)) {
            self.inbox.handle(evaluation, id, item, machine).await?;
        }
        if is_decided {
            self.calls.compensate_failed(evaluation).await?;
        }
        if self.inbox.stop.is_cancelled() || !stop_requests.pauses.is_empty() {
            let detail = "pause requested".to_owned();
            let ended =
                self.pauses.pause_with(evaluation, PauseReason::Asked, detail, stop_requests.pauses).await?;
            return Ok(LoopStep::End(ended));
        }
        Ok(LoopStep::Continue)
    }

    /// Returns the next action of a machine. A machine that takes long does not block other tasks, and its
    /// earlier records become durable while it runs. It is stopped when the session is to stop, or when the
    /// evaluation is out of time.
    async fn next_action(
        &self,
        evaluation: EvaluationId,
        mut machine: Box<dyn Machine>,
    ) -> Result<(Box<dyn Machine>, Advance)> {
        if !machine.takes_long() {
            let action = machine.next();
            return Ok((machine, Advance::Action(action)));
        }
        let stop = StopOnDrop::default();
        let flag = stop.0.clone();
        let mut reply = tokio::task::spawn_blocking(move || {
            let action = machine.next_unless(&flag);
            (machine, action)
        });
        let (reply, why) = tokio::select! {
            biased;
            reply = &mut reply => (reply, Advance::Interrupted),
            () = tokio::time::sleep(HELD_FOR) => {
                self.live.flush().await?;
                tokio::select! {
                    biased;
                    reply = &mut reply => (reply, Advance::Interrupted),
                    why = self.inbox.wait_for_stop(evaluation) => {
                        drop(stop);
                        (reply.await, why)
                    }
                }
            }
        };
        let (machine, action) = joined(reply).ok_or(RuntimeError::ShuttingDown)?;
        Ok((machine, action.map_or(why, Advance::Action)))
    }

    async fn act(
        &self,
        evaluation: EvaluationId,
        action: MachineAction,
        machine: &mut dyn Machine,
    ) -> Result<LoopStep> {
        match action {
            MachineAction::Ask => boxed(|| self.asker.ask(evaluation, machine)).await,
            MachineAction::Call(wanted) => boxed(|| self.calls.run(evaluation, wanted, machine)).await,
            MachineAction::Record(bodies) => {
                // The answer that contains a program may have cost much, and the program may run for long. So
                // both are durable before it runs. Other records are written with the next ones.
                let is_program = |body: &RecordBody| matches!(body, RecordBody::ProgramStarted(_));
                let when = if bodies.iter().any(is_program) { Durable::Now } else { Durable::WithNext };
                self.live.record_when(bodies, when).await?;
                crash_point!("machine.recorded");
                Ok(LoopStep::Continue)
            }
            MachineAction::Finish(ending) => Ok(LoopStep::Finish(ending)),
            // Calls are awaited where they are run, so there is nothing to wait for here.
            MachineAction::Wait => Err(RuntimeError::Internal {
                reason: format!("evaluation {evaluation} waits for calls that are not running"),
            }),
        }
    }
}

/// Converts a time to milliseconds, as records have it.
pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
