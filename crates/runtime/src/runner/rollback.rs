//! How a call fails: everything is put back, and one batch says why.

use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::journal::{
    CallFinished, CallVerdict, Effect, InnerMessage, ObservationCause, PauseReason, RecordBody,
    WorkspaceObserved, WorkspaceRevision,
};
use backstitch_core::message::Retry;
use backstitch_core::session::{Draft, PreparedCommit, Session, SessionError};
use backstitch_core::tool::ToolError;

use super::attempt::{Stop, caught};
use super::files::{Hold, Rescue};
use super::finish::FinalBatch;
use super::request::CallOutcome;
use super::result::{self, Failure, Speaker};
use super::{Attempt, Settlement, ToolRunner, paused};
use crate::error::RuntimeError;

impl ToolRunner {
    /// The handler gave an error.
    pub(super) async fn failed(
        &self,
        started: Attempt,
        hold: &Hold,
        error: ToolError,
        draft: Option<Box<Draft>>,
    ) -> Result<Settlement, RuntimeError> {
        let speaker = Speaker::Tool;
        let failure = match error {
            ToolError::Failed { kind, message, retry, .. } => Failure { speaker, kind, message, retry },
            ToolError::Validation { message } => {
                Failure { speaker, kind: "validation".to_owned(), message, retry: Retry::Allowed }
            }
            ToolError::VisibilityExpansionRequired { sections, reason } => {
                return self.never_ran(started, hold, sections, reason).await;
            }
            ToolError::DeadlineExceeded => return self.stopped(started, hold, Stop::Deadline, draft).await,
            other => Failure::by_runtime("tool_failed", other.to_string(), Retry::Refused),
        };
        self.rolled_back(started, hold, failure, draft, CallOutcome::Failed).await
    }

    /// The handler was stopped.
    pub(super) async fn stopped(
        &self,
        started: Attempt,
        hold: &Hold,
        stop: Stop,
        draft: Option<Box<Draft>>,
    ) -> Result<Settlement, RuntimeError> {
        if matches!(stop, Stop::Cancelled | Stop::Abandoned) && self.goes_on(&started) {
            return self.left_open(started, hold).await;
        }
        let name = started.tool.name();
        let (kind, message, retry, end): (_, _, _, fn(_) -> CallOutcome) = match stop {
            Stop::Timeout => {
                let limit = started.tool.spec.timeout.unwrap_or_default();
                let message = format!("{name} took longer than {limit:?} and was stopped");
                ("timeout", message, Retry::Allowed, CallOutcome::Failed)
            }
            Stop::Deadline => {
                let message = format!("{name} was stopped, because the evaluation's deadline has passed");
                ("deadline_exceeded", message, Retry::Refused, CallOutcome::DeadlineExceeded)
            }
            Stop::Cancelled | Stop::Abandoned => {
                let unknown = match started.tool.spec.effect {
                    Effect::External | Effect::Idempotent => {
                        "; whether it had an effect outside is not known"
                    }
                    Effect::Pure | Effect::Workspace => "",
                };
                let message = format!("{name} was cancelled before it was done{unknown}");
                ("cancelled", message, Retry::Allowed, CallOutcome::Cancelled)
            }
        };
        let failure = Failure::by_runtime(kind, message, retry);
        self.rolled_back(started, hold, failure, draft, end).await
    }

    /// Whether a call that was stopped is made again when its session goes on. One that may have had an effect outside is not: its
    /// agent is told, and decides.
    fn goes_on(&self, started: &Attempt) -> bool {
        let is_stopped = self.caller.is_some() && started.waiter.stop().is_cancelled();
        is_stopped && started.tool.spec.effect != Effect::External
    }

    /// The session was stopped while the call ran. Its files are put back, and it is left open, to be made again by whoever resumes.
    /// That its files were put back is recorded, so that what a person changes from here on is not taken for the call's.
    async fn left_open(&self, started: Attempt, hold: &Hold) -> Result<Settlement, RuntimeError> {
        let rescue = self.put_back(&started, hold).await?;
        let detail = format!("it was stopped; {} is made again when it goes on", started.tool.name());
        let paused = paused(&started.call, PauseReason::Asked, detail);
        let restored =
            started.before.filter(|_| !rescue.is_partial).map(|WorkspaceRevision { root, coverage }| {
                WorkspaceObserved { coverage, ..WorkspaceObserved::new(root, ObservationCause::Restored) }
            });
        let bodies = restored.map(RecordBody::from).into_iter().chain([paused.into()]);
        // With the intent, if that is not recorded yet: it knows what was approved, and with which arguments.
        let recorded = started.intent.append(&self.live, bodies).await;
        started.end_resources(false);
        recorded.map(|()| Settlement::End(CallOutcome::Stopped))
    }

    /// The call failed: files are put back, logs are kept, and the model is told.
    pub(super) async fn rolled_back(
        &self,
        started: Attempt,
        hold: &Hold,
        failure: Failure,
        draft: Option<Box<Draft>>,
        end: fn(Arc<InnerMessage>) -> CallOutcome,
    ) -> Result<Settlement, RuntimeError> {
        let rescue = self.put_back(&started, hold).await?;
        let mut failure = failure;
        failure.message = self.secrets.redact(&failure.message).into_owned();
        if let Some(text) = self.not_rolled_back(&started, &rescue).await {
            failure.message.push_str(&text);
        }
        // One that nobody waits for any more, and that no driver drives, was not stopped by anyone who would let it go on.
        let pauses = failure.kind == "cancelled" && (self.caller.is_some() || !started.waiter.is_gone());
        let pause = pauses.then(|| (PauseReason::Asked, failure.message.clone()));
        let ending = FinalBatch {
            outcome: CallVerdict::Failed,
            message: Some(result::failure(&started.call, &failure)),
            told: failure.message,
            after: None,
            objects: Vec::new(),
            rescue,
            pause,
        };
        let message = self.finish(&started, ending, |session| logs_of(session, draft.as_deref())).await?;
        started.end_resources(false);
        Ok(Settlement::End(end(message.ok_or(RuntimeError::ShuttingDown)?)))
    }

    /// The call counts as never made: everything is put back, its intent is closed, and the model is told nothing.
    pub(super) async fn never_ran(
        &self,
        started: Attempt,
        hold: &Hold,
        sections: Vec<String>,
        reason: String,
    ) -> Result<Settlement, RuntimeError> {
        let rescue = self.put_back(&started, hold).await?;
        let reason = self.secrets.redact(&reason).into_owned();
        let ending = FinalBatch {
            outcome: CallVerdict::Failed,
            message: None,
            told: reason.clone(),
            after: None,
            objects: Vec::new(),
            rescue,
            pause: None,
        };
        self.finish(&started, ending, |session| logs_of(session, None)).await?;
        started.end_resources(false);
        Ok(Settlement::End(CallOutcome::VisibilityExpansion { sections, reason }))
    }

    /// Puts the files and the resources back. What is found of them is durable before: it may hold what a person wrote, and a process that dies
    /// after the files were put back has nothing else that remembers it.
    pub(super) async fn put_back(&self, started: &Attempt, hold: &Hold) -> Result<Rescue, RuntimeError> {
        crash_point!("call.before_restore");
        let mut rescue = match hold.rescue(started.before, self.rescue_bytes).await {
            Ok(rescue) => rescue,
            Err(error) => return Err(self.cannot_put_back(started, error).await),
        };
        if let (Some(files), Some(before)) = (rescue.files, started.before) {
            let objects = std::mem::take(&mut rescue.objects);
            let kept = match self.live.keep_rescue(files, objects).await {
                Ok(position) => position,
                Err(error) => {
                    started.end_resources(false);
                    return Err(error);
                }
            };
            match hold.restore(before).await {
                Ok(restored) => {
                    rescue.is_partial = !restored.kept.is_empty();
                    rescue.not_restored.extend(restored.kept.iter().cloned());
                    self.live.note_restored(restored, Some(kept)).await?;
                }
                Err(error) => return Err(self.cannot_put_back(started, error).await),
            }
        }
        self.restore_resources(started).await?;
        crash_point!("call.after_restore");
        Ok(rescue)
    }

    /// What the model is told of paths that a rollback does not undo. A call that ran no process and changed nothing is not
    /// concerned.
    async fn not_rolled_back(&self, started: &Attempt, rescue: &Rescue) -> Option<String> {
        let call = started.call.call_id;
        let ran = self.live.state().await.view.call(call).is_some_and(|call| !call.processes.is_empty());
        match ran || rescue.files.is_some() {
            true => result::not_rolled_back(&rescue.not_restored),
            false => None,
        }
    }

    async fn cannot_put_back(&self, started: &Attempt, error: RuntimeError) -> RuntimeError {
        started.end_resources(false);
        let reason = format!("the files before {} could not be put back: {error}", started.tool.name());
        self.live.poison(reason).await
    }

    /// Records what was put back of an attempt that does not count.
    pub(super) async fn record_rescue(
        &self,
        started: &Attempt,
        rescue: Rescue,
        why: String,
    ) -> Result<(), RuntimeError> {
        let elapsed = self.live.clock().monotonic().saturating_sub(started.started);
        self.live
            .commit(|commit| {
                commit.push(CallFinished {
                    coverage: rescue.files.and_then(|files| files.coverage),
                    rescue: rescue.files.map(|files| files.root),
                    left_out: rescue.left_out,
                    elapsed_micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                    summary: Some(result::summary(&why)),
                    ..CallFinished::new(started.call.call_id, CallVerdict::Failed)
                });
                commit.add_objects(rescue.objects);
                Ok(())
            })
            .await
    }
}

/// What remains of a call that failed: its logs, where they still fit.
fn logs_of(session: &Session, draft: Option<&Draft>) -> Result<PreparedCommit, SessionError> {
    match draft.map(|draft| caught(|| session.prepare_logs(draft))) {
        Some(Ok(prepared)) => Ok(prepared),
        Some(Err(error)) => {
            tracing::warn!(%error, "the logs of a failed call could not be kept");
            Ok(session.prepare_nothing())
        }
        None => Ok(session.prepare_nothing()),
    }
}
