//! Going on after an interruption.
//!
//! What has to be done follows from the journal. An evaluation that has ended gives its recorded answer. A session that waits
//! for a decision goes on waiting. A call that was started and has no outcome is treated by what it may have done to the
//! world: what is left of its processes is ended, its files are put back, and it runs again; or, if it may have had an effect
//! outside that nobody knows of, its tool or a person has to say what became of it. Then the evaluation is driven on.

use std::sync::{Arc, PoisonError};

use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    Decision, Effect, EvaluationResumed, Files, Outcome, PauseReason, Paused, Resolved,
};
use backstitch_core::machine::TurnState;
use backstitch_core::message::PolicyName;
use backstitch_core::tool::Reconciled;
use backstitch_core::view::{Call, CallStatus};

use super::Driver;
use super::drive::millis;
use crate::agent::{Drift, ResumeOptions};
use crate::error::RuntimeError;
use crate::live::{Durable, has_files, is_withdrawn, still_waits};
use crate::outcome::Ended;

impl Driver {
    /// Goes on with an evaluation, wherever it was interrupted. One that has ended gives its recorded answer, and nobody is
    /// asked, unless messages wait in the inbox: those start the next evaluation. Naming an evaluation resumes that one alone.
    ///
    /// Fails with [`RuntimeError::ConversationNotFound`] when the session has no messages and none wait.
    pub async fn resume(&self, options: ResumeOptions) -> Result<Ended, RuntimeError> {
        if options.evaluation.is_some() {
            return self.resume_one(options).await;
        }
        let has_open = {
            let state = self.live.state().await;
            let latest = state.view.latest_evaluation().map(|latest| latest.outcome());
            matches!(latest, Some(None | Some(Outcome::Superseded)))
        };
        if !has_open && let Some(ended) = self.start_waiting().await? {
            return self.and_answer_waiting(ended).await;
        }
        let ended = self.resume_one(options).await?;
        self.and_answer_waiting(ended).await
    }

    async fn resume_one(&self, options: ResumeOptions) -> Result<Ended, RuntimeError> {
        crash_point!("recover.before");
        let drift = match options.drift {
            Some(drift) => drift,
            None if self.machine_was_restarted().await => Drift::Ask,
            None => Drift::Adopt,
        };
        self.live.settle_files().await?;
        let evaluation = self.pick(&options).await?;
        if let Some(ended) = self.recorded(evaluation).await? {
            return Ok(ended);
        }
        self.check_fidelity(evaluation, options.fidelity).await?;
        self.hear_decisions().await?;
        self.check_accept(evaluation, &options).await?;
        if let Some(ended) = self.waits(evaluation, &options).await? {
            return Ok(ended);
        }
        self.take_up(evaluation).await?;
        let resumed = EvaluationResumed {
            evaluation_id: evaluation,
            owner: Some(self.live.lease().owner.to_string()),
            budget: options.budget,
            deadline_millis: options.deadline.map(millis),
            fingerprint: self.agent.fingerprint().ok(),
            decider: self.other_decider(evaluation).await,
            extra: Extra::default(),
        };
        self.live.record_when(vec![resumed.into()], Durable::WithNext).await?;
        let ended = self.recover_and_drive(evaluation, options, drift).await;
        if let Err(error) = &ended {
            self.record_stop(evaluation, error).await;
        }
        ended
    }

    /// Continues an evaluation that is recorded as resumed.
    async fn recover_and_drive(
        &self,
        evaluation: EvaluationId,
        options: ResumeOptions,
        drift: Drift,
    ) -> Result<Ended, RuntimeError> {
        self.set_deadline(evaluation).await;
        let fidelity = options.fidelity;
        *self.resumed_with.lock().unwrap_or_else(PoisonError::into_inner) = ResumeOptions {
            fidelity,
            drift: options.drift,
            accept: options.accept,
            ..ResumeOptions::default()
        };
        self.compensate_failed(evaluation).await?;
        match options.accept {
            true => self.accept(evaluation).await?,
            false => self.continue_cut_off(evaluation).await?,
        }
        if let Some(ended) = self.recover(evaluation, drift, options.drift == Some(Drift::Adopt)).await? {
            return Ok(ended);
        }
        self.drive(evaluation).await
    }

    /// The policy that decides now, where the evaluation names another one or none.
    async fn other_decider(&self, evaluation: EvaluationId) -> Option<PolicyName> {
        let state = self.live.state().await;
        let known = state.view.evaluation(evaluation).and_then(|known| known.decider.as_ref());
        let decider = self.agent.policy.name();
        (known != Some(decider)).then(|| decider.clone())
    }

    /// An evaluation that came with a snapshot was never started here.
    async fn take_up(&self, evaluation: EvaluationId) -> Result<(), RuntimeError> {
        let started = {
            let state = self.live.state().await;
            match state.view.evaluation(evaluation) {
                Some(known) if known.start.is_some() => return Ok(()),
                Some(known) => self.started_again(known),
                None => self.started(evaluation, None),
            }
        };
        self.live.record_when(vec![started.into()], Durable::WithNext).await
    }

    async fn pick(&self, options: &ResumeOptions) -> Result<EvaluationId, RuntimeError> {
        if let Some(evaluation) = options.evaluation {
            return Ok(evaluation);
        }
        let state = self.live.state().await;
        let latest = state.view.latest_evaluation().map(|latest| latest.evaluation_id);
        latest.ok_or(RuntimeError::ConversationNotFound { session: self.live.id() })
    }

    /// What the session waits for, unless that it is resumed is the answer.
    async fn waits(
        &self,
        evaluation: EvaluationId,
        options: &ResumeOptions,
    ) -> Result<Option<Ended>, RuntimeError> {
        let pauses: Vec<Arc<Paused>> = self.live.state().await.view.pauses().cloned().collect();
        // Whoever cancels an evaluation need not decide first what it waits for, as long as nothing has happened.
        let is_cancelled = !self.waiting_wishes(evaluation).await?.cancels.is_empty();
        for pause in pauses {
            let goes_on = match pause.reason {
                // What is waited for elsewhere is decided there.
                _ if let Some(child) = pause.session => {
                    let more = match pause.reason {
                        PauseReason::Budget => options.budget.is_some(),
                        PauseReason::Deadline => options.deadline.is_some(),
                        _ => false,
                    };
                    more || !still_waits(&self.live, child).await?
                }
                // To resume it is the answer.
                PauseReason::Asked | PauseReason::Truncated => true,
                PauseReason::Deadline => {
                    is_cancelled || options.deadline.is_some() || self.has_time(evaluation).await
                }
                PauseReason::Budget => {
                    is_cancelled || options.budget.is_some() || self.has_budget(evaluation).await
                }
                PauseReason::Approval => is_cancelled,
                PauseReason::EffectUnknown | PauseReason::Poisoned => false,
            };
            if !goes_on {
                return Ok(Some(self.paused_by(evaluation, &pause).await));
            }
            let resolved = Resolved {
                call_id: pause.call_id,
                decision: match pause.reason {
                    PauseReason::Approval if pause.session.is_none() => {
                        Decision::Deny { reason: Some("its evaluation was cancelled".to_owned()) }
                    }
                    _ => Decision::Continue,
                },
                by: Some(self.live.lease().owner.to_string()),
                extra: Extra::default(),
            };
            self.live.record_when(vec![resolved.into()], Durable::WithNext).await?;
        }
        Ok(None)
    }

    async fn has_time(&self, evaluation: EvaluationId) -> bool {
        let state = self.live.state().await;
        let known = state.view.evaluation(evaluation);
        known.is_none_or(|known| known.time_left().is_none_or(|left| !left.is_zero()))
    }

    /// Refuses to accept what was not cut off, here or in a session that works for a call.
    async fn check_accept(
        &self,
        evaluation: EvaluationId,
        options: &ResumeOptions,
    ) -> Result<(), RuntimeError> {
        if !options.accept {
            return Ok(());
        }
        let is_elsewhere = self
            .live
            .state()
            .await
            .view
            .pauses()
            .any(|pause| pause.reason == PauseReason::Truncated && pause.session.is_some());
        let has_text = self.cut_off(evaluation).await?.is_some_and(|answer| !TurnState::is_silent(&answer));
        match is_elsewhere || has_text {
            true => Ok(()),
            false => Err(RuntimeError::NothingToAccept { session: self.live.id() }),
        }
    }

    /// Records that an answer that was cut off is taken as it is.
    async fn accept(&self, evaluation: EvaluationId) -> Result<(), RuntimeError> {
        if self.cut_off(evaluation).await?.is_none() {
            return Ok(());
        }
        let resolved = Resolved {
            call_id: None,
            decision: Decision::Accept,
            by: Some(self.live.lease().owner.to_string()),
            extra: Extra::default(),
        };
        self.live.record_when(vec![resolved.into()], Durable::WithNext).await
    }

    async fn has_budget(&self, evaluation: EvaluationId) -> bool {
        let state = self.live.state().await;
        state.view.evaluation(evaluation).is_none_or(|known| {
            known.budget.is_none_or(|limits| limits.check(state.view.spent_by(known)).is_ok())
        })
    }

    /// Treats calls that were started, here or elsewhere, and have no outcome. Gives what the session waits for, if that is needed.
    ///
    /// Where somebody said that files are kept as they are found, nothing is restored: a call that may have been writing them does
    /// not run again, but ends with an error that says so.
    async fn recover(
        &self,
        evaluation: EvaluationId,
        drift: Drift,
        keeps_files: bool,
    ) -> Result<Option<Ended>, RuntimeError> {
        let open: Vec<Call> = {
            let state = self.live.state().await;
            let open = state.view.pending_calls().filter(|call| call.evaluation_id == evaluation);
            open.filter(|call| call.may_have_run()).cloned().collect()
        };
        self.withdraw_failed(evaluation).await?;
        let (continued, open): (Vec<_>, Vec<_>) = {
            let state = self.live.state().await;
            open.into_iter().partition(|call| self.continued(&state.view, call).is_some())
        };
        let (writing, open): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|call| keeps_files && !call.files_restored && writes(call));
        for call in &writing {
            self.live.end_keeping_files(call).await?;
        }
        for call in &open {
            if !self.may_run_again(call).await? {
                return Ok(Some(self.waiting(evaluation).await));
            }
        }
        // Files that were lent to a session that works for a call are that session's: it puts them back to where its own calls need them.
        // One that has not begun yet has none, and needs them as they were before its call.
        let mut are_lent = false;
        let mut not_begun = open;
        for call in continued {
            match call.session() {
                Some(child) if writes(&call) && has_files(&self.live, child).await? => are_lent = true,
                _ => not_begun.push(call),
            }
        }
        if keeps_files && !are_lent {
            self.live.adopt_files().await?;
        } else if !are_lent && !self.put_back_before(&not_begun, drift).await? {
            return Ok(Some(self.waiting(evaluation).await));
        }
        crash_point!("recover.restored");
        Ok(None)
    }

    /// Takes back what sessions did for calls that failed, where a crash came in between.
    async fn withdraw_failed(&self, evaluation: EvaluationId) -> Result<(), RuntimeError> {
        let failed: Vec<_> = {
            let state = self.live.state().await;
            let failed = state
                .view
                .calls()
                .filter(|call| call.evaluation_id == evaluation && call.status() == CallStatus::Failed);
            failed.filter_map(|call| call.session()).collect()
        };
        for session in failed {
            if !is_withdrawn(&self.live, session).await? {
                self.live.withdraw_child(session, "its call failed").await?;
            }
        }
        Ok(())
    }

    /// Whether a call that may have run runs again or has its outcome now. If not, the session waits for a decision.
    async fn may_run_again(&self, call: &Call) -> Result<bool, RuntimeError> {
        let decided = call.decision.as_ref().map(|resolved| &resolved.decision);
        let (effect, key) = {
            let view = &self.live.state().await.view;
            (self.effect_of(view.evaluation(call.evaluation_id), call), view.idempotency_key(call.call_id))
        };
        if effect != Effect::External || matches!(decided, Some(Decision::Retry)) {
            return Ok(true);
        }
        let tool = self.agent.tools.get(&call.name);
        if let Some(reconcile) = tool.and_then(|tool| tool.reconcile.clone()) {
            let arguments = self.started_with(call).await?;
            let by = Some(call.name.clone());
            match reconcile(key, arguments).await {
                Ok(Reconciled::Happened(result)) => {
                    let decision = Decision::Happened { result };
                    self.live.resolve(Some(call.call_id), decision, by).await?;
                    return Ok(true);
                }
                Ok(Reconciled::DidNotHappen) => {
                    self.live.resolve(Some(call.call_id), Decision::Retry, by).await?;
                    return Ok(true);
                }
                Ok(Reconciled::Unknown) => {}
                Err(error) => {
                    tracing::warn!(call = %call.call_id, %error, "a tool could not find out what became of its call");
                }
            }
        }
        let paused = Paused {
            reason: PauseReason::EffectUnknown,
            call_id: Some(call.call_id),
            detail: Some(call.name.clone()),
            offer: None,
            session: None,
            extra: Extra::default(),
        };
        self.live.record(vec![paused.into()]).await?;
        Ok(false)
    }

    /// Puts the files back to before the call that was writing them. Without one, or where that was done when the call was stopped,
    /// what changed meanwhile is adopted, put back or asked about; and files that are gone altogether are brought back. Gives
    /// whether the session goes on.
    async fn put_back_before(&self, open: &[Call], drift: Drift) -> Result<bool, RuntimeError> {
        let writing =
            open.iter().filter(|call| writes(call)).filter_map(|call| Some((call, call.intent.as_ref()?)));
        let last = writing.max_by_key(|(_, intent)| intent.point.position);
        let last = last.filter(|(call, _)| !call.files_restored);
        let before = last.and_then(|(_, intent)| Files::of(intent.record.root, intent.record.coverage));
        if let Some(before) = before {
            let (rescue, objects) = self.live.rescue(before).await?;
            if let Some(root) = rescue {
                let rescue = self.live.keep_rescue(Files { root, ..before }, objects).await?;
                crash_point!("recover.rescued");
                self.live.put_files_back(before, Some(rescue)).await?;
            }
            return Ok(true);
        }
        let Some(found) = self.live.bring_back_files().await? else { return Ok(true) };
        let known = self.live.state().await.view.files();
        match (known, drift) {
            (Some(known), _) if known.root == found.root => Ok(true),
            (Some(_), Drift::Restore) => self.live.undo_drift().await.map(|()| true),
            (Some(_), Drift::Ask) => {
                let paused = Paused {
                    reason: PauseReason::Asked,
                    call_id: None,
                    detail: Some(
                        "files changed while the machine was restarted: say whether to keep them or to put them back"
                            .to_owned(),
                    ),
                    offer: None,
                    session: None,
                    extra: Extra::default(),
                };
                self.live.record(vec![paused.into()]).await.map(|()| false)
            }
            (Some(_), Drift::Adopt) | (None, _) => self.live.take_up_files().await.map(|()| true),
        }
    }

    /// Whether the machine was started since the session was last driven.
    async fn machine_was_restarted(&self) -> bool {
        let last = self.live.state().await.view.recorded_at();
        matches!((self.live.clock().booted_at(), last), (Some(booted), Some(last)) if booted > last)
    }
}

/// Whether a call was started that may change files.
fn writes(call: &Call) -> bool {
    call.intent.as_ref().is_some_and(|intent| intent.record.root.is_some())
}
