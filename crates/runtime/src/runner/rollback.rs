//! Failures of calls: all changes are rolled back, and one batch records the reason.

use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::journal::{
    CallFinished, CallVerdict, InnerMessage, ObservationCause, PauseReason, RecordBody, SessionPaused,
    WorkspaceObserved, WorkspaceRevision,
};
use backstitch_core::message::Retry;
use backstitch_core::ports::FilePath;
use backstitch_core::session::{Draft, PreparedCommit, Session, SessionError};
use backstitch_core::tool::{ContextError, ToolError};

use super::attempt::{Stop, catch_session_panic};
use super::files::{Hold, Rescue};
use super::finish::FinalBatch;
use super::request::CallOutcome;
use super::result::{self, Failure};
use super::{Attempt, Settlement, ToolRunner, paused};
use crate::error::{Result, RuntimeError};
use crate::live::{OtherCalls, RepositoriesChanged};

impl ToolRunner {
    /// Handles an error of the handler.
    pub(super) async fn handle_failure(
        &self,
        started: Attempt,
        hold: &Hold,
        error: ToolError,
        draft: Option<Box<Draft>>,
    ) -> Result<Settlement> {
        if is_outage(&error) {
            let ahead = RuntimeError::AheadOfStore { session: self.live.id() };
            return Err(self.fail_restore(&started, ahead).await);
        }
        let failure = match error {
            ToolError::VisibilityExpansionRequired { sections, reason } => {
                return self.never_ran(started, hold, sections, reason).await;
            }
            ToolError::DeadlineExceeded => {
                return self.handle_stop(started, hold, Stop::Deadline, draft).await;
            }
            other => Failure::of_tool(other),
        };
        self.roll_back(started, hold, failure, draft, CallOutcome::Failed).await
    }

    /// Handles a stopped handler.
    pub(super) async fn handle_stop(
        &self,
        started: Attempt,
        hold: &Hold,
        stop: Stop,
        draft: Option<Box<Draft>>,
    ) -> Result<Settlement> {
        let mut moves = Vec::new();
        if matches!(stop, Stop::Cancelled | Stop::Abandoned) && self.runs_again(&started) {
            // What it did in the repository is not rolled back, and must not happen twice.
            moves = self.live.repository_moves(started.call.call_id).await?;
            if moves.is_empty() {
                return self.leave_open(started, hold).await;
            }
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
            Stop::Cancelled | Stop::Abandoned | Stop::Waits | Stop::LeaseOver => {
                let unknown = if started.intent.record.effect.acts_outside() {
                    "; whether it had an effect outside is not known"
                } else {
                    ""
                };
                let mut message = format!("{name} was cancelled before it was done{unknown}");
                if !moves.is_empty() {
                    let moves = moves.join("; ");
                    message.push_str(&format!(
                        "; what it changed in the repository is not rolled back: {moves}"
                    ));
                }
                ("cancelled", message, Retry::Allowed, CallOutcome::Cancelled)
            }
        };
        let failure = Failure::by_runtime(kind, message, retry);
        self.roll_back(started, hold, failure, draft, end).await
    }

    /// True if a stopped call runs again when its session is resumed. A call that may have had an effect
    /// outside does not: its agent receives an error, and decides.
    fn runs_again(&self, started: &Attempt) -> bool {
        let is_stopped = self.caller.is_some() && started.waiter.stop.is_cancelled();
        is_stopped && started.intent.record.effect.is_repeatable()
    }

    /// Handles a call whose session was stopped. Its files are restored, and it is left open, to run again on
    /// resume. The restore is recorded, so that later changes by a person are not attributed to the call.
    async fn leave_open(&self, started: Attempt, hold: &Hold) -> Result<Settlement> {
        let detail = format!("it was stopped; {} runs again when it is resumed", started.tool.name());
        let paused = paused(&started.call, PauseReason::Asked, detail);
        self.leave_paused(started, hold, paused, CallOutcome::Stopped).await
    }

    /// Restores the files of a call, and leaves it open with a pause.
    pub(super) async fn leave_paused(
        &self,
        started: Attempt,
        hold: &Hold,
        paused: SessionPaused,
        outcome: CallOutcome,
    ) -> Result<Settlement> {
        let mut rescue = self.restore_attempt(&started, hold).await?;
        let note = RepositoriesChanged::of_call(std::mem::take(&mut rescue.repositories));
        let restored =
            started.before.filter(|_| !rescue.is_partial).map(|WorkspaceRevision { root, coverage }| {
                WorkspaceObserved { coverage, ..WorkspaceObserved::new(root, ObservationCause::Restored) }
            });
        let note = note.map(|changed| changed.note().into());
        let bodies = restored.map(RecordBody::from).into_iter().chain(note).chain([paused.into()]);
        // With the intent, if that is not recorded yet: it has the approval and the arguments.
        let recorded = started.intent.append(&self.live, bodies).await;
        started.end_resources(false);
        recorded.map(|()| Settlement::End(outcome))
    }

    /// Handles a failed call: files are restored, logs are kept, and the model receives the error.
    pub(super) async fn roll_back(
        &self,
        started: Attempt,
        hold: &Hold,
        failure: Failure,
        draft: Option<Box<Draft>>,
        end: fn(Arc<InnerMessage>) -> CallOutcome,
    ) -> Result<Settlement> {
        let mut rescue = self.restore_attempt(&started, hold).await?;
        let mut failure = failure;
        failure.message = self.secrets.redact(&failure.message).into_owned();
        if let Some(text) = self.describe_not_rolled_back(&started, &rescue).await {
            failure.message.push_str(&text);
        }
        let note = RepositoriesChanged::of_call(std::mem::take(&mut rescue.repositories));
        if let Some(changed) = &note {
            failure.message.push_str(&format!("\n{}", changed.text()));
        }
        // A call without a driver whose caller was dropped does not pause the session, since nothing would
        // resume it.
        let pauses = failure.kind == "cancelled" && (self.caller.is_some() || !started.waiter.is_gone());
        let pause = pauses.then(|| (PauseReason::Asked, failure.message.clone()));
        let message = Some(result::failure(&started.call, &failure));
        let ending = FinalBatch { pause, ..FinalBatch::failed(message, failure.message, rescue, note) };
        let message = self.finish(&started, ending, |session| logs_of(session, draft.as_deref())).await?;
        started.end_resources(false);
        Ok(Settlement::End(end(message.ok_or(RuntimeError::ShuttingDown)?)))
    }

    /// Handles a call that counts as never made: its changes are rolled back, its intent is closed, and the
    /// model receives nothing.
    pub(super) async fn never_ran(
        &self,
        started: Attempt,
        hold: &Hold,
        sections: Vec<String>,
        reason: String,
    ) -> Result<Settlement> {
        let mut rescue = self.restore_attempt(&started, hold).await?;
        let note = RepositoriesChanged::of_call(std::mem::take(&mut rescue.repositories));
        let reason = self.secrets.redact(&reason).into_owned();
        let ending = FinalBatch::failed(None, reason.clone(), rescue, note);
        self.finish(&started, ending, |session| logs_of(session, None)).await?;
        started.end_resources(false);
        Ok(Settlement::End(CallOutcome::VisibilityExpansion { sections, reason }))
    }

    /// Restores the files and the resources. The current files are durable before: they may hold edits of a
    /// person, and after a crash nothing else would have them.
    pub(super) async fn restore_attempt(&self, started: &Attempt, hold: &Hold) -> Result<Rescue> {
        crash_point!("call.before_restore");
        self.check_lease(started)?;
        let mut rescue = match hold.rescue(started.before, self.rescue_bytes).await {
            Ok(rescue) => rescue,
            Err(error) => return Err(self.fail_restore(started, error).await),
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
            let of_others = match self.files_of_others(started).await {
                Ok(paths) => paths,
                Err(error) => return Err(self.fail_restore(started, error).await),
            };
            self.check_lease(started)?;
            match hold.restore(before, of_others).await {
                Ok(restored) => {
                    rescue.is_partial = !restored.kept.is_empty();
                    rescue.not_restored.extend(restored.kept.iter().cloned());
                    self.live.note_restored(restored, Some(kept)).await?;
                }
                Err(error) => return Err(self.fail_restore(started, error).await),
            }
        }
        match hold.check_repositories().await {
            Ok(changes) => rescue.repositories = changes,
            Err(error) => return Err(self.fail_restore(started, error).await),
        }
        self.restore_resources(started).await?;
        crash_point!("call.after_restore");
        Ok(rescue)
    }

    /// Returns the paths that file tools of other sessions have changed since an attempt began. What else changed in its directory
    /// counts as its own change.
    async fn files_of_others(&self, started: &Attempt) -> Result<Vec<FilePath>> {
        let view = self.live.view().await;
        let intent = view.call(started.call.call_id).and_then(|call| call.intent.as_ref());
        let began = intent.map(|intent| intent.at);
        let Some(began) = began else { return Ok(Vec::new()) };
        let paths = self.live.changed_by_others(began, OtherCalls::NamingTheirPaths).await?;
        Ok(paths.iter().filter_map(|path| FilePath::new(path).ok()).collect())
    }

    /// Returns a text for the model about paths that a rollback does not undo. `None` if the call ran no
    /// process and changed nothing.
    async fn describe_not_rolled_back(&self, started: &Attempt, rescue: &Rescue) -> Option<String> {
        let call = started.call.call_id;
        let ran = self.live.view().await.call(call).is_some_and(|call| !call.processes.is_empty());
        if ran || rescue.files.is_some() {
            result::describe_not_rolled_back(&rescue.not_restored)
        } else {
            None
        }
    }

    /// Fails if another process may have the session, whose files these may be.
    pub(super) fn check_lease(&self, started: &Attempt) -> Result<()> {
        self.live.check_lease().inspect_err(|_| started.end_resources(false))
    }

    pub(super) async fn fail_restore(&self, started: &Attempt, error: RuntimeError) -> RuntimeError {
        started.end_resources(false);
        let reason = format!("the files before {} could not be restored: {error}", started.tool.name());
        self.live.fail_files(error, reason).await
    }

    /// Records the files that were saved for an attempt that does not count.
    pub(super) async fn record_rescue(&self, started: &Attempt, rescue: Rescue, why: String) -> Result<()> {
        let elapsed = self.live.clock().monotonic().saturating_sub(started.started);
        self.live
            .commit(|commit| {
                commit.push(CallFinished {
                    coverage: rescue.files.and_then(|files| files.coverage),
                    rescue: rescue.files.map(|files| files.root),
                    left_out: rescue.left_out,
                    changes: rescue.changes,
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

/// Returns what is kept of a failed call: its logs, where they still fit.
fn logs_of(session: &Session, draft: Option<&Draft>) -> Result<PreparedCommit, SessionError> {
    match draft.map(|draft| catch_session_panic(|| session.prepare_logs(draft))) {
        Some(Ok(prepared)) => Ok(prepared),
        Some(Err(error)) => {
            tracing::warn!(%error, "the logs of a failed call could not be kept");
            Ok(session.prepare_nothing())
        }
        None => Ok(session.prepare_nothing()),
    }
}

/// Whether the store did not take a step or a wait of a handler. That says nothing about the tool, which may have acted.
fn is_outage(error: &ToolError) -> bool {
    let cause = match error.source().and_then(|source| source.downcast_ref::<ContextError>()) {
        Some(ContextError::Step { source, .. } | ContextError::Wait { source, .. }) => {
            source.downcast_ref::<RuntimeError>()
        }
        _ => None,
    };
    cause.is_some_and(RuntimeError::is_outage)
}
