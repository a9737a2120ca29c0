//! What a running tool asks of the runtime, behind its [`ToolContext`](super::ToolContext).

use std::sync::Arc;

use serde_json::Value;

use crate::budget::Limits;
use crate::id::{CallId, EvaluationId};
use crate::journal::TurnFinished;
use crate::object::{Object, ObjectId};
use crate::ports::{BoxFuture, ProcessError, ProcessOutcome, ProcessSpec};
use crate::secrets::Secrets;
use crate::session::BoxError;

/// What the runtime does for a running tool.
pub trait ToolHost: Send + Sync {
    /// The value that a step of the call recorded before, if it did.
    fn recall_step(&self, call: CallId, name: String) -> BoxFuture<'_, Result<Option<Value>, BoxError>>;

    /// Records the value of a step, durably.
    fn record_step(&self, call: CallId, name: String, value: Value) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Passes on how far the call is. Nobody has to listen.
    fn progress(&self, call: CallId, progress: Progress);

    /// Publishes output of the running call. Nobody has to listen.
    fn output(&self, call: CallId, text: &str) {
        let _ = (call, text);
    }

    /// What is left of the budget, of each kind that is limited; none without a budget.
    fn budget_left(&self, evaluation: EvaluationId) -> BoxFuture<'_, Option<Limits>>;

    /// An object that messages of the session refer to, if there is one.
    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, BoxError>> {
        let _ = id;
        Box::pin(async { Ok(None) })
    }

    /// The turns of programs that have ended in an evaluation, with all of their content.
    fn finished_turns(
        &self,
        evaluation: EvaluationId,
    ) -> BoxFuture<'_, Result<Vec<Arc<TurnFinished>>, BoxError>> {
        let _ = evaluation;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The evaluations whose conversation an evaluation continues, the oldest first.
    fn followed(&self, evaluation: EvaluationId) -> BoxFuture<'_, Vec<EvaluationId>> {
        let _ = evaluation;
        Box::pin(async { Vec::new() })
    }

    /// Runs a program to its end. Where there are no processes this is refused.
    fn run_process(
        &self,
        call: CallId,
        spec: ProcessSpec,
    ) -> BoxFuture<'_, Result<ProcessOutcome, ProcessError>> {
        let _ = (call, spec);
        Box::pin(async { Err(ProcessError::Unsupported) })
    }

    /// The keys that must not be given back.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// Completes when the call is asked to stop.
    fn cancelled(&self, call: CallId) -> BoxFuture<'_, ()>;
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub message: String,
    /// How much of it is done, from 0 to 1, where that is known.
    pub fraction: Option<f64>,
}
