//! Resumption of interrupted evaluations.
//!
//! All steps follow from the journal. An evaluation that has ended returns its recorded answer. A session
//! that waits for a decision keeps waiting. A call that was started and has no outcome is handled by its
//! effect class: its remaining processes are ended, its files are restored, and it runs again; or, if it may
//! have had an unknown effect outside, its tool or a person has to report the outcome. Then the evaluation
//! continues.

use backstitch_core::ports::BoxFuture;
use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    BudgetCharged, Decision, EvaluationResumed, InboxItem, InboxKind, PauseReason, PauseResolved,
    SessionPaused,
};
use backstitch_core::machine::TurnState;
use backstitch_core::message::PolicyName;
use backstitch_core::text::one_line;
use backstitch_core::view::{Call, JournalView};
use serde_json::Value;

use super::Driver;
use super::drive::millis;
use super::kept::load_kept_attempts;
use crate::agent::{DriftPolicy, ResumeOptions};
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::live::{Durable, still_waits};
use crate::outcome::DriveOutcome;

/// The middle of a sentence about a call of a program that waited for approval.
pub(crate) const WAITED: &str = "waited for approval and was not run";

/// The most characters of a message in a reason.
const LONGEST_REASON: usize = 200;

impl Driver {
    /// Resumes an evaluation, wherever it was interrupted. An evaluation that has ended returns its recorded
    /// answer without a request to the policy, unless messages wait in the inbox: those start the next
    /// evaluation. If the options name an evaluation, only that one is resumed.
    ///
    /// Fails with [`RuntimeError::ConversationNotFound`] when the session has no messages and none wait.
    pub fn resume(&self, mut options: ResumeOptions) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async move {
            if options.evaluation.is_some() {
                return boxed(|| self.resume_one(options)).await;
            }
            let has_open = self.live.has_open_evaluation().await;
            if !has_open {
                self.put_message(&mut options).await?;
            }
            if !has_open && let Some(ended) = boxed(|| self.start_waiting()).await? {
                return boxed(|| self.and_answer_waiting(ended)).await;
            }
            let ended = boxed(|| self.resume_one(options)).await?;
            boxed(|| self.and_answer_waiting(ended)).await
        })
    }

    async fn resume_one(&self, mut options: ResumeOptions) -> Result<DriveOutcome> {
        crash_point!("recover.before");
        let drift = match options.drift {
            Some(drift) => drift,
            // Nobody is there whose changes could be lost, or who could be asked.
            None if self.live.has_own_files() => DriftPolicy::Restore,
            None if self.machine_was_restarted().await => DriftPolicy::Ask,
            None => DriftPolicy::Adopt,
        };
        self.live.settle_files().await?;
        let latest = self.live.view().await.latest_evaluation().map(|latest| latest.evaluation_id);
        let none = RuntimeError::ConversationNotFound { session: self.live.id() };
        let evaluation = options.evaluation.or(latest).ok_or(none)?;
        if let Some(ended) = self.recorded_outcome(evaluation).await? {
            return Ok(ended);
        }
        self.check_fidelity(evaluation, options.fidelity).await?;
        self.inbox.receive_decisions().await?;
        self.check_accept(evaluation, &options).await?;
        let message = options.message.clone();
        self.put_message(&mut options).await?;
        match (&self.engine, message) {
            (Some(_), message) => self.end_waiting_calls(evaluation, message.as_deref()).await?,
            (None, Some(_)) => self.set_aside_calls(evaluation).await?,
            (None, None) => {}
        }
        if let Some(ended) = self.waits(evaluation, &options).await? {
            return Ok(ended);
        }
        self.record_start(evaluation).await?;
        let view = self.live.view().await;
        let resumed = EvaluationResumed {
            owner: Some(self.live.claim().owner.to_string()),
            budget: options.budget,
            deadline_millis: options.deadline.map(millis),
            fingerprint: self.agent.fingerprint().ok(),
            decider: self.other_decider(evaluation).await,
            directory: self.live.new_directory(&view),
            excludes: self.live.new_excludes(&view),
            ..EvaluationResumed::new(evaluation)
        };
        self.live.record_when(vec![resumed.into()], Durable::WithNext).await?;
        self.charge_interrupted(evaluation, &view).await?;
        let ended = boxed(|| self.recover_and_drive(evaluation, options, drift)).await;
        if let Err(error) = &ended {
            self.record_stop(evaluation, error).await;
        }
        ended
    }

    /// Charges a request whose process ended while its answer arrived. The estimated cost of what was saved takes the place of
    /// its reservation, which is the largest possible cost. Without saved text the reservation stays.
    async fn charge_interrupted(&self, evaluation: EvaluationId, view: &JournalView) -> Result<()> {
        let request = view.evaluation(evaluation).and_then(|known| known.requests.last());
        let Some(request) = request.filter(|request| request.finished.is_none()) else { return Ok(()) };
        let started = &request.started.record;
        let Some(reservation) = started.reservation.filter(|one| view.ledger().is_open(one.id)) else {
            return Ok(());
        };
        let kept = load_kept_attempts(&**self.live.store(), request.started.point).await?;
        // Failed attempts are charged already.
        let open = kept.last().filter(|last| last.attempt > request.attempts());
        let Some(open) = open else { return Ok(()) };
        let cost = self.asker.cost_of(open, reservation.amounts, &started.provider, &started.model);
        let charged = BudgetCharged::new(Some(reservation.id), cost);
        self.live.record_when(vec![charged.into()], Durable::WithNext).await
    }

    /// Puts the message of the options into the inbox, where it waits until the evaluation processes it. Returns whether
    /// there was one.
    pub(crate) async fn put_message(&self, options: &mut ResumeOptions) -> Result<bool> {
        let Some(text) = options.message.take() else { return Ok(false) };
        if text.trim().is_empty() {
            return Err(RuntimeError::EmptyMission);
        }
        let (kind, at, data) = (InboxKind::Message, self.live.clock().now(), Value::String(text));
        self.live.store().send(self.live.id(), InboxItem { kind, at, data }).await?;
        Ok(true)
    }

    /// Ends the calls that have not begun, because a message of the user takes their place. Nobody has to decide about them
    /// any more.
    async fn set_aside_calls(&self, evaluation: EvaluationId) -> Result<()> {
        let is_unrun = |call: &Call| call.evaluation_id == evaluation && !call.may_have_run();
        for call in self.live.pending_calls(is_unrun).await {
            let why = format!("{} was not run, because the user gave another instruction", call.name);
            self.end_call_unrun(&call, why).await?;
        }
        Ok(())
    }

    /// Ends the calls of a program that waited for approval: the program that would run them is gone. An evaluation that is
    /// about to be cancelled keeps them, and ends with them.
    async fn end_waiting_calls(&self, evaluation: EvaluationId, message: Option<&str>) -> Result<()> {
        if !self.inbox.waiting_requests(evaluation).await?.cancels.is_empty() {
            return Ok(());
        }
        let waiting: Vec<(Call, bool)> = {
            let state = self.live.state().await;
            let pending = state.view.pending_calls().filter(|call| call.evaluation_id == evaluation);
            let waits = |call: &Call| {
                let mut pauses = state.view.pauses();
                pauses
                    .any(|pause| pause.call_id == Some(call.call_id) && pause.reason == PauseReason::Approval)
            };
            let unrun = pending.filter(|call| !call.may_have_run());
            let of = |call: &Call| (call.clone(), waits(call));
            unrun.map(of).filter(|(call, waits)| *waits || call.decision.is_some()).collect()
        };
        for (call, waits) in waiting {
            let why = match (waits, message) {
                (true, Some(text)) => {
                    format!("because the user gave another instruction: {}", one_line(text, LONGEST_REASON))
                }
                (true, None) => "because the program that made it had ended".to_owned(),
                (false, _) => {
                    "because the program that made it had ended before it was decided about".to_owned()
                }
            };
            self.end_call_unrun(&call, format!("{} {WAITED}, {why}", call.name)).await?;
        }
        Ok(())
    }

    /// Continues an evaluation that is recorded as resumed.
    async fn recover_and_drive(
        &self,
        evaluation: EvaluationId,
        options: ResumeOptions,
        drift: DriftPolicy,
    ) -> Result<DriveOutcome> {
        self.set_deadline(evaluation).await;
        let fidelity = options.fidelity;
        self.calls.resume_with(ResumeOptions {
            fidelity,
            drift: options.drift,
            accept: options.accept,
            ..ResumeOptions::default()
        });
        if let Some(engine) = &self.engine {
            engine.end_survivors(self).await?;
            let keeps_files = options.drift == Some(DriftPolicy::Adopt);
            self.end_engine_calls(|call| engine.without_end(call), keeps_files).await?;
            self.live.reconcile_files().await?;
            return boxed(|| self.drive(evaluation)).await;
        }
        boxed(|| self.calls.compensate_failed(evaluation)).await?;
        if options.accept {
            self.accept(evaluation).await?;
        } else {
            boxed(|| self.asker.continue_cut_off(evaluation)).await?;
        }
        let adopts = options.drift == Some(DriftPolicy::Adopt);
        if let Some(ended) = boxed(|| self.calls.recover(evaluation, drift, adopts)).await? {
            return Ok(ended);
        }
        boxed(|| self.drive(evaluation)).await
    }

    /// Returns the policy's name if the evaluation names another policy or none.
    async fn other_decider(&self, evaluation: EvaluationId) -> Option<PolicyName> {
        let state = self.live.state().await;
        let known = state.view.evaluation(evaluation).and_then(|known| known.decider.as_ref());
        let decider = self.agent.policy.name();
        (known != Some(decider)).then(|| decider.clone())
    }

    /// Records the start of an evaluation that came with a snapshot, and so was never started here.
    async fn record_start(&self, evaluation: EvaluationId) -> Result<()> {
        let view = self.live.view().await;
        let started = match view.evaluation(evaluation) {
            Some(known) if known.start.is_some() => return Ok(()),
            Some(known) => self.started_again(known),
            None => self.started(evaluation, None),
        };
        self.live.record_when(vec![started.into()], Durable::WithNext).await
    }

    /// Returns the pause of the session, unless resuming it is what it waits for.
    async fn waits(&self, evaluation: EvaluationId, options: &ResumeOptions) -> Result<Option<DriveOutcome>> {
        let pauses: Vec<Arc<SessionPaused>> = self.live.view().await.pauses().cloned().collect();
        // A cancellation needs no decision about a pause, as long as nothing has happened.
        let is_cancelled = !self.inbox.waiting_requests(evaluation).await?.cancels.is_empty();
        for pause in pauses {
            let ruled = boxed(|| self.rule_decision(&pause)).await?;
            let is_resolved = match pause.reason {
                _ if ruled.is_some() => true,
                // A pause of a child session is decided there.
                _ if let Some(child) = pause.session => {
                    let more = match pause.reason {
                        PauseReason::Budget => options.budget.is_some(),
                        PauseReason::Deadline => options.deadline.is_some(),
                        PauseReason::Files => options.drift.is_some_and(|drift| drift != DriftPolicy::Ask),
                        _ => false,
                    };
                    more || !still_waits(&self.live, child).await?
                }
                // Resuming is the decision.
                PauseReason::Asked | PauseReason::Truncated => true,
                PauseReason::Deadline => {
                    is_cancelled || options.deadline.is_some() || self.has_time(evaluation).await
                }
                PauseReason::Budget => {
                    is_cancelled || options.budget.is_some() || self.has_budget(evaluation).await
                }
                // The program that made the call is gone.
                PauseReason::Approval => is_cancelled || self.engine.is_some(),
                // Without a decision the same files would be in question again.
                PauseReason::Files => options.drift.is_some_and(|drift| drift != DriftPolicy::Ask),
                PauseReason::Wait => {
                    is_cancelled
                        || match &pause.wait {
                            Some(wait) => self.live.has_come(wait).await?,
                            None => true,
                        }
                }
                PauseReason::EffectUnknown | PauseReason::Poisoned => false,
            };
            if !is_resolved {
                return Ok(Some(self.pauses.outcome_of_pause(evaluation, &pause).await));
            }
            let owner = self.live.claim().owner.to_string();
            let (decision, by) = match (pause.reason, ruled) {
                (_, Some(ruled)) => ruled,
                (PauseReason::Approval, None) if pause.session.is_none() => {
                    let why = if is_cancelled {
                        "its evaluation was cancelled"
                    } else {
                        "it was stopped before it was decided"
                    };
                    (Decision::Deny { reason: Some(why.to_owned()) }, owner)
                }
                // Nothing of the call is left but its finished steps, whatever its effect.
                (PauseReason::Wait, None) if pause.session.is_none() => (Decision::Retry, owner),
                _ => (Decision::Continue, owner),
            };
            let resolved = PauseResolved::new(decision).of_call(pause.call_id).by(by);
            self.live.record_when(vec![resolved.into()], Durable::WithNext).await?;
        }
        Ok(None)
    }

    async fn has_time(&self, evaluation: EvaluationId) -> bool {
        let state = self.live.state().await;
        let known = state.view.evaluation(evaluation);
        known.is_none_or(|known| known.time_left().is_none_or(|left| !left.is_zero()))
    }

    /// Fails with [`RuntimeError::NothingToAccept`] if no answer was cut off, here or in a child session.
    async fn check_accept(&self, evaluation: EvaluationId, options: &ResumeOptions) -> Result<()> {
        if !options.accept {
            return Ok(());
        }
        let view = self.live.view().await;
        let is_elsewhere =
            view.pauses().any(|pause| pause.reason == PauseReason::Truncated && pause.session.is_some());
        let has_text =
            self.asker.cut_off(evaluation).await?.is_some_and(|answer| !TurnState::is_silent(&answer));
        if is_elsewhere || has_text {
            Ok(())
        } else {
            Err(RuntimeError::NothingToAccept { session: self.live.id() })
        }
    }

    /// Records that an answer that was cut off is accepted.
    async fn accept(&self, evaluation: EvaluationId) -> Result<()> {
        if self.asker.cut_off(evaluation).await?.is_none() {
            return Ok(());
        }
        let resolved = PauseResolved::new(Decision::Accept).by(self.live.claim().owner.to_string());
        self.live.record_when(vec![resolved.into()], Durable::WithNext).await
    }

    async fn has_budget(&self, evaluation: EvaluationId) -> bool {
        let state = self.live.state().await;
        state.view.evaluation(evaluation).is_none_or(|known| {
            known.budget.is_none_or(|limits| limits.check(state.view.spent_by(known)).is_ok())
        })
    }

    /// True if the machine was started since the session was last driven.
    async fn machine_was_restarted(&self) -> bool {
        let last = self.live.view().await.recorded_at();
        matches!((self.live.clock().booted_at(), last), (Some(booted), Some(last)) if booted > last)
    }
}
