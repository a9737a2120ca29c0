//! Tool calls of external callers that have their own loop, such as MCP clients.
//!
//! Such a caller sends calls one by one, and no policy is asked. Each call becomes a turn of an open evaluation:
//! a message with the call, and one with its result. So the conversation is complete, and a model can continue it.
//! Everything else is as for the calls of an answer: approval, budget, transactions, sub-agents.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{Decision, InnerMessage, PauseReason, PauseResolved};
use backstitch_core::machine::{EvaluationResult, PendingCall};
use backstitch_core::message::{Arguments, Message, OptionCall, OptionResultBuilder, Retry};
use backstitch_core::view::{Call, CallStatus};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::agent::Mission;
use crate::content::call_message;
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::live::{Durable, still_waits};
use crate::runner::{CallOutcome, first_question};

/// Interval at which decisions about a call that waits are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The end of a sentence about a call that was stopped.
pub(crate) const STOPPED: &str = "was stopped with its server, and rolled back";

/// The call of a caller outside, as it is recorded.
pub(crate) struct RecordedCall {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    /// `None` while it has no result.
    pub(crate) result: Option<Arc<InnerMessage>>,
}

/// A call that is about to be made.
pub(crate) struct NewCall<'a> {
    pub(crate) id: CallId,
    /// The id that the caller knows it by.
    pub(crate) foreign: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
}

/// What ends a call from outside.
pub(crate) struct CallEnds<'a> {
    /// Stops the call, which is then rolled back.
    pub(crate) cancel: &'a CancellationToken,
    /// Gives the call up if it waits for a decision. One that runs is finished.
    pub(crate) give_up: &'a CancellationToken,
}

/// What ends the wait for a decision.
enum WaitEnd {
    Decided,
    Cancelled,
    GivenUp,
}

/// A question about a call that waits for approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub name: String,
    /// The arguments that it would run with.
    pub arguments: Map<String, Value>,
    /// What has changed since it was approved, in a sentence, if it is asked about again.
    pub change: Option<String>,
}

/// A decision about a call, and its author.
#[derive(Debug, Clone)]
pub struct ApproverDecision {
    /// The decision.
    pub decision: Decision,
    /// The person or the program that decided, for the journal. A program is never named as a person.
    pub by: String,
}

/// Decides about a call that waits for approval, in addition to the inbox. `None` leaves it to the inbox.
pub(crate) type AskedDecision<'a> =
    std::pin::Pin<Box<dyn Future<Output = Option<ApproverDecision>> + Send + 'a>>;

impl Driver {
    /// Returns the open evaluation. Without one, starts it with this mission.
    pub(crate) async fn open_outside(&self, mission: &str) -> Result<EvaluationId> {
        let open = self.live.view().await.open_evaluation().map(|open| open.evaluation_id);
        match open {
            Some(open) => Ok(open),
            None => boxed(|| self.begin(Mission::from(mission), None)).await,
        }
    }

    /// Fails if an evaluation is open that a model or another policy decides in.
    pub(crate) async fn check_outside(&self) -> Result<()> {
        let state = self.live.state().await;
        match state.view.open_evaluation() {
            Some(open) if open.decider.as_ref() != Some(self.agent.policy.name()) => {
                Err(RuntimeError::EvaluationOpen { evaluation: open.evaluation_id })
            }
            _ => Ok(()),
        }
    }

    /// Ends the open evaluation, with its open calls. Files that an interrupted call left are restored.
    pub(crate) async fn close_outside(&self, why: impl Fn(&Call) -> &'static str) -> Result<()> {
        self.live.settle_files().await?;
        self.end_outside_calls(why).await?;
        let open = self.live.view().await.open_evaluation().map(|open| open.evaluation_id);
        match open {
            Some(open) => boxed(|| self.finish(open, EvaluationResult::completed(None))).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Ends every call without a result. None of them runs any more.
    pub(crate) async fn end_outside_calls(&self, why: impl Fn(&Call) -> &'static str) -> Result<()> {
        let pending: Vec<Call> = self.live.view().await.pending_calls().cloned().collect();
        // The last one first: files are restored to their state before the first one.
        for call in pending.iter().rev() {
            self.end_call_unrun(call, format!("{} {}", call.name, why(call))).await?;
        }
        Ok(())
    }

    /// Ends a call without a result, which does not run any more.
    pub(super) async fn end_call_unrun(&self, call: &Call, why: String) -> Result<()> {
        let reason = self.live.pause_of(call.call_id).await.map(|pause| pause.reason);
        if call.may_have_run() || reason == Some(PauseReason::EffectUnknown) {
            let decision = Decision::Fail { reason: Some(why) };
            return self.live.resolve(Some(call.call_id), decision, None).await;
        }
        self.refuse_outside(call.evaluation_id, call.call_id, &why).await.map(drop)
    }

    /// Records an error as the result of a call that has not started.
    async fn refuse_outside(
        &self,
        evaluation: EvaluationId,
        call: CallId,
        why: &str,
    ) -> Result<Option<Arc<InnerMessage>>> {
        let made = self.live.view().await.transcript()?.message_of(call).cloned();
        let Some(made) = made else { return Ok(None) };
        let Some(asked) = made.message.option_call() else { return Ok(None) };
        self.end_pause(call, Decision::Deny { reason: Some(why.to_owned()) }).await?;
        let wanted = PendingCall {
            call_id: call,
            name: asked.option_name.clone(),
            arguments: asked.arguments.clone(),
            turn: made.turn,
            step_num: made.message.step_num,
            made_at: None,
            refusal: Some(why.to_owned()),
        };
        let request = self.calls.request(evaluation, &wanted).await?;
        let ended = boxed(|| self.calls.runner.run(request)).await?;
        Ok(ended.message().cloned())
    }

    /// Records that the pauses about a call have ended, if there are any.
    async fn end_pause(&self, call: CallId, decision: Decision) -> Result<()> {
        let decision = match self.live.pause_of(call).await.map(|pause| pause.reason) {
            None => return Ok(()),
            Some(PauseReason::Approval) => decision,
            Some(_) => Decision::Continue,
        };
        let resolved = PauseResolved::new(decision).of_call(call).by(self.live.claim().owner.to_string());
        self.live.record_when(vec![resolved.into()], Durable::WithNext).await
    }

    /// Returns a visible call.
    pub(crate) async fn recorded_call(&self, id: CallId) -> Result<Option<RecordedCall>> {
        let view = self.live.view().await;
        let Some(known) = view.call(id) else { return Ok(None) };
        let result = match known.status() {
            CallStatus::Pending => None,
            _ => result_of(&view.messages_of(known.evaluation_id)?, id),
        };
        let arguments = self.content.arguments(id).await?;
        let arguments = arguments.and_then(|arguments| arguments.object().cloned()).unwrap_or_default();
        let result = match result {
            Some(result) => Some(self.content.message(&result).await?),
            None => None,
        };
        Ok(Some(RecordedCall { name: known.name.clone(), arguments, result }))
    }

    /// Makes a call and returns its result, with all content. A call that waits for approval waits until it is
    /// decided: by the answer of `ask`, or by a decision in the inbox.
    pub(crate) async fn call_outside<'a>(
        &self,
        evaluation: EvaluationId,
        call: NewCall<'_>,
        ends: CallEnds<'_>,
        ask: impl Fn(ApprovalQuestion) -> AskedDecision<'a>,
    ) -> Result<Arc<InnerMessage>> {
        let wanted = self.make_outside(evaluation, &call).await?;
        loop {
            let stop = self.inbox.stop.child_token();
            let mut request = self.calls.request(evaluation, &wanted).await?;
            request.cancel = Some(stop.clone());
            let mut running = Box::pin(self.calls.runner.run(request));
            let ended = tokio::select! {
                biased;
                ended = &mut running => ended,
                () = ends.cancel.cancelled() => {
                    stop.cancel();
                    running.await
                }
            }?;
            let refusal = match ended {
                CallOutcome::Succeeded(result)
                | CallOutcome::Failed(result)
                | CallOutcome::DeadlineExceeded(result) => {
                    return self.content.message(&result).await;
                }
                CallOutcome::Cancelled(result) => {
                    self.end_pause(call.id, Decision::Continue).await?;
                    self.live.flush().await?;
                    return self.content.message(&result).await;
                }
                CallOutcome::NeedsApproval | CallOutcome::Waits => {
                    match self.wait_for_decision(&wanted, &ends, &ask).await? {
                        WaitEnd::Decided => {
                            // The decision may be that it happened, or that it counts as failed.
                            match self.recorded_call(call.id).await?.and_then(|known| known.result) {
                                Some(result) => return Ok(result),
                                None => continue,
                            }
                        }
                        WaitEnd::Cancelled => "was cancelled while it waited for a decision".to_owned(),
                        WaitEnd::GivenUp => {
                            "was given up while it waited for a decision, because its caller is gone"
                                .to_owned()
                        }
                    }
                }
                CallOutcome::VisibilityExpansion { reason, .. } => format!("is not available: {reason}"),
                CallOutcome::BudgetExhausted => "was not run, because the budget is spent".to_owned(),
                CallOutcome::Stopped => STOPPED.to_owned(),
            };
            return self.give_up_outside(evaluation, &call, &refusal).await;
        }
    }

    /// Ends a call that does not run to its end.
    async fn give_up_outside(
        &self,
        evaluation: EvaluationId,
        call: &NewCall<'_>,
        why: &str,
    ) -> Result<Arc<InnerMessage>> {
        let why = format!("{} {why}", call.name);
        let may_have_run = self.live.view().await.call(call.id).is_some_and(Call::may_have_run);
        if may_have_run {
            self.end_pause(call.id, Decision::Continue).await?;
            self.live.resolve(Some(call.id), Decision::Fail { reason: Some(why) }, None).await?;
        } else {
            self.refuse_outside(evaluation, call.id, &why).await?;
        }
        let recorded = self.recorded_call(call.id).await?.and_then(|call| call.result);
        recorded.ok_or(RuntimeError::Internal { reason: format!("call {} ended without a result", call.id) })
    }

    /// Records the message of a call. It is durable before the call changes anything.
    async fn make_outside(&self, evaluation: EvaluationId, call: &NewCall<'_>) -> Result<PendingCall> {
        let arguments = Arguments::from_object(call.arguments.clone());
        let turn = self
            .live
            .commit(|commit| {
                let known = commit.view().evaluation(evaluation);
                let turn = known.ok_or(RuntimeError::NoEvaluation { evaluation })?.turns + 1;
                commit.durable(Durable::WithNext).say(evaluation, turn, self.message_of(call))?;
                Ok(turn)
            })
            .await?;
        Ok(PendingCall {
            call_id: call.id,
            name: call.name.to_owned(),
            arguments,
            turn,
            step_num: None,
            made_at: None,
            refusal: None,
        })
    }

    fn message_of(&self, call: &NewCall<'_>) -> Message {
        let mut option = OptionCall::new(call.id, call.name, Arguments::from_object(call.arguments.clone()));
        option.provider_call_id = call.foreign.map(str::to_owned);
        call_message(self.agent.policy.name().clone(), option, None)
    }

    /// Records a call that has been carried out without the runner, with its result.
    pub(crate) async fn record_outside(
        &self,
        evaluation: EvaluationId,
        call: NewCall<'_>,
        result: &Result<Value, String>,
    ) -> Result<Arc<InnerMessage>> {
        let made = self.message_of(&call);
        let mut builder = OptionResultBuilder::response_to(&made)?;
        let answer = match result {
            Ok(value) => builder.as_runtime().success(value.clone()),
            Err(message) => builder.as_runtime().error("refused", message.clone(), Retry::Refused),
        };
        self.live
            .commit(|commit| {
                let known = commit.view().evaluation(evaluation);
                let turn = known.ok_or(RuntimeError::NoEvaluation { evaluation })?.turns + 1;
                commit.say(evaluation, turn, made)?;
                commit.say(evaluation, turn, answer)
            })
            .await
    }

    /// Returns the question about a call. One that is asked about again has the arguments that a person gave it.
    async fn question_about(&self, wanted: &PendingCall) -> ApprovalQuestion {
        let view = self.live.view().await;
        let edited = view.call(wanted.call_id).and_then(Call::edited_arguments);
        let arguments = edited.or_else(|| wanted.arguments.object()).cloned().unwrap_or_default();
        let pause = view.pauses().find(|pause| pause.call_id == Some(wanted.call_id));
        let detail = pause.and_then(|pause| pause.detail.clone());
        let change = detail.filter(|detail| *detail != first_question(&wanted.name));
        ApprovalQuestion { call: wanted.call_id, name: wanted.name.clone(), arguments, change }
    }

    /// Waits until the call may run, or has been decided about otherwise.
    async fn wait_for_decision<'a>(
        &self,
        wanted: &PendingCall,
        ends: &CallEnds<'_>,
        ask: &impl Fn(ApprovalQuestion) -> AskedDecision<'a>,
    ) -> Result<WaitEnd> {
        let call = wanted.call_id;
        let mut asked = Some(ask(self.question_about(wanted).await));
        loop {
            boxed(|| self.inbox.receive_decisions()).await?;
            let pause = self.live.pause_of(call).await;
            match pause.as_ref().map(|pause| pause.session) {
                // It waits for files that a sub-agent of another call has, or it is decided.
                None => {
                    if !self.live.condition().has_lent_files() {
                        return Ok(WaitEnd::Decided);
                    }
                }
                Some(Some(child)) => {
                    if !still_waits(&self.live, child).await? {
                        self.end_pause(call, Decision::Continue).await?;
                        return Ok(WaitEnd::Decided);
                    }
                }
                Some(None) => {}
            }
            let is_approval =
                pause.is_some_and(|pause| pause.reason == PauseReason::Approval && pause.session.is_none());
            let answer = async {
                match &mut asked {
                    Some(asked) if is_approval => asked.await,
                    _ => std::future::pending().await,
                }
            };
            let decision = tokio::select! {
                biased;
                () = ends.cancel.cancelled() => return Ok(WaitEnd::Cancelled),
                () = ends.give_up.cancelled() => return Ok(WaitEnd::GivenUp),
                () = self.inbox.stop.cancelled() => return Ok(WaitEnd::Cancelled),
                decision = answer => decision,
                () = tokio::time::sleep(POLL_INTERVAL) => continue,
            };
            asked = None;
            if let Some(ApproverDecision { decision, by }) = decision {
                match self.live.resolve(Some(call), decision, Some(by)).await {
                    // A decision in the inbox came first.
                    Ok(()) | Err(RuntimeError::Unresolvable(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

fn result_of(messages: &[Arc<InnerMessage>], call: CallId) -> Option<Arc<InnerMessage>> {
    let is_result = |message: &&Arc<InnerMessage>| {
        message.message.option_result().is_some_and(|result| result.invocation_id == call)
    };
    messages.iter().rev().find(is_result).cloned()
}
