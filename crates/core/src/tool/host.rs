//! Services of the runtime for a running tool, behind its [`ToolContext`](super::ToolContext).

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::budget::Limits;
use crate::id::{CallId, EvaluationId};
use crate::journal::{TurnFinished, Wait};
use crate::object::{Object, ObjectId};
use crate::ports::{BoxFuture, ProcessError, ProcessOutcome, ProcessSpec};
use crate::secrets::Secrets;
use crate::session::BoxError;

/// Services of the runtime for a running tool.
pub trait ToolHost: Send + Sync {
    /// Returns the directory of the session's workspace; `None` if there is none on a disk.
    fn directory(&self) -> Option<PathBuf> {
        None
    }

    /// Returns whether the runtime still holds the session, by its own clock. Nothing may be done for the call otherwise.
    fn holds_session(&self) -> bool {
        true
    }

    /// Returns the recorded value of a step of the call, if there is one.
    fn recall_step(&self, call: CallId, name: String) -> BoxFuture<'_, Result<Option<Value>, BoxError>>;

    /// Records the value of a step, durably.
    fn record_step(&self, call: CallId, name: String, value: Value) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Ends a wait of the call, if what it waits for has come, and records that as a step. The value is that of the signal, and
    /// null after a time. If it has not come, the host stops the call, and returns nothing. `has_acted` says whether the call has
    /// started a process since it began, outside of its steps.
    fn wait(
        &self,
        call: CallId,
        step: String,
        wait: Wait,
        has_acted: bool,
    ) -> BoxFuture<'_, Result<Option<Value>, BoxError>> {
        let _ = (call, step, wait, has_acted);
        Box::pin(async { Err("calls cannot wait here".into()) })
    }

    /// Publishes the progress of the call. There may be no listener.
    fn progress(&self, call: CallId, progress: Progress);

    /// Publishes output of the running call. There may be no listener.
    fn output(&self, call: CallId, text: &str) {
        let _ = (call, text);
    }

    /// Begins or ends to wait for a person. That time does not count towards the time limit of the call.
    fn set_waiting_for_person(&self, call: CallId, is_waiting: bool) {
        let _ = (call, is_waiting);
    }

    /// Returns the remaining budget of each limited kind; none without a budget.
    fn budget_left(&self, evaluation: EvaluationId) -> BoxFuture<'_, Option<Limits>>;

    /// Loads an object that messages of the session refer to, if it exists.
    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, BoxError>> {
        let _ = id;
        Box::pin(async { Ok(None) })
    }

    /// Returns the finished turns of programs in an evaluation, with all of their content.
    fn finished_turns(
        &self,
        evaluation: EvaluationId,
    ) -> BoxFuture<'_, Result<Vec<Arc<TurnFinished>>, BoxError>> {
        let _ = evaluation;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Returns the evaluations whose conversation an evaluation continues, oldest first.
    fn followed_evaluations(&self, evaluation: EvaluationId) -> BoxFuture<'_, Vec<EvaluationId>> {
        let _ = evaluation;
        Box::pin(async { Vec::new() })
    }

    /// Runs a program to its end. Fails if the host does not support processes.
    fn run_process(
        &self,
        call: CallId,
        spec: ProcessSpec,
    ) -> BoxFuture<'_, Result<ProcessOutcome, ProcessError>> {
        let _ = (call, spec);
        Box::pin(async { Err(ProcessError::Unsupported) })
    }

    /// The API keys that must not be returned.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// Completes when the call has to stop.
    fn cancelled(&self, call: CallId) -> BoxFuture<'_, ()>;
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Current activity.
    pub message: String,
    /// Completed part, from 0 to 1, if it is known.
    pub fraction: Option<f64>,
}
