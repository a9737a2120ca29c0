//! Calls of sub-agents, which run in child sessions.
//!
//! Such a call is a transaction like any other. Its intent names the child session, and as long as the call
//! is open, that session is resumed. While the child session waits for a decision, its parent waits. The call
//! ends when the child session has ended.

use std::sync::Arc;

use backstitch_core::budget::Limits;
use backstitch_core::crash_point;
use backstitch_core::journal::PauseReason;
use backstitch_core::message::{Part, Retry};
use backstitch_core::tool::{Tool, ToolResult};
use serde_json::{Map, Value};

use super::approval::rules_of;
use super::attempt::{Stop, Waiter};
use super::child::{Child, DriveChild};
use super::files::Hold;
use super::request::{CallOutcome, CallRequest};
use super::result::{Failure, Speaker};
use super::{Attempt, Settlement, ToolRunner, paused};
use crate::agent::{Agent, Mission, MissionProblem, SubAgent};
use crate::clock::after;
use crate::error::{Result, RuntimeError};
use crate::fence::catch_panic;
use crate::heap::boxed;
use crate::live::{Saver, depth};
use crate::outcome::{DriveOutcome, FinalAnswer};

/// The calling agent, and how its sub-agents are driven.
pub(super) struct Caller {
    agent: Arc<Agent>,
    drive: DriveChild,
}

impl ToolRunner {
    /// Sets the calling agent, how its sub-agents are driven, and what saves the session after each call.
    pub(crate) fn called_by(self, agent: Arc<Agent>, drive: DriveChild, saver: Option<Arc<Saver>>) -> Self {
        Self {
            contents: agent.contents,
            prompt_name: agent.prompt_name(),
            adapter: agent.policy.name().to_string(),
            secrets: agent.all_secrets(),
            rules: agent.approval_rules.clone(),
            mode: agent.current_mode(),
            caller: Some(Arc::new(Caller { agent, drive })),
            saver,
            ..self
        }
    }

    /// Runs a call of a sub-agent.
    pub(super) async fn run_agent(
        &self,
        sub_agent: &SubAgent,
        tool: &Tool,
        call: &Arc<CallRequest>,
        arguments: Map<String, Value>,
        hold: &Hold,
        waiter: Arc<Waiter>,
    ) -> Result<CallOutcome> {
        let Some(Caller { agent: caller, drive }) = self.caller.as_deref() else {
            let message = format!("{} is an agent, and only an agent can call it", tool.name());
            return self.refuse(call, Failure::by_runtime("no_caller", message, Retry::Refused)).await;
        };
        let depth = depth(&self.live).await?;
        if depth >= caller.max_depth && call.continued.is_none() {
            let message = format!(
                "{} would work at depth {}, and agents may be nested {} deep: do the work without it",
                tool.name(),
                depth + 1,
                caller.max_depth
            );
            return self.refuse(call, Failure::by_runtime("depth_exceeded", message, Retry::Refused)).await;
        }
        let mission = match sub_agent.mission(arguments.clone()) {
            Ok(mission) => mission,
            Err(MissionProblem::Unfit(problem)) => {
                let message = format!("the arguments of {} do not fit: {problem}", tool.name());
                let failure = Failure::by_runtime("invalid_arguments", message, Retry::Allowed);
                return self.refuse(call, failure).await;
            }
            Err(MissionProblem::Panicked(panic)) => return boxed(|| self.refuse_panic(call, panic)).await,
        };
        let mut agent = match catch_panic(|| sub_agent.agent(caller)) {
            Ok(agent) => agent,
            Err(panic) => return boxed(|| self.refuse_panic(call, panic)).await,
        };
        // Secrets of the parent are redacted at all levels below.
        agent.secrets = agent.secrets.and(&self.secrets);
        // A person who decided for this session decided for its sub-agents too.
        let own = std::mem::take(&mut agent.approval_rules);
        let rules = boxed(|| rules_of(&self.live, &self.rules)).await?;
        agent.approval_rules = rules.and(own.iter().cloned());
        agent.limit_mode(self.mode);
        let mut started = match self.start(tool, call, arguments, hold, &waiter).await {
            Ok(Ok(started)) => started,
            Ok(Err(unstarted)) => return Ok(unstarted),
            Err(error) => return self.handle_failed_start(call, error).await,
        };
        let resources = started.resources.clone();
        if matches!(hold, Hold::Alone { .. }) {
            self.live.condition().lend_files();
        }
        let settled = match boxed(|| self.child(&started, agent, drive)).await {
            Ok(child) => {
                let (ended, stop) = boxed(|| self.watch(&child, &started, mission)).await;
                started.spent = child.live.view().await.ledger().committed();
                crash_point!("call.handler_done");
                let settled = boxed(|| self.settle_child(started, hold, &child, ended, stop)).await;
                child.release_claim().await;
                settled
            }
            Err(error) => Err(error),
        };
        match settled {
            Ok(Settlement::End(CallOutcome::Waits)) => Ok(CallOutcome::Waits),
            Ok(Settlement::End(end)) => {
                self.live.condition().reclaim_files();
                Ok(end)
            }
            Ok(Settlement::Conflict) => Err(RuntimeError::Internal {
                reason: "a sub-agent's call conflicts with a state that it cannot change".to_owned(),
            }),
            Err(error) => {
                resources.end(false);
                Err(error)
            }
        }
    }

    /// Ends a call whose mission or agent could not be made.
    async fn refuse_panic(&self, call: &CallRequest, panic: String) -> Result<CallOutcome> {
        let message = format!("{} panicked: {panic}", call.name);
        self.refuse(call, Failure::by_runtime("panic", message, Retry::Refused)).await
    }

    /// Returns the budget of a sub-agent: its own limits, within its share of what is left to the parent.
    pub(super) fn allotment(&self, tool: &Tool, share: Option<Limits>) -> Option<Limits> {
        let own = SubAgent::behind(tool).zip(self.caller.as_ref());
        let own = own.and_then(|(agent, caller)| agent.agent(&caller.agent).limits());
        match (own, share) {
            (Some(own), Some(share)) => Some(own.within(&share)),
            (own, share) => own.or(share),
        }
    }

    /// Drives the sub-agent. If it has to stop, its evaluation is cancelled and awaited. If its parent only
    /// pauses, it pauses too.
    async fn watch(
        &self,
        child: &Child,
        started: &Attempt,
        mission: Mission,
    ) -> (Result<DriveOutcome>, Option<Stop>) {
        let mut driving = child.drive(mission, started.call.resume.clone());
        let cancelled = async {
            match &started.call.cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
            if self.cancel.is_cancelled() {
                std::future::pending::<()>().await;
            }
        };
        let stop = tokio::select! {
            biased;
            ended = &mut driving => return (ended, None),
            () = cancelled => Stop::Cancelled,
            () = after(started.tool.spec.timeout) => Stop::Timeout,
        };
        child.driver.cancel();
        (driving.await, Some(stop))
    }

    async fn settle_child(
        &self,
        started: Attempt,
        hold: &Hold,
        child: &Child,
        ended: Result<DriveOutcome>,
        stop: Option<Stop>,
    ) -> Result<Settlement> {
        let name = started.tool.name().clone();
        let failure = match (ended, stop) {
            (Err(RuntimeError::Poisoned { session, reason }), _) => {
                let reason = format!("session {session}, a sub-agent of {name}, is poisoned: {reason}");
                return Err(self.live.poison(reason).await);
            }
            // The call stays open, so its child session is resumed once the problem is fixed.
            (Err(error), _) => return Err(error),
            (Ok(DriveOutcome::Completed(answered)), _) => {
                let draft = self.live.state().await.session.draft();
                return self.handle_answer(started, hold, result_of(answered), draft).await;
            }
            // Its own time is over, and its parent has more: the call fails with a timeout.
            (Ok(DriveOutcome::Paused { reason: PauseReason::Deadline, .. }), None)
                if !child.is_callers_time =>
            {
                let message = format!("{name} did not answer within its time");
                Failure::by_runtime("deadline_exceeded", message, Retry::Refused)
            }
            (Ok(DriveOutcome::Paused { reason, detail, session, .. }), None) => {
                let session = session.unwrap_or(child.live.id());
                let detail = format!("{name} waits in session {session}: {detail}");
                let mut paused = paused(&started.call, reason, detail);
                paused.session = Some(session);
                self.live.record(vec![paused.into()]).await?;
                started.end_resources(false);
                return Ok(Settlement::End(CallOutcome::Waits));
            }
            (Ok(_), Some(stop)) => {
                let settled = self.handle_stop(started, hold, stop, None).await?;
                return self.withdraw_child(child, settled, "its call was stopped").await;
            }
            (Ok(DriveOutcome::Failed { failure, .. }), None) => {
                let (kind, message) = (failure.kind, failure.message);
                Failure { speaker: Speaker::Tool, kind, message, retry: Retry::Refused }
            }
            (Ok(DriveOutcome::Cancelled { .. } | DriveOutcome::Superseded { .. }), None) => {
                let message = format!("{name} was cancelled before it was done");
                Failure::by_runtime("agent_cancelled", message, Retry::Refused)
            }
        };
        let why = format!("its call failed: {}", failure.message);
        let settled = self.roll_back(started, hold, failure, None, CallOutcome::Failed).await?;
        self.withdraw_child(child, settled, &why).await
    }

    /// Rolls back the child session of a failed call. The failure is durable before: otherwise the work would
    /// be repeated.
    async fn withdraw_child(&self, child: &Child, settled: Settlement, why: &str) -> Result<Settlement> {
        self.live.flush().await?;
        crash_point!("child.settled");
        child.withdraw(why).await;
        Ok(settled)
    }
}

/// Returns the result of the call: the structured answer if there is one, otherwise the text, and the media of the
/// answer, which is in the store already.
fn result_of(answered: FinalAnswer) -> ToolResult {
    let mut result = ToolResult::default();
    match answered.output {
        Some(output) => result.value = Some(output),
        None => result.message = answered.text,
    }
    result.parts = answered.media.into_iter().map(Part::Media).collect();
    result
}
