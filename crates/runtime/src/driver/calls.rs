//! Execution of the calls of an answer.
//!
//! A call of a program is an ordinary call with a message, which records its place in the program. A program
//! that runs again after a rewind makes its calls under the same ids. A call that had an effect outside
//! before is not repeated without a decision: the session waits, and offers the recorded result.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Decision, Origin, PauseReason, RecordBody, WorkspaceRevision};
use backstitch_core::machine::{EvaluationResult, Machine, MachineEvent, PendingCall};
use backstitch_core::message::{Arguments, OptionCall};
use backstitch_core::view::{Call, JournalView};

use super::ask::OUT_OF_TIME;
use super::content::Content;
use super::drive::LoopStep;
use super::inbox::Inbox;
use super::pause::Pauses;
use super::supersede::expand;
use crate::agent::{Agent, ResumeOptions, SubAgent};
use crate::content::call_message;
use crate::error::{Result, RuntimeError};
use crate::history::pauses_of;
use crate::live::{Durable, LiveSession};
use crate::runner::{CallOutcome, CallRequest, ResumedChild, ToolRunner, TurnShares};

pub(super) struct Calls {
    pub(super) live: Arc<LiveSession>,
    pub(super) agent: Arc<Agent>,
    pub(super) runner: ToolRunner,
    pub(super) inbox: Arc<Inbox>,
    pub(super) content: Arc<Content>,
    pub(super) pauses: Pauses,
    /// How the evaluation was resumed. Sub-agents of its calls are resumed in the same way.
    pub(super) resumed_with: Mutex<ResumeOptions>,
}

impl Calls {
    pub(super) fn resume_with(&self, options: ResumeOptions) {
        *self.resumed_with.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    fn resumed_with(&self) -> ResumeOptions {
        self.resumed_with.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs calls concurrently, and passes their results to the machine in the order of the calls.
    pub(super) async fn run(
        &self,
        evaluation: EvaluationId,
        wanted: Vec<PendingCall>,
        machine: &mut dyn Machine,
    ) -> Result<LoopStep> {
        if let CallGate::Waits = self.make(evaluation, &wanted).await? {
            return Ok(LoopStep::End(self.pauses.waiting(evaluation).await));
        }
        // Cancelling stops these calls, and no later ones.
        let cancel = self.inbox.stop.child_token();
        let unfinished = Arc::new(AtomicUsize::new(wanted.len()));
        let is_agent =
            |one: &&PendingCall| self.agent.tools.get(&one.name).and_then(SubAgent::behind).is_some();
        let ids = wanted.iter().map(|one| one.call_id).collect();
        let agents = wanted.iter().filter(is_agent).map(|one| one.call_id).collect();
        let shares = Arc::new(TurnShares::new(ids, agents));
        let mut requests = Vec::with_capacity(wanted.len());
        for one in &wanted {
            let mut request = self.request(evaluation, one).await?;
            request.unfinished = Some(unfinished.clone());
            request.cancel = Some(cancel.clone());
            request.can_wait = true;
            request.shares = shares.clone();
            requests.push(request);
        }
        let mut running = std::pin::pin!(self.runner.run_all(requests));
        let mut is_cancelled = false;
        let ends = tokio::select! {
            biased;
            ends = &mut running => ends,
            // A cancellation does not wait for the calls to finish. They are stopped, and then awaited.
            () = self.inbox.wait_for_cancel(evaluation) => {
                is_cancelled = true;
                cancel.cancel();
                running.await
            }
        };
        let ends = all_ended(ends)?;
        self.handle_ends(evaluation, &wanted, ends, is_cancelled, machine).await
    }

    async fn handle_ends(
        &self,
        evaluation: EvaluationId,
        wanted: &[PendingCall],
        ends: Vec<CallOutcome>,
        is_cancelled: bool,
        machine: &mut dyn Machine,
    ) -> Result<LoopStep> {
        let mut next = LoopStep::Continue;
        let mut is_out_of_time = false;
        let (mut wanted_sections, mut reasons) = (Vec::new(), Vec::new());
        for (one, end) in wanted.iter().zip(ends) {
            if let Some(result) = end.message() {
                machine.handle(MachineEvent::CallEnded { call: one.call_id, result: result.clone() });
            }
            match end {
                CallOutcome::Succeeded(_) | CallOutcome::Failed(_) => {}
                CallOutcome::DeadlineExceeded(_) => is_out_of_time = true,
                CallOutcome::VisibilityExpansion { sections, reason } => {
                    wanted_sections.extend(sections);
                    reasons.push(reason);
                }
                CallOutcome::Cancelled(_)
                | CallOutcome::Stopped
                | CallOutcome::NeedsApproval
                | CallOutcome::BudgetExhausted
                | CallOutcome::Waits => {
                    if matches!(next, LoopStep::Continue) {
                        next = LoopStep::End(self.pauses.waiting(evaluation).await);
                    }
                }
            }
        }
        // A cancelled evaluation ends, and so does everything that its calls wait for. One that is out of
        // time pauses, and anything else its calls want is requested again once it has more time.
        match next {
            LoopStep::Continue | LoopStep::End(_) if is_cancelled => {
                Ok(LoopStep::Finish(EvaluationResult::cancelled()))
            }
            LoopStep::Continue | LoopStep::End(_) if is_out_of_time => {
                self.pauses.pause_for(evaluation, PauseReason::Deadline, OUT_OF_TIME).await
            }
            LoopStep::Continue | LoopStep::End(_) if !reasons.is_empty() => {
                expand(&self.live, evaluation, wanted_sections, reasons.join("; ")).await
            }
            next => Ok(next),
        }
    }

    /// Builds the request for a call from its records and the decision about it.
    pub(super) async fn request(
        &self,
        evaluation: EvaluationId,
        wanted: &PendingCall,
    ) -> Result<CallRequest> {
        let view = self.live.view().await;
        let known = view.call(wanted.call_id);
        let intent = known.and_then(|call| call.latest_intent());
        let continued = known.and_then(|call| self.continued(&view, call));
        let attempts = intent.map_or(0, |intent| intent.attempt);
        let edited = match intent {
            Some(intent) => self.content.edited_arguments(intent).await?,
            None => None,
        };
        let arguments = match wanted.arguments.stored() {
            Some(_) => {
                self.content.arguments(wanted.call_id).await?.unwrap_or_else(|| wanted.arguments.clone())
            }
            None => wanted.arguments.clone(),
        };
        let mut request = CallRequest::new(wanted.call_id, evaluation, &wanted.name, arguments)
            .in_turn(wanted.turn, wanted.step_num);
        request.attempt = attempts.saturating_add(1);
        request.is_resume = known.is_some_and(Call::may_have_run);
        if continued.is_some() {
            request.continued = continued;
            request.resume = self.resumed_with();
        }
        // What a rule allowed is judged again, by the rules of today.
        let approval = known.and_then(|call| call.approval.as_ref());
        request.approved = approval.is_some();
        request.subject = approval.and_then(|approval| approval.subject.clone()).map(Arc::new);
        // A call that runs again has the same arguments as before, unless a person has edited them since.
        let edited = known.and_then(Call::edited_arguments).cloned().or(edited);
        if let Some(arguments) = edited {
            request.arguments = Arguments::from_object(arguments);
            request.edited = true;
        }
        let decision = known.and_then(|call| call.decision.as_ref()).map(|resolved| &resolved.decision);
        if let Some(Decision::Deny { reason }) = decision {
            let message = reason.clone().unwrap_or_else(|| "the call was not approved".to_owned());
            request.refusal = Some(message);
        }
        if let Some(refusal) = &wanted.refusal {
            request.refusal = Some(refusal.clone());
        }
        Ok(request)
    }

    /// Returns the child session to resume for a call: the one that its intent names, if the call is open and
    /// the intent is on this session's current branch. In a fork and after a rewind, the files are no longer
    /// those that the child session left.
    pub(super) fn continued(&self, view: &JournalView, call: &Call) -> Option<ResumedChild> {
        let intent = call.intent.as_ref().filter(|_| call.is_open())?;
        let session = intent.record.session?;
        SubAgent::behind(self.agent.tools.get(&call.name)?)?;
        let branch = |position| view.lineage().branch_of(position);
        let is_here =
            intent.point.session == view.session_id() && branch(intent.point.position) == branch(view.head());
        let before = WorkspaceRevision::of(intent.record.root, intent.record.coverage);
        is_here.then_some(ResumedChild { session, before })
    }

    /// Records messages for the calls that have none yet.
    async fn make(&self, evaluation: EvaluationId, wanted: &[PendingCall]) -> Result<CallGate> {
        let new: Vec<&PendingCall> = wanted.iter().filter(|one| one.made_at.is_some()).collect();
        if new.is_empty() {
            return Ok(CallGate::May);
        }
        let view = self.live.view().await;
        let is_fork = matches!(view.created().origin, Origin::Fork { .. });
        let was_rewound = is_fork || !view.lineage().rewinds().is_empty();
        let pauses: Vec<RecordBody> = if was_rewound {
            pauses_of(&**self.live.store(), self.live.id(), new.iter().map(|one| one.call_id)).await?
        } else {
            Vec::new()
        };
        let made = if pauses.is_empty() { CallGate::May } else { CallGate::Waits };
        let when = if pauses.is_empty() { Durable::WithNext } else { Durable::Now };
        self.live
            .commit(|commit| {
                for one in new {
                    let mut call = OptionCall::new(one.call_id, &one.name, one.arguments.clone());
                    call.path = one.made_at.clone();
                    let message = call_message(self.agent.policy.name().clone(), call, one.step_num);
                    commit.say(evaluation, one.turn, message)?;
                }
                commit.push_all(pauses).durable(when);
                Ok(made)
            })
            .await
    }
}

/// Returns how the calls ended, or the error that stops the session. If the claim was lost, that error comes
/// first, since the other calls report only its consequence.
fn all_ended(mut ends: Vec<Result<CallOutcome>>) -> Result<Vec<CallOutcome>> {
    if let Some(lost) = ends.iter().position(|end| matches!(end, Err(RuntimeError::ClaimLost { .. }))) {
        ends.swap(0, lost);
    }
    ends.into_iter().collect()
}

enum CallGate {
    May,
    /// The session waits for a decision about at least one of them.
    Waits,
}
