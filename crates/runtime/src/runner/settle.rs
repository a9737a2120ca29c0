//! What a handler's answer becomes: what it did stands, or, where another call was in its way, it runs again.

use backstitch_core::crash_point;
use backstitch_core::journal::{CallOutcome, Effect};
use backstitch_core::message::Retry;
use backstitch_core::session::Draft;
use backstitch_core::tool::{Success, ToolResult, with_causes};

use super::files::{Hold, Rescue};
use super::finish::Ending;
use super::request::CallEnd;
use super::result::{self, Failure, Speaker};
use super::{CONFLICT_RETRIES, Settled, Started, ToolRunner, is_conflict};
use crate::error::RuntimeError;

impl ToolRunner {
    /// The handler answered.
    pub(super) async fn answered(
        &self,
        mut started: Started,
        hold: &Hold,
        mut result: ToolResult,
        mut draft: Draft,
    ) -> Result<Settled, RuntimeError> {
        self.secrets.redact_result(&mut result);
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
        match self.capture_resources(&started) {
            Ok(changed) => started.changed = changed,
            Err(error) => {
                let message = format!(
                    "the resources after {} could not be captured: {}",
                    started.tool.name(),
                    with_causes(&error)
                );
                let failure = Failure::by_runtime("capture_failed", message, Retry::Refused);
                return self
                    .rolled_back(started, hold, failure, Some(Box::new(draft)), CallEnd::Failed)
                    .await;
            }
        }
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
}

fn told(result: &ToolResult) -> String {
    match (&result.value, result.message.is_empty()) {
        (Some(value), true) => value.to_string(),
        _ => result.message.clone(),
    }
}
