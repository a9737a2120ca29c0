//! Successful handlers: the changes are committed, or the call runs again after a conflict.

use backstitch_core::crash_point;
use backstitch_core::journal::CallVerdict;
use backstitch_core::message::Retry;
use backstitch_core::session::{Draft, SessionError};
use backstitch_core::tool::{ToolResult, ToolStatus, with_causes};

use super::attempt::{Stop, catch_session_panic};
use super::files::{FilesAfter, Hold, Rescue};
use super::finish::{FinalBatch, OpenCall};
use super::request::CallOutcome;
use super::result::{self, Failure, Speaker};
use super::{Attempt, CONFLICT_RETRIES, Settlement, ToolRunner};
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::live::RepositoriesChanged;

impl ToolRunner {
    /// Handles a successful handler.
    pub(super) async fn handle_answer(
        &self,
        mut started: Attempt,
        hold: &Hold,
        mut result: ToolResult,
        mut draft: Draft,
    ) -> Result<Settlement> {
        result.redact(&self.secrets);
        if result.success == ToolStatus::No {
            let retry = Retry::Refused;
            let kind = "tool_failed".to_owned();
            let failure = Failure { speaker: Speaker::Tool, kind, message: result.message, retry };
            return boxed(|| {
                self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed)
            })
            .await;
        }
        // A caller that was dropped expects nothing, so the call is rolled back. If it may have had an effect
        // outside, its result is recorded. If there is a driver, the result is kept, so that the work need
        // not be repeated.
        if started.waiter.is_gone() && self.caller.is_none() && is_repeatable(&started) {
            return boxed(|| self.handle_stop(started, hold, Stop::Abandoned, Some(Box::new(draft)))).await;
        }
        if let Err(error) = catch_session_panic(|| result.apply_events(&mut draft)) {
            let failure = refused(&started, &error, Retry::Refused);
            return boxed(|| {
                self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed)
            })
            .await;
        }
        let captured = match hold.capture_after(started.before, started.call.guard_mode()).await {
            Ok(captured) => captured,
            // The tool did its work, so its model must not read that it failed.
            Err(error) if error.is_outage() => return Err(self.fail_restore(&started, error).await),
            Err(error) => {
                let message =
                    format!("the files after {} could not be captured: {error}", started.tool.name());
                let failure = Failure::by_runtime("capture_failed", message, Retry::Refused);
                return boxed(|| {
                    self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed)
                })
                .await;
            }
        };
        match self.capture_resources(&started) {
            Ok(changed) => started.changed = changed,
            Err(error) => {
                let message = format!(
                    "the resources after {} could not be captured: {}",
                    started.tool.name(),
                    with_causes(&error)
                );
                let failure = Failure::by_runtime("capture_failed", message, Retry::Refused);
                return boxed(|| {
                    self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed)
                })
                .await;
            }
        }
        crash_point!("call.files_captured");
        let (after, mut objects, changes, note) = match captured {
            Some(FilesAfter { files, objects, changes, repositories }) => {
                (Some(files), objects, changes, RepositoriesChanged::of_call(repositories))
            }
            None => (None, Vec::new(), None, None),
        };
        if let Some(changed) = &note {
            let line_break = if result.message.is_empty() { "" } else { "\n" };
            result.message.push_str(&format!("{line_break}{}", changed.text()));
        }
        let message_text = message_text(&result);
        objects.extend(result.take_objects());
        let ending = FinalBatch {
            outcome: CallVerdict::Succeeded,
            message: Some(result::success(&started.call, result)),
            message_text,
            after,
            changes,
            objects,
            rescue: Rescue::default(),
            note,
            pause: None,
        };
        match self.finish(&started, ending, |session| session.prepare(&draft)).await {
            Ok(message) => {
                started.end_resources(true);
                let message = message.ok_or(RuntimeError::ShuttingDown)?;
                Ok(Settlement::End(CallOutcome::Succeeded(message)))
            }
            Err(OpenCall::Refused(error @ SessionError::Conflict { .. })) => {
                boxed(|| self.handle_conflict(started, hold, draft, error)).await
            }
            // The session has changed since the handler dispatched this. Another attempt may fit.
            Err(OpenCall::Refused(error)) => {
                let retry = if is_repeatable(&started) { Retry::Allowed } else { Retry::Refused };
                let failure = refused(&started, &error, retry);
                boxed(|| self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed))
                    .await
            }
            Err(OpenCall::Runtime(error)) => {
                started.end_resources(false);
                Err(error)
            }
        }
    }

    /// Handles a conflict: another call has concurrently changed what this one overwrites. A call without
    /// effects outside runs again.
    async fn handle_conflict(
        &self,
        started: Attempt,
        hold: &Hold,
        draft: Draft,
        error: SessionError,
    ) -> Result<Settlement> {
        let repeatable =
            is_repeatable(&started) && self.live.repository_moves(started.call.call_id).await?.is_empty();
        if repeatable && started.conflicts < CONFLICT_RETRIES {
            let rescue = self.restore_attempt(&started, hold).await?;
            started.end_resources(false);
            // Edits of a person were overwritten as well, so this is recorded like any failed attempt.
            if rescue.files.is_some() {
                self.record_rescue(&started, rescue, error.to_string()).await?;
            }
            return Ok(Settlement::Conflict);
        }
        let name = started.tool.name();
        let (message, retry) = if repeatable {
            (format!("{name} ran into other calls again and again: {error}"), Retry::Allowed)
        } else {
            (format!("{name} ran, but what it changed here could not be kept: {error}"), Retry::Refused)
        };
        let failure = Failure::by_runtime("conflict", message, retry);
        boxed(|| self.roll_back(started, hold, failure, Some(Box::new(draft)), CallOutcome::Failed)).await
    }
}

/// True if a call can run again without repeating an effect outside.
fn is_repeatable(started: &Attempt) -> bool {
    !started.intent.record.effect.acts_outside()
}

/// Returns the failure for the model if the session refuses the changes of a call.
fn refused(started: &Attempt, error: &SessionError, retry: Retry) -> Failure {
    let name = started.tool.name();
    match error {
        SessionError::Panicked { message } => {
            let message = format!("a reducer of what {name} changed panicked: {message}");
            Failure::by_runtime("panic", message, Retry::Refused)
        }
        error => {
            let error = with_causes(error);
            let message = format!("what {name} changed does not fit the session: {error}");
            Failure::by_runtime("invalid_value", message, retry)
        }
    }
}

fn message_text(result: &ToolResult) -> String {
    match (&result.value, result.message.is_empty()) {
        (Some(value), true) => value.to_string(),
        _ => result.message.clone(),
    }
}
