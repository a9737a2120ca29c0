//! Waits of running tools.
//!
//! A wait is a step of a call ([`ToolContext::step`]): once it is over, that is recorded, and a call that runs again does not
//! wait again. Until then the call does not run. Its files and its changes of the session are rolled back, its finished steps are
//! kept, and its session needs no process.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::context::{ContextError, ToolContext};
use super::error::ToolError;
use crate::payload::Wait;

impl ToolContext {
    /// Waits for a time or a signal, without a process that waits with it. Returns the value of the signal, or `None` after a
    /// time.
    ///
    /// If it has not come yet, this does not return: the runtime stops the handler, and the session pauses. Once it has come, the call
    /// runs again from its beginning, with its finished steps and with the value. So an effect outside before a wait belongs into a [step](Self::step), where it happens
    /// once. A call with an effect outside that has started a process before, and not in a step, cannot wait. Neither can calls
    /// that no agent of the runtime makes, and steps.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use backstitch_core::tool::{ToolContext, ToolError, ToolResult, Wait};
    ///
    /// async fn order(context: ToolContext, fabric: String) -> Result<ToolResult, ToolError> {
    ///     let number: u64 = context.step("order", async { Ok(fabric.len() as u64) }).await?; // sends the order, once
    ///     let week = Duration::from_secs(7 * 24 * 3600);
    ///     let latest = context.step("latest", async { Ok(context.clock().now().saturating_add(week)) }).await?;
    ///     match context.wait("delivery", Wait::signal("delivered").or_until(latest)).await? {
    ///         Some(note) => Ok(ToolResult::ok(format!("order {number} was delivered: {note}"))),
    ///         None => Ok(ToolResult::failed(format!("order {number} did not come"))),
    ///     }
    /// }
    /// ```
    pub async fn wait(&self, step: &str, wait: Wait) -> Result<Option<Value>, ToolError> {
        self.check()?;
        if let Cow::Owned(clean) = self.secrets().redact(step) {
            return Err(ContextError::StepName { step: clean }.into());
        }
        let refused = |source| ContextError::Wait { step: step.to_owned(), source };
        if self.inner.steps.is_inside() {
            return Err(refused("it is inside of a step".into()).into());
        }
        let (host, call) = (&self.inner.parts.host, self.call_id());
        let failed = |source| ContextError::Step { step: step.to_owned(), source };
        let recorded = host.recall_step(call, step.to_owned()).await.map_err(failed)?;
        let ended = match recorded {
            Some(value) => Some(value),
            None => {
                let has_acted = self.inner.steps.has_acted();
                host.wait(call, step.to_owned(), wait, has_acted).await.map_err(refused)?
            }
        };
        match ended {
            Some(mut value) => Ok(value.get_mut("value").map(Value::take)),
            // The runtime stops the call here.
            None => std::future::pending().await,
        }
    }
}

/// The steps of a running call, and whether it did something outside of them.
#[derive(Default)]
pub(super) struct RunningSteps {
    running: AtomicUsize,
    processes: AtomicUsize,
}

impl RunningSteps {
    /// Begins a step, which ends when the guard is dropped.
    pub(super) fn begin(&self) -> StepGuard<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        StepGuard(self)
    }

    /// Notes that a process is started.
    pub(super) fn note_process(&self) {
        if !self.is_inside() {
            self.processes.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn is_inside(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0
    }

    fn has_acted(&self) -> bool {
        self.processes.load(Ordering::SeqCst) > 0
    }
}

pub(super) struct StepGuard<'a>(&'a RunningSteps);

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
