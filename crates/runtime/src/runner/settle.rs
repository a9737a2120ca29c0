//! How a call ends: with one batch that holds all that it did, or with everything put back and one batch that says why.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    Batch, BudgetCharged, CallFinished, CallOutcome, Effect, Files, InnerMessage, PauseReason,
};
use backstitch_core::message::{Message, Retry};
use backstitch_core::object::Object;
use backstitch_core::session::{Draft, Prepared};
use backstitch_core::slices::{RunContext, ToolInvoked, excerpt, small};
use backstitch_core::tool::{Success, ToolResult};
use serde_json::Value;

use super::files::{Hold, Rescue};
use super::request::{CallEnd, CallRequest};
use super::result::{self, Failure, Speaker};
use super::{CONFLICT_RETRIES, Settled, Started, ToolRunner, is_conflict, paused};
use crate::error::RuntimeError;
use crate::live::{Commit, Durable, LiveState, push_changes};

/// What a call's last batch says, besides what it changed.
struct Ending {
    outcome: CallOutcome,
    message: Option<Message>,
    told: String,
    after: Option<Files>,
    /// What has to be stored with the files after it.
    objects: Vec<Object>,
    rescue: Rescue,
    pause: Option<(PauseReason, String)>,
}

impl ToolRunner {
    /// Says no before anything has started: the model is told, and nothing else is recorded.
    pub(super) async fn refuse(&self, call: &CallRequest, failure: Failure) -> Result<CallEnd, RuntimeError> {
        let message = result::failure(call, &failure);
        let live = &self.live;
        let said = live
            .commit(|state| {
                let session = &state.execution.session;
                let inner = state.inner_message(call.evaluation_id, call.turn, message, 0)?;
                let mut prepared = session.prepare(&session.draft())?;
                session.prepare_more(&mut prepared, self.invoked(call, &failure.message, false))?;
                session.prepare_more(&mut prepared, inner.clone())?;
                let mut batch = Batch::at(live.clock().now());
                push_changes(&mut batch, &prepared)?;
                Ok((Commit { batch, prepared: Some(prepared), when: call.durable() }, Arc::new(inner)))
            })
            .await?;
        self.publish(self.invoked(call, &failure.message, false)).await;
        Ok(CallEnd::Failed(said))
    }

    /// The handler answered.
    pub(super) async fn answered(
        &self,
        started: Started,
        hold: &Hold,
        mut result: ToolResult,
        mut draft: Draft,
    ) -> Result<Settled, RuntimeError> {
        if result.success == Success::No {
            let retry = Retry::Refused;
            let kind = "tool_failed".to_owned();
            let failure = Failure { speaker: Speaker::Tool, kind, message: result.message, retry };
            return self.rolled_back(started, hold, failure, Some(Box::new(draft)), CallEnd::Failed).await;
        }
        if let Err(error) = result.apply_events(&mut draft) {
            let message = format!("what {} gave back does not fit the session: {error}", started.tool.name());
            let failure = Failure::by_runtime("invalid_value", message, Retry::Refused);
            return self.rolled_back(started, hold, failure, Some(Box::new(draft)), CallEnd::Failed).await;
        }
        let captured = match hold.capture_after(started.before).await {
            Ok(captured) => captured,
            Err(error) => {
                let message =
                    format!("the files after {} could not be captured: {error}", started.tool.name());
                let failure = Failure::by_runtime("capture_failed", message, Retry::Refused);
                return self
                    .rolled_back(started, hold, failure, Some(Box::new(draft)), CallEnd::Failed)
                    .await;
            }
        };
        crash_point!("call.files_captured");
        let told = told(&result);
        let (after, objects) = captured.unzip();
        let mut objects = objects.unwrap_or_default();
        objects.extend(result.take_objects());
        let ending = Ending {
            outcome: CallOutcome::Succeeded,
            message: Some(result::success(&started.call, result)),
            told,
            after,
            objects,
            rescue: Rescue::default(),
            pause: None,
        };
        match self.finish(&started, ending, |state| state.execution.session.prepare(&draft)).await {
            Ok(message) => {
                started.resources.end(true);
                let message = message.ok_or(RuntimeError::ShuttingDown)?;
                Ok(Settled::End(CallEnd::Succeeded(message)))
            }
            Err(error) if is_conflict(&error) => self.conflicted(started, hold, draft, error).await,
            Err(error) => {
                started.resources.end(false);
                Err(error)
            }
        }
    }

    /// Another call has changed meanwhile what this one overwrites. What has no effect outside is run again.
    async fn conflicted(
        &self,
        started: Started,
        hold: &Hold,
        draft: Draft,
        error: RuntimeError,
    ) -> Result<Settled, RuntimeError> {
        let repeatable = matches!(started.intent.record().effect, Effect::Pure | Effect::Workspace);
        if repeatable && started.conflicts < CONFLICT_RETRIES {
            let rescue = self.put_back(&started, hold).await?;
            started.resources.end(false);
            // What a person wrote meanwhile went with it, so this is recorded like the end of any attempt that failed.
            if rescue.files.is_some() {
                self.record_rescue(&started, rescue, error.to_string()).await?;
            }
            return Ok(Settled::Conflict);
        }
        let name = started.tool.name();
        let (message, retry) = match repeatable {
            true => (format!("{name} ran into other calls again and again: {error}"), Retry::Allowed),
            false => {
                (format!("{name} ran, but what it changed here could not be kept: {error}"), Retry::Refused)
            }
        };
        let failure = Failure::by_runtime("conflict", message, retry);
        self.rolled_back(started, hold, failure, Some(Box::new(draft)), CallEnd::Failed).await
    }

    async fn record_rescue(
        &self,
        started: &Started,
        rescue: Rescue,
        why: String,
    ) -> Result<(), RuntimeError> {
        let elapsed = self.live.clock().monotonic().saturating_sub(started.started);
        self.live
            .commit(|_| {
                let mut batch = Batch::at(self.live.clock().now());
                batch.push(CallFinished {
                    call_id: started.call.call_id,
                    outcome: CallOutcome::Failed,
                    root: None,
                    coverage: rescue.files.and_then(|files| files.coverage),
                    rescue: rescue.files.map(|files| files.root),
                    left_out: rescue.left_out,
                    elapsed_micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                    summary: Some(result::summary(&why)),
                    extra: Extra::default(),
                });
                for object in rescue.objects {
                    batch.add_object(object);
                }
                Ok((Commit::now(batch, None), ()))
            })
            .await
    }

    /// The call failed: files are put back, logs are kept, and the model is told.
    pub(super) async fn rolled_back(
        &self,
        started: Started,
        hold: &Hold,
        failure: Failure,
        draft: Option<Box<Draft>>,
        end: fn(Arc<InnerMessage>) -> CallEnd,
    ) -> Result<Settled, RuntimeError> {
        let rescue = self.put_back(&started, hold).await?;
        let pause = (failure.kind == "cancelled").then(|| (PauseReason::Asked, failure.message.clone()));
        let ending = Ending {
            outcome: CallOutcome::Failed,
            message: Some(result::failure(&started.call, &failure)),
            told: failure.message,
            after: None,
            objects: Vec::new(),
            rescue,
            pause,
        };
        let message = self.finish(&started, ending, |state| logs_of(state, draft.as_deref())).await?;
        started.resources.end(false);
        Ok(Settled::End(end(message.ok_or(RuntimeError::ShuttingDown)?)))
    }

    /// The call counts as never made: everything is put back, its intent is closed, and the model is told nothing.
    pub(super) async fn never_ran(
        &self,
        started: Started,
        hold: &Hold,
        sections: Vec<String>,
        reason: String,
    ) -> Result<Settled, RuntimeError> {
        let rescue = self.put_back(&started, hold).await?;
        let ending = Ending {
            outcome: CallOutcome::Failed,
            message: None,
            told: reason.clone(),
            after: None,
            objects: Vec::new(),
            rescue,
            pause: None,
        };
        self.finish(&started, ending, |state| logs_of(state, None)).await?;
        started.resources.end(false);
        Ok(Settled::End(CallEnd::VisibilityExpansion { sections, reason }))
    }

    /// Puts the files back. What is found of them is durable before: it may hold what a person wrote, and a process that dies
    /// after the files were put back has nothing else that remembers it.
    async fn put_back(&self, started: &Started, hold: &Hold) -> Result<Rescue, RuntimeError> {
        crash_point!("call.before_restore");
        let mut rescue = match hold.rescue(started.before, self.rescue_bytes).await {
            Ok(rescue) => rescue,
            Err(error) => return Err(self.cannot_put_back(started, error).await),
        };
        if let (Some(files), Some(before)) = (rescue.files, started.before) {
            let objects = std::mem::take(&mut rescue.objects);
            if let Err(error) = self.live.keep_rescue(files, objects).await {
                started.resources.end(false);
                return Err(error);
            }
            if let Err(error) = hold.restore(before).await {
                return Err(self.cannot_put_back(started, error).await);
            }
        }
        crash_point!("call.after_restore");
        Ok(rescue)
    }

    async fn cannot_put_back(&self, started: &Started, error: RuntimeError) -> RuntimeError {
        started.resources.end(false);
        let reason = format!("the files before {} could not be put back: {error}", started.tool.name());
        self.live.poison(reason).await
    }

    /// Appends a call's last batch, then keeps its checkpoint and tells telemetry.
    async fn finish(
        &self,
        started: &Started,
        ending: Ending,
        prepare: impl FnOnce(&LiveState) -> Result<Prepared, backstitch_core::session::SessionError>,
    ) -> Result<Option<Arc<InnerMessage>>, RuntimeError> {
        let (live, call) = (&self.live, &started.call);
        let elapsed = live.clock().monotonic().saturating_sub(started.started);
        let success = ending.outcome == CallOutcome::Succeeded;
        let invoked = self.invoked(call, &ending.told, success);
        let told = result::summary(&ending.told);
        let after = ending.after;
        let when = if ending.pause.is_some() { Durable::Now } else { call.durable() };
        let intent = started.intent.outstanding().await;
        let said = live
            .commit(|state| {
                let session = &state.execution.session;
                let mut prepared = prepare(state)?;
                session.prepare_more(&mut prepared, invoked.clone())?;
                let said = match ending.message {
                    Some(message) => {
                        let inner = state.inner_message(call.evaluation_id, call.turn, message, 0)?;
                        session.prepare_more(&mut prepared, inner.clone())?;
                        Some(Arc::new(inner))
                    }
                    None => None,
                };
                let mut batch = Batch::at(live.clock().now());
                if let Some(intent) = intent {
                    batch.push(intent);
                }
                push_changes(&mut batch, &prepared)?;
                if let Some(reservation) = started.intent.record().reservation {
                    batch.push(charge(reservation.id, elapsed));
                }
                batch.push(CallFinished {
                    call_id: call.call_id,
                    outcome: ending.outcome,
                    root: ending.after.map(|files| files.root),
                    coverage: ending.after.or(ending.rescue.files).and_then(|files| files.coverage),
                    rescue: ending.rescue.files.map(|files| files.root),
                    left_out: ending.rescue.left_out,
                    elapsed_micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                    summary: Some(told.clone()),
                    extra: Extra::default(),
                });
                if let Some((reason, detail)) = ending.pause {
                    batch.push(paused(call, reason, detail));
                }
                for object in ending.objects.into_iter().chain(ending.rescue.objects) {
                    batch.add_object(object);
                }
                Ok((Commit { batch, prepared: Some(prepared), when }, said))
            })
            .await?;
        crash_point!("call.finished");
        self.keep_checkpoint(started, success, after, told, elapsed).await?;
        self.publish(invoked).await;
        Ok(said)
    }

    /// Tells telemetry, once what it is told of is durable.
    async fn publish(&self, invoked: ToolInvoked) {
        let telemetry = self.telemetry.clone();
        self.live.afterwards(move || telemetry.publish(invoked)).await;
    }

    fn invoked(&self, call: &CallRequest, told: &str, success: bool) -> ToolInvoked {
        let params = call.arguments.object().map(|object| Value::Object(object.clone()));
        ToolInvoked {
            call_id: call.call_id,
            prompt_name: self.prompt_name.clone(),
            adapter: self.adapter.clone(),
            name: call.name.clone(),
            params: params.and_then(small),
            success,
            rendered_output: excerpt(told),
            usage: None,
            run: RunContext::new(self.live.id(), call.evaluation_id),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        }
    }
}

/// What remains of a call that failed: its logs, where they still fit.
fn logs_of(
    state: &LiveState,
    draft: Option<&Draft>,
) -> Result<Prepared, backstitch_core::session::SessionError> {
    let session = &state.execution.session;
    match draft.map(|draft| session.prepare_logs(draft)) {
        Some(Ok(prepared)) => Ok(prepared),
        Some(Err(error)) => {
            tracing::warn!(%error, "the logs of a failed call could not be kept");
            session.prepare(&session.draft())
        }
        None => session.prepare(&session.draft()),
    }
}

fn told(result: &ToolResult) -> String {
    match (&result.value, result.message.is_empty()) {
        (Some(value), true) => value.to_string(),
        _ => result.message.clone(),
    }
}

fn charge(reservation: backstitch_core::id::ReservationId, elapsed: Duration) -> BudgetCharged {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let amounts = Amounts { calls: 1, millis, ..Amounts::ZERO };
    BudgetCharged { reservation: Some(reservation), amounts, extra: Extra::default() }
}
