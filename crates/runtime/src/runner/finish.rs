//! The last batch of a call, and its telemetry.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    BudgetCharged, CallChanges, CallFinished, CallVerdict, Effect, InnerMessage, PauseReason,
    WorkspaceRevision,
};
use backstitch_core::message::{Message, Retry};
use backstitch_core::object::Object;
use backstitch_core::session::{PreparedCommit, Session, SessionError};
use backstitch_core::slices::{RunContext, ToolInvoked, excerpt, small};
use backstitch_core::view::Call;
use serde_json::Value;

use super::attempt::catch_session_panic;
use super::files::Rescue;
use super::request::{CallOutcome, CallRequest};
use super::result::{self, Failure};
use super::{Attempt, ToolRunner, paused};
use crate::error::{Result, RuntimeError};
use crate::live::{Commit, Durable, RepositoriesChanged};

/// The content of a call's last batch, besides its changes.
pub(super) struct FinalBatch {
    pub(super) outcome: CallVerdict,
    pub(super) message: Option<Message>,
    pub(super) message_text: String,
    pub(super) after: Option<WorkspaceRevision>,
    /// The paths that the call changed, whether they are kept or rolled back.
    pub(super) changes: Option<CallChanges>,
    /// Objects to store with the files after the call.
    pub(super) objects: Vec<Object>,
    pub(super) rescue: Rescue,
    pub(super) note: Option<RepositoriesChanged>,
    pub(super) pause: Option<(PauseReason, String)>,
}

impl FinalBatch {
    /// Creates the batch of a failed call, which leaves nothing but its rescued files.
    pub(super) fn failed(
        message: Option<Message>,
        message_text: String,
        mut rescue: Rescue,
        note: Option<RepositoriesChanged>,
    ) -> Self {
        Self {
            outcome: CallVerdict::Failed,
            message,
            message_text,
            after: None,
            changes: rescue.changes.take(),
            objects: Vec::new(),
            rescue,
            note,
            pause: None,
        }
    }
}

/// The reason why a call's last batch was not appended.
#[derive(Debug)]
pub(super) enum OpenCall {
    /// The changes of the call do not fit the current state of the session. Only the call fails.
    Refused(SessionError),
    /// The session cannot continue.
    Runtime(RuntimeError),
}

impl From<RuntimeError> for OpenCall {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(error)
    }
}

impl From<OpenCall> for RuntimeError {
    fn from(unfinished: OpenCall) -> Self {
        match unfinished {
            OpenCall::Refused(error) => error.into(),
            OpenCall::Runtime(error) => error,
        }
    }
}

impl ToolRunner {
    /// Ends a call that a person or a rule denies. The files of an attempt that was interrupted are restored by then.
    pub(super) async fn deny(&self, call: &CallRequest, mut message: String) -> Result<CallOutcome> {
        let view = self.live.view().await;
        let known = view.call(call.call_id).filter(|known| known.may_have_run());
        if known.and_then(Call::recorded_effect).is_some_and(Effect::acts_outside) {
            message.push_str("; an earlier attempt was interrupted, and may have had an effect outside");
        }
        self.refuse(call, Failure::by_runtime("denied", message, Retry::Refused)).await
    }

    /// Refuses a call. The model receives the error. If an earlier attempt was interrupted, it ends with that;
    /// otherwise nothing else is recorded.
    pub(super) async fn refuse(&self, call: &CallRequest, mut failure: Failure) -> Result<CallOutcome> {
        failure.message = self.secrets.redact(&failure.message).into_owned();
        let message = result::failure(call, &failure);
        let live = &self.live;
        let invoked = self.invoked(call, &failure.message, false);
        let is_open = live.view().await.call(call.call_id).is_some_and(Call::is_open);
        let build = |commit: &mut Commit<'_>| -> Result<_> {
            let added = commit.durable(call.durable()).say(call.evaluation_id, call.turn, message)?;
            commit.dispatch(ToolInvoked { created_at: commit.time(), ..invoked })?;
            if is_open {
                commit.push(CallFinished {
                    summary: Some(result::summary(&failure.message)),
                    ..CallFinished::new(call.call_id, CallVerdict::Failed)
                });
            }
            Ok(added)
        };
        let added = live.commit(build).await?;
        Ok(CallOutcome::Failed(added))
    }

    /// Appends a call's last batch. Later failures do not make the call an error, since it has ended.
    pub(super) async fn finish(
        &self,
        started: &Attempt,
        ending: FinalBatch,
        prepare: impl FnOnce(&Session) -> Result<PreparedCommit, SessionError>,
    ) -> Result<Option<Arc<InnerMessage>>, OpenCall> {
        let (live, call) = (&self.live, &started.call);
        let elapsed = live.clock().monotonic().saturating_sub(started.started);
        let success = ending.outcome == CallVerdict::Succeeded;
        let invoked = self.invoked(call, &ending.message_text, success);
        let message_text = result::summary(&ending.message_text);
        let intent = started.intent.outstanding().await;
        let build = |commit: &mut Commit<'_>| -> Result<_, OpenCall> {
            commit.push_all(intent);
            // The changes of the call itself. All later ones are the runtime's.
            catch_session_panic(|| commit.keep(prepare)).map_err(OpenCall::Refused)?;
            let added = match ending.message {
                Some(message) => Some(commit.say(call.evaluation_id, call.turn, message)?),
                None => None,
            };
            // Right after the result that it repeats, with the same time, so that a store keeps both once.
            commit.dispatch(ToolInvoked { created_at: commit.time(), ..invoked })?;
            commit.push_all(ending.note.as_ref().map(RepositoriesChanged::note));
            commit.push_all(charge(started, elapsed));
            let view = commit.view();
            for changed in started.changed.iter().filter(|_| success) {
                changed.push_to(commit.batch(), live.clock().now(), Some(view));
            }
            commit.push(CallFinished {
                root: ending.after.map(|files| files.root),
                coverage: ending.after.or(ending.rescue.files).and_then(|files| files.coverage),
                rescue: ending.rescue.files.map(|files| files.root),
                left_out: ending.rescue.left_out,
                changes: ending.changes,
                elapsed_micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                summary: Some(message_text),
                ..CallFinished::new(call.call_id, ending.outcome)
            });
            commit.durable(if ending.pause.is_some() { Durable::Now } else { call.durable() });
            commit.push_all(ending.pause.map(|(reason, detail)| paused(call, reason, detail)));
            commit.add_objects(ending.objects.into_iter().chain(ending.rescue.objects));
            Ok(added)
        };
        let added = live.try_commit(build).await?;
        crash_point!("call.finished");
        Ok(added)
    }

    fn invoked(&self, call: &CallRequest, message_text: &str, success: bool) -> ToolInvoked {
        let params = call.arguments.object().map(|object| Value::Object(object.clone()));
        ToolInvoked {
            call_id: call.call_id,
            prompt_name: self.prompt_name.clone(),
            adapter: self.adapter.clone(),
            name: call.name.clone(),
            params: params.and_then(small),
            success,
            rendered_output: excerpt(message_text),
            usage: None,
            run: RunContext::new(self.live.id(), call.evaluation_id),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        }
    }
}

/// Returns the charge for a call. Without a budget only the costs of a sub-agent are charged.
fn charge(started: &Attempt, elapsed: Duration) -> Option<BudgetCharged> {
    let reservation = started.intent.record.reservation.map(|reservation| reservation.id);
    if reservation.is_none() && started.spent == Amounts::ZERO {
        return None;
    }
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let amounts = Amounts {
        calls: started.spent.calls.saturating_add(1),
        // The time of the sub-agent is part of the time of the call.
        millis: millis.max(started.spent.millis),
        ..started.spent
    };
    Some(BudgetCharged::new(reservation, amounts))
}
