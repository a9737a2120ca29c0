//! Start of a call: its intent becomes durable, and its handler runs.
//!
//! Records of a running call follow its intent.

use std::sync::Arc;

use backstitch_core::budget::{Amounts, Reservation};
use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::journal::{CallStarted, PauseReason, RecordBody};
use backstitch_core::message::Retry;
use backstitch_core::tool::{ContextParts, ResourceUse, Tool, ToolContext, with_causes};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, AttemptOutcome, Bounds, PersonTime, Stop, Waiter};
use super::files::{Hold, inside};
use super::host::Host;
use super::request::{CallOutcome, CallRequest};
use super::result::Failure;
use super::wait::WaitSlot;
use super::{Attempt, Settlement, ToolRunner, paused};
use crate::agent::SubAgent;
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::live::{Commit, LiveSession};
use crate::process::Processes;

impl ToolRunner {
    /// Makes a call's intent durable. Returns an outcome in its place if the call may not start, because the budget does
    /// not allow it, or because it is not what a person approved; then the session is paused.
    pub(super) async fn start(
        &self,
        tool: &Tool,
        call: &Arc<CallRequest>,
        arguments: Map<String, Value>,
        hold: &Hold,
        waiter: &Arc<Waiter>,
    ) -> Result<Result<Attempt, CallOutcome>> {
        let watched = match hold.writes_files() {
            true => Some(self.live.watch_call().await),
            false => None,
        };
        let (before, objects) = match &call.continued {
            Some(continued) => (continued.before, None),
            None => hold.capture().await?.unzip(),
        };
        if let Some(unstarted) = boxed(|| self.check_approval(tool, call, &arguments)).await? {
            return Ok(Err(unstarted));
        }
        let agent = SubAgent::behind(tool);
        let live = &self.live;
        // The intent of a pure call can wait, unless it names objects that have to be stored with it.
        let changes_resources = self.resource_use(tool) == ResourceUse::Write;
        let effect = tool.spec.effect_of(&arguments);
        let record_now = !effect.only_reads() || before.is_some() || changes_resources;

        if record_now {
            // Without an intent, the call runs when the session is resumed, and no person is asked.
            live.check_lease()?;
        }
        crash_point!("call.before_intent");
        let started = live
            .commit(|commit| {
                let (state, session) = (commit.state(), commit.session());
                let evaluation = call.evaluation_id;
                let known = state.view.evaluation(evaluation);
                let limits = known.ok_or(RuntimeError::NoEvaluation { evaluation })?.budget;
                let one_call = Amounts { calls: 1, ..Amounts::ZERO };
                let ledger = state.view.ledger();
                let earlier = ledger.committed_before(call.evaluation_id);
                let committed = ledger.committed_without(&[call.call_id]).minus(earlier).plus(one_call);
                if let Some(limits) = limits
                    && let Err(exceeded) = limits.check(committed)
                {
                    commit.push(paused(call, PauseReason::Budget, exceeded.to_string()));
                    return Ok(None);
                }
                let others = |calls: &[CallId]| ledger.committed_without(calls).minus(earlier);
                let share = limits.map(|limits| call.shares.take(call.call_id, limits, others));
                let allotment = agent.and_then(|_| self.allotment(tool, share));
                let held = allotment.map_or(one_call, |allotment| one_call.plus(allotment.most()));
                let intent = CallStarted {
                    call_id: call.call_id,
                    evaluation_id: call.evaluation_id,
                    name: call.name.clone(),
                    arguments: call.edited.then(|| arguments.clone().into()),
                    effect,
                    idempotency_key: call
                        .key
                        .clone()
                        .unwrap_or_else(|| state.view.idempotency_key(call.call_id)),
                    attempt: call.attempt,
                    root: before.map(|files| files.root),
                    coverage: before.and_then(|files| files.coverage),
                    reservation: limits.map(|_| Reservation { id: session.ids().next(), amounts: held }),
                    session: agent.map(|_| match &call.continued {
                        Some(continued) => continued.session,
                        None => session.ids().next(),
                    }),
                    extra: Extra::default(),
                };
                let intent = Arc::new(intent);
                if changes_resources {
                    state.push_unrecorded(commit.batch(), live.clock().now())?;
                }
                if record_now {
                    commit.push(RecordBody::CallStarted(intent.clone()));
                    commit.add_objects(objects.into_iter().flatten());
                }
                Ok(Some(Attempt {
                    tool: tool.clone(),
                    call: call.clone(),
                    arguments,
                    intent: Arc::new(Intent::new(intent, record_now)),
                    before,
                    resources: state.resources.for_call().declared(tool.spec.resources),
                    changed: Vec::new(),
                    waiter: waiter.clone(),
                    started: live.clock().monotonic(),
                    conflicts: 0,
                    allotment,
                    spent: Amounts::ZERO,
                    _watched: watched,
                }))
            })
            .await?;
        crash_point!("call.after_intent");
        Ok(started.ok_or(CallOutcome::BudgetExhausted))
    }

    /// Returns the outcome of a call that could not be started. If the state before it could not be captured,
    /// only this call fails: nothing has happened, and other calls continue.
    pub(super) async fn handle_failed_start(
        &self,
        call: &CallRequest,
        error: RuntimeError,
    ) -> Result<CallOutcome> {
        if error.is_outage() || !matches!(error, RuntimeError::Workspace(_) | RuntimeError::State(_)) {
            return Err(error);
        }
        let cause = with_causes(&error);
        let message = format!("what {} would start from could not be captured: {cause}", call.name);
        self.refuse(call, Failure::by_runtime("capture_failed", message, Retry::Allowed)).await
    }

    /// Runs the handler, and commits or rolls back its changes.
    pub(super) async fn attempt(&self, mut started: Attempt, hold: &Hold) -> Result<Settlement> {
        if started.waiter.is_gone() {
            return boxed(|| self.handle_stop(started, hold, Stop::Abandoned, None)).await;
        }
        let cancel = started.call.cancel.clone().unwrap_or_else(|| self.cancel.clone());
        // It may have been cancelled while what it starts was compared with what a person approved.
        if started.call.subject.is_some() && cancel.is_cancelled() {
            return boxed(|| self.handle_stop(started, hold, Stop::Cancelled, None)).await;
        }
        let live = &self.live;
        // The intent is durable, but the process may have been stopped since.
        if started.intent.record.effect.acts_outside() || hold.writes_files() {
            self.check_lease(&started)?;
        }
        let (stop, processes) = (CancellationToken::new(), Arc::<Processes>::default());
        let person_time = Arc::<PersonTime>::default();
        let wait = Arc::<WaitSlot>::default();
        let deadline = live.deadline(started.call.evaluation_id);
        let (draft, seed) = {
            let state = live.state().await;
            (state.session.draft(), state.view.created().seed)
        };
        let context = ToolContext::new(ContextParts {
            session_id: live.id(),
            evaluation_id: started.call.evaluation_id,
            call_id: started.call.call_id,
            tool: started.tool.name().clone(),
            attempt: started.call.attempt,
            is_resume: started.call.is_resume,
            idempotency_key: started.intent.record.idempotency_key.clone(),
            fence: live.claim().fence,
            approved: started.call.subject.clone(),
            draft: Some(draft),
            workspace: started.tool.spec.workspace,
            filesystem: live.workspace().map(|workspace| workspace.filesystem()),
            resources: started.resources.clone(),
            deadline,
            clock: live.clock().clone(),
            rng: seed.rng_for(started.call.call_id),
            host: Arc::new(Host {
                live: live.clone(),
                intent: started.intent.clone(),
                processes: processes.clone(),
                stop: stop.clone(),
                secrets: self.secrets.clone(),
                person_time: person_time.clone(),
                wait: started.call.can_wait.then(|| wait.clone()),
            }),
        });
        let bounds = Bounds {
            timeout: started.tool.spec.timeout,
            person_time,
            deadline: deadline.map(|deadline| deadline.since(live.clock().now())),
            cancel,
            waiter: started.waiter.clone(),
            stop,
            waits: wait.begun.clone(),
            lease_over: live.lease_over().clone(),
            processes,
            grace: self.grace,
        };
        let arguments = std::mem::take(&mut started.arguments);
        let ended = attempt::run(&started.tool, context, arguments, bounds, |handler| {
            Box::pin(inside(hold, &live.files, started.tool.name(), handler))
        })
        .await;
        crash_point!("call.handler_done");
        // A result outside is recorded if the store still accepts it. An error may only say that the context could not be used.
        if !matches!(ended, AttemptOutcome::Stuck(_) | AttemptOutcome::Answered(..)) || hold.writes_files() {
            self.check_lease(&started)?;
        }
        match ended {
            AttemptOutcome::Answered(result, draft) => {
                self.handle_answer(started, hold, *result, *draft).await
            }
            AttemptOutcome::Failed(error, draft) => {
                boxed(|| self.handle_failure(started, hold, error, draft)).await
            }
            AttemptOutcome::Panicked(message, draft) => {
                let message = format!("{} panicked: {message}", started.tool.name());
                let failure = Failure::by_runtime("panic", message, Retry::Refused);
                boxed(|| self.roll_back(started, hold, failure, draft, CallOutcome::Failed)).await
            }
            AttemptOutcome::Stopped(Stop::Waits, draft) => {
                boxed(|| self.leave_waiting(started, hold, wait.take(), draft)).await
            }
            AttemptOutcome::Stopped(stop, draft) => {
                boxed(|| self.handle_stop(started, hold, stop, draft)).await
            }
            AttemptOutcome::Stuck(why) => {
                let reason = format!("{}: {why}; its files cannot be restored", started.tool.name());
                started.end_resources(false);
                Err(live.poison(reason).await)
            }
        }
    }
}

/// The intent of a call. That of a pure call is not recorded at once, but together with the first record that
/// needs it, at the latest with the last one of the call.
pub(super) struct Intent {
    pub(super) record: Arc<CallStarted>,
    recorded: Mutex<bool>,
}

impl Intent {
    pub(super) fn new(record: Arc<CallStarted>, recorded: bool) -> Self {
        Self { record, recorded: Mutex::new(recorded) }
    }

    /// Returns the intent if it has to be recorded before the call's last records.
    pub(super) async fn outstanding(&self) -> Option<RecordBody> {
        let recorded = *self.recorded.lock().await;
        (!recorded).then(|| RecordBody::CallStarted(self.record.clone()))
    }

    /// Appends records while the call runs, after the intent if that is not recorded yet.
    pub(super) async fn append(
        &self,
        live: &LiveSession,
        bodies: impl IntoIterator<Item = RecordBody>,
    ) -> Result<()> {
        self.commit(live, |commit| {
            commit.push_all(bodies);
            Ok(())
        })
        .await
    }

    /// Commits while the call runs, after the intent if that is not recorded yet.
    pub(super) async fn commit(
        &self,
        live: &LiveSession,
        build: impl FnOnce(&mut Commit<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut recorded = self.recorded.lock().await;
        let first = (!*recorded).then(|| RecordBody::CallStarted(self.record.clone()));
        live.commit(|commit| {
            commit.push_all(first);
            build(commit)
        })
        .await?;
        *recorded = true;
        Ok(())
    }
}
