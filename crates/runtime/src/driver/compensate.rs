//! Compensation of calls that were decided to count as failed.
//!
//! A decision is made where the tools are not available, so the next driver of the session calls the
//! `compensate` hook of the call's tool. The attempt is recorded first, so a hook is called at most once,
//! even if the process crashes. The result is recorded with the call, and as a note for people.

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{Decision, Note, RecordBody, StepFinished};
use backstitch_core::tool::Compensate;
use backstitch_core::view::{Call, CallStatus};
use serde_json::{Value, json};

use super::calls::Calls;
use crate::error::Result;
use crate::fence::catch_task_panic;

/// Names of the steps that are recorded before and after a hook is called.
const STARTED: &str = "backstitch:compensate:started";
const ENDED: &str = "backstitch:compensate:ended";

impl Calls {
    /// Calls the hooks of external calls that were decided to count as failed, unless they were called
    /// before.
    pub(super) async fn compensate_failed(&self, evaluation: EvaluationId) -> Result<()> {
        let view = self.live.view().await;
        let of_this = view.calls().filter(|call| call.evaluation_id == evaluation);
        let failed: Vec<(Call, Compensate)> =
            of_this.filter_map(|call| Some((call.clone(), self.owed_hook(call)?))).collect();
        for (call, hook) in failed {
            if call.steps.contains_key(STARTED) {
                let error = "the process ended while it was compensated";
                self.record_compensation(&call, Err(error.to_owned())).await?;
                continue;
            }
            let arguments = self.content.start_arguments(&call).await?;
            // An adopted call has the key of the session that made it.
            let key = self.live.view().await.idempotency_key(call.call_id);
            self.live.record(vec![step(call.call_id, STARTED, Value::Null)]).await?;
            let done = catch_task_panic(move || hook(key, arguments)).await;
            let done = match done {
                Ok(done) => done.map_err(|error| error.to_string()),
                Err(panic) => Err(format!("it panicked: {panic}")),
            };
            self.record_compensation(&call, done).await?;
        }
        Ok(())
    }

    /// Returns the hook of a call if the call is to be compensated, and was not yet.
    fn owed_hook(&self, call: &Call) -> Option<Compensate> {
        let is_failed = call.status() == CallStatus::Failed
            && matches!(
                call.decision.as_ref().map(|resolved| &resolved.decision),
                Some(Decision::Fail { .. })
            );
        let tool = self.agent.tools.get(&call.name)?;
        let effect = call.intent.as_ref().map_or(tool.spec.effect, |intent| intent.record.effect);
        let is_owed = is_failed
            && !effect.is_repeatable()
            && call.session().is_none()
            && !call.steps.contains_key(ENDED);
        tool.compensate.clone().filter(|_| is_owed)
    }

    async fn record_compensation(&self, call: &Call, done: Result<(), String>) -> Result<()> {
        let (name, id) = (&call.name, call.call_id);
        let text = match &done {
            Ok(()) => format!("{name} (call {id}) was compensated"),
            Err(error) => format!("{name} (call {id}) could not be compensated: {error}"),
        };
        if done.is_err() {
            tracing::warn!(call = %id, "{text}");
        }
        let data = json!({ "call_id": id, "error": done.as_ref().err() });
        let note = Note::new("compensate", text).with_data(data);
        let ended = step(id, ENDED, json!({ "error": done.err() }));
        self.live.record(vec![ended, note.into()]).await
    }
}

fn step(call_id: CallId, name: &str, value: Value) -> RecordBody {
    StepFinished::new(call_id, name, value).into()
}
