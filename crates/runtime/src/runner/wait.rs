//! Calls that wait for a time or a signal.
//!
//! What a call waits for is looked up when its handler asks for it: the time, the signals that the session has received, and those
//! in its inbox. If it has come, that is recorded as a step, and a signal is removed in the same batch. Otherwise the handler is
//! stopped, everything but its finished steps is rolled back, and the session pauses with [`PauseReason::Wait`].
//!
//! [`PauseReason::Wait`]: backstitch_core::journal::PauseReason::Wait

use std::sync::{Mutex, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::journal::{SessionPaused, StepFinished, Wait};
use backstitch_core::message::Retry;
use backstitch_core::session::{BoxError, Draft};
use backstitch_core::slices::ReceivedSignal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::files::Hold;
use super::host::Host;
use super::request::CallOutcome;
use super::result::Failure;
use super::{Attempt, Settlement, ToolRunner};
use crate::error::{Result, RuntimeError};

/// What a running call waits for, if it does.
#[derive(Default)]
pub(super) struct WaitSlot {
    wait: Mutex<Option<Wait>>,
    /// Cancelled once the call waits.
    pub(super) begun: CancellationToken,
}

impl WaitSlot {
    fn begin(&self, wait: Wait) {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = Some(wait);
        self.begun.cancel();
    }

    pub(super) fn take(&self) -> Option<Wait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Host {
    /// Ends a wait if what it is for has come. Otherwise notes it, so that the call is stopped.
    pub(super) async fn end_wait(
        &self,
        call: CallId,
        step: String,
        wait: Wait,
        has_acted: bool,
    ) -> Result<Option<Value>, BoxError> {
        let Some(slot) = &self.wait else {
            return Err("only calls of an agent that this runtime drives can wait".into());
        };
        if has_acted && self.intent.record.effect.acts_outside() {
            return Err(
                "the call has started a process before, which is not in a step and would run again".into()
            );
        }
        if let Some(name) = wait.signal_name() {
            Wait::check_signal_name(name)?;
            self.live.receive_signals(Some(name)).await?;
            if let Some(value) = self.take_signal(call, &step, name).await? {
                return Ok(Some(value));
            }
        }
        if wait.is_over(self.live.clock().now()) {
            self.append(StepFinished::new(call, step, Value::Null).into()).await?;
            return Ok(Some(Value::Null));
        }
        slot.begin(wait);
        Ok(None)
    }

    /// Removes the first signal of a name, and records it as the value of a step.
    async fn take_signal(&self, call: CallId, step: &str, name: &str) -> Result<Option<Value>, BoxError> {
        let (live, intent, name) = (self.live.clone(), self.intent.clone(), name.to_owned());
        let step = step.to_owned();
        let recording = async move {
            // Concurrent calls that wait for one name get one signal each.
            let _alone = live.alone_with_signals().await;
            let received = live.state().await.session.all::<ReceivedSignal>()?;
            let Some(signal) = received.iter().find(|signal| signal.name == name) else { return Ok(None) };
            let value = json!({ "value": signal.value });
            let step = StepFinished::new(call, step, value.clone());
            intent
                .commit(&live, |commit| {
                    commit.keep(|session| {
                        let mut draft = session.draft();
                        let mut is_first = true;
                        draft.clear_where::<ReceivedSignal>(|signal| {
                            signal.name == name && std::mem::take(&mut is_first)
                        })?;
                        session.prepare(&draft)
                    })?;
                    commit.push(step);
                    Ok(())
                })
                .await?;
            Ok::<_, RuntimeError>(Some(value))
        };
        let recorded = self.processes.finish(recording).await;
        Ok(recorded.unwrap_or(Err(RuntimeError::ShuttingDown))?)
    }
}

impl ToolRunner {
    /// Handles a call that waits: everything but its finished steps is rolled back, and it runs again when that has come.
    pub(super) async fn leave_waiting(
        &self,
        started: Attempt,
        hold: &Hold,
        wait: Option<Wait>,
        draft: Option<Box<Draft>>,
    ) -> Result<Settlement> {
        let name = started.tool.name().clone();
        // What it did in the repository is not rolled back, and must not happen twice.
        let moves = self.live.repository_moves(started.call.call_id).await?;
        let Some(wait) = wait.filter(|_| moves.is_empty()) else {
            let moves = moves.join("; ");
            let message = format!("{name} cannot wait, since it has changed the repository before: {moves}");
            let failure = Failure::by_runtime("wait_refused", message, Retry::Refused);
            return self.roll_back(started, hold, failure, draft, CallOutcome::Failed).await;
        };
        let paused = SessionPaused::of_wait(started.call.call_id, name.as_str(), wait);
        self.leave_paused(started, hold, paused, CallOutcome::Waits).await
    }
}
