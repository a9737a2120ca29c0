//! Calls that were started and have no outcome, after an interruption.
//!
//! How such a call is handled depends on its effect class. Its files are restored and it runs again, its tool
//! or a person reports its outcome, or its child session is resumed.
//!
//! The calls of an adopted conversation are among them. An export holds what was recorded when it was made,
//! and not what was started afterwards. So each of its pending calls may have run: it keeps its key, and its
//! tool sees that it is resumed. A call that may have had an effect outside waits until its tool or a person
//! reports the outcome.

use backstitch_core::crash_point;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    Decision, Effect, EvaluationStarted, PauseReason, Position, Recovery, SessionPaused, WorkspaceRevision,
};
use backstitch_core::message::OptionResult;
use backstitch_core::tool::ReconcileOutcome;
use backstitch_core::view::{Call, CallStatus, Evaluation};

use super::Driver;
use super::calls::Calls;
use crate::agent::{DriftPolicy, SubAgent};
use crate::error::Result;
use crate::fence::catch_task_panic;
use crate::live::{DoubtfulFiles, InterruptedFiles, has_files, is_withdrawn};
use crate::outcome::DriveOutcome;
use crate::tools::Tools;

/// The number of attempts of a call that may end with this process. Then a person decides about the next one, whatever
/// the effect of the call.
const MOST_CRASHES: u32 = 3;

impl Calls {
    /// Handles calls that were started, here or elsewhere, and have no outcome. If the session has to wait
    /// for a decision, the pause is returned.
    ///
    /// With `keeps_files` nothing is restored: a call that may have been writing files does not run again,
    /// but ends with an error that says so.
    pub(super) async fn recover(
        &self,
        evaluation: EvaluationId,
        drift: DriftPolicy,
        keeps_files: bool,
    ) -> Result<Option<DriveOutcome>> {
        let is_open = |call: &Call| call.evaluation_id == evaluation && call.may_have_run();
        let open = self.live.pending_calls(is_open).await;
        self.withdraw_failed(evaluation).await?;
        let (continued, open): (Vec<_>, Vec<_>) = {
            let state = self.live.state().await;
            open.into_iter().partition(|call| self.continued(&state.view, call).is_some())
        };
        let interrupted = open.iter().filter(|call| writes(call) && !call.files_restored);
        if let Some(call) = interrupted.max_by_key(|call| started_at(call)) {
            self.live.recover_repositories(call).await?;
        }
        let continued = self.end_denied(continued).await?;
        let (writing, open): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|call| keeps_files && !call.files_restored && writes(call));
        for call in &writing {
            self.live.end_keeping_files(call).await?;
        }
        for call in &open {
            if !self.may_run_again(call).await? {
                return Ok(Some(self.pauses.waiting(evaluation).await));
            }
        }
        // Files that were lent to a child session belong to it, and it restores them to the state that its
        // own calls need. A child session that has not begun has no files, and needs them as they were before
        // its call.
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
        } else if !are_lent && !self.restore_before_call(&not_begun, drift).await? {
            return Ok(Some(self.pauses.waiting(evaluation).await));
        }
        crash_point!("recover.restored");
        Ok(None)
    }

    /// Ends the calls of sub-agents that a rule denies by now, and rolls back their child sessions. Returns the others.
    async fn end_denied(&self, continued: Vec<Call>) -> Result<Vec<Call>> {
        let mut others = Vec::new();
        for call in continued {
            let arguments = self.content.start_arguments(&call).await?;
            match self.runner.denial_of(&call.name, &arguments).await? {
                Some(denial) => {
                    let decision = Decision::Fail { reason: Some(denial) };
                    self.live.resolve(Some(call.call_id), decision, None).await?;
                }
                None => others.push(call),
            }
        }
        Ok(others)
    }

    /// Rolls back the child sessions of failed calls, if a crash came before that.
    async fn withdraw_failed(&self, evaluation: EvaluationId) -> Result<()> {
        let view = self.live.view().await;
        let of_this = view.calls().filter(|call| call.evaluation_id == evaluation);
        let failed = of_this.filter(|call| call.status() == CallStatus::Failed);
        let failed: Vec<_> = failed.filter_map(Call::session).collect();
        for session in failed {
            if !is_withdrawn(&self.live, session).await? {
                self.live.withdraw_child(session, "its call failed").await?;
            }
        }
        Ok(())
    }

    /// True if a call that may have run can run again, or has its outcome now. Otherwise the session waits
    /// for a decision.
    async fn may_run_again(&self, call: &Call) -> Result<bool> {
        let decided = call.decision.as_ref().map(|resolved| &resolved.decision);
        let view = self.live.view().await;
        let effect = effect_of(&self.agent.tools, view.evaluation(call.evaluation_id), call);
        let key = view.idempotency_key(call.call_id);
        // Approval is asked for after a decision that the call runs again.
        if matches!(decided, Some(Decision::Retry | Decision::Approve | Decision::Edit { .. })) {
            return Ok(true);
        }
        let mut detail = call.name.clone();
        if effect.is_repeatable() {
            // The repository is not rolled back, so what the call did there would happen twice. A call that was
            // stopped, and not interrupted, has left it as it was.
            let moves = match effect.recovery() {
                Recovery::RestoreAndRepeat if !call.files_restored => {
                    self.live.repository_moves(call.call_id).await?.join("; ")
                }
                _ => String::new(),
            };
            if !moves.is_empty() {
                detail =
                    format!("{detail}: the repository has changed since, and is not rolled back: {moves}");
            } else if ends_this_process(call) {
                detail = format!("{detail}: {MOST_CRASHES} attempts ended together with the process");
            } else {
                return Ok(true);
            }
        }
        let tool = self.agent.tools.get(&call.name).filter(|_| !effect.is_repeatable());
        if let Some(reconcile) = tool.and_then(|tool| tool.reconcile.clone()) {
            let arguments = self.content.start_arguments(call).await?;
            let by = Some(call.name.clone());
            let reported = catch_task_panic(move || reconcile(key, arguments)).await;
            let decision = match reported.unwrap_or_else(|panic| Err(format!("it panicked: {panic}").into()))
            {
                Ok(ReconcileOutcome::Happened(result)) => Some(Decision::Happened { result }),
                Ok(ReconcileOutcome::HappenedWith(value)) => {
                    let result = Box::new(OptionResult::new(call.call_id, &call.name, value));
                    Some(Decision::Happened { result })
                }
                Ok(ReconcileOutcome::DidNotHappen) => Some(Decision::Retry),
                Ok(ReconcileOutcome::Unknown) => None,
                Err(error) => {
                    tracing::warn!(call = %call.call_id, %error, "a tool could not reconcile its call");
                    None
                }
            };
            if let Some(decision) = decision {
                self.live.resolve(Some(call.call_id), decision, by).await?;
                return Ok(true);
            }
        }
        let paused = SessionPaused::new(PauseReason::EffectUnknown).of_call(call.call_id).with_detail(detail);
        self.live.record(vec![paused.into()]).await?;
        Ok(false)
    }

    /// Restores what the call that was writing files has changed, and leaves what others changed later. If that cannot be told
    /// apart, the session has to wait, unless `drift` says what to do. Without such a call, or if
    /// they were restored when it was stopped, changes since then are adopted, undone or lead to a pause, and
    /// a missing directory is restored. Returns false if the session has to wait for a decision.
    async fn restore_before_call(&self, open: &[Call], drift: DriftPolicy) -> Result<bool> {
        let last = open.iter().filter(|call| writes(call)).max_by_key(|call| started_at(call));
        let last = last.filter(|call| !call.files_restored).and_then(|call| {
            let intent = &call.intent.as_ref()?.record;
            Some((call, WorkspaceRevision::of(intent.root, intent.coverage)?))
        });
        if let Some((call, before)) = last {
            let doubtful = match drift {
                DriftPolicy::Restore => DoubtfulFiles::Restore,
                DriftPolicy::Adopt | DriftPolicy::Ask => DoubtfulFiles::Ask,
            };
            return match self.live.restore_interrupted(call, before, doubtful).await? {
                InterruptedFiles::Restored(_) => Ok(true),
                InterruptedFiles::Doubtful(files) => {
                    let paused = SessionPaused::of_doubtful_files(files);
                    self.live.record(vec![paused.into()]).await.map(|()| false)
                }
            };
        }
        let Some(found) = self.live.restore_missing_files().await? else { return Ok(true) };
        let known = self.live.view().await.files();
        match (known, drift) {
            (Some(known), _) if known.root == found.root => Ok(true),
            (Some(_), DriftPolicy::Restore) => self.live.undo_drift().await.map(|()| true),
            (Some(_), DriftPolicy::Ask) => {
                self.live.record(vec![SessionPaused::of_changed_files().into()]).await.map(|()| false)
            }
            (Some(_), DriftPolicy::Adopt) | (None, _) => self.live.reconcile_files().await.map(|()| true),
        }
    }
}

/// True if this process has ended so often in a call that the call may be the reason. A call that was stopped has its
/// files restored, and does not count.
fn ends_this_process(call: &Call) -> bool {
    let attempts = call.intent.as_ref().map_or(0, |intent| intent.record.attempt);
    attempts >= MOST_CRASHES && !call.files_restored
}

/// Returns where a call was started.
fn started_at(call: &Call) -> Option<Position> {
    call.intent.as_ref().map(|intent| intent.point.position)
}

/// True if a call was started that may change files.
fn writes(call: &Call) -> bool {
    call.intent.as_ref().is_some_and(|intent| intent.record.root.is_some())
}

impl Driver {
    /// Returns the record that starts an adopted evaluation here. It keeps the contract that it was started
    /// with.
    pub(super) fn started_again(&self, evaluation: &Evaluation) -> EvaluationStarted {
        let started = self.started(evaluation.evaluation_id, None);
        match &evaluation.adopted_start {
            Some(before) => EvaluationStarted {
                prompt_ns: before.prompt_ns.clone(),
                prompt_key: before.prompt_key.clone(),
                fingerprint: before.fingerprint,
                tools: before.tools.clone(),
                parent_evaluation: before.parent_evaluation,
                follows: before.follows,
                decider: before.decider.clone(),
                ..started
            },
            // The original contract is not known. The contract that it is resumed with is recorded in its
            // place.
            None => EvaluationStarted { fingerprint: None, tools: None, decider: None, ..started },
        }
    }
}

/// Returns the effect class of a call without a result.
pub(super) fn effect_of(tools: &Tools, evaluation: Option<&Evaluation>, call: &Call) -> Effect {
    if call.intent.is_some() {
        return call.recorded_effect().unwrap_or_default();
    }
    if evaluation.is_some_and(|evaluation| was_not_offered(evaluation, &call.name)) {
        // The model made up the name, so nothing can have run.
        return Effect::Pure;
    }
    // A call of an unknown tool may have done anything.
    let Some(tool) = tools.get(&call.name) else { return Effect::External };
    match call.recorded_effect().unwrap_or(tool.spec.effect) {
        // The sub-agent's session is not part of the export, nor are the keys of its calls.
        Effect::Idempotent if SubAgent::behind(tool).is_some() => Effect::External,
        effect => effect,
    }
}

/// True if the tools of an evaluation are known, and none has this name.
pub(super) fn was_not_offered(evaluation: &Evaluation, name: &str) -> bool {
    let offered = evaluation.started_with().and_then(|started| started.tools.as_ref());
    offered.is_some_and(|tools| !tools.contains_key(name))
}
