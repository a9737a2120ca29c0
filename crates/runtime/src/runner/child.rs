//! Child sessions: the sessions of sub-agents.
//!
//! Driving a session takes a driver, which runs calls with a runner. So that the runner does not depend on
//! the driver, it receives a function that creates a driver for a child session ([`DriveChild`]).

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, PauseReason, SessionCreated};
use backstitch_core::ports::{BoxFuture, ClaimMode, StoreError};
use backstitch_core::rng::Seed;
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use tokio_util::sync::CancellationToken;

use super::{Attempt, ToolRunner};
use crate::agent::{Agent, Mission, ResumeOptions};
use crate::error::{Result, RuntimeError};
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;

/// Creates the driver of a child session, which the token stops.
pub(crate) type DriveChild =
    Arc<dyn Fn(Arc<LiveSession>, Agent, CancellationToken) -> Box<dyn ChildDriver> + Send + Sync>;

/// Drives a child session to its answer, or to a pause, including evaluations that replace superseded ones.
pub(crate) trait ChildDriver: Send + Sync {
    /// Starts an evaluation.
    fn start(&self, mission: Mission) -> BoxFuture<'_, Result<DriveOutcome>>;

    /// Resumes an evaluation.
    fn resume(&self, options: ResumeOptions) -> BoxFuture<'_, Result<DriveOutcome>>;

    /// Ends the running evaluation.
    fn cancel(&self);
}

/// A child session, and its driver.
pub(super) struct Child {
    pub(super) live: Arc<LiveSession>,
    pub(super) driver: Box<dyn ChildDriver>,
    allotment: Option<Limits>,
    time_left: Option<Duration>,
    /// Whether its time ends with that of its parent, and not before.
    pub(super) is_callers_time: bool,
}

impl ToolRunner {
    /// Opens the child session of a call, or creates it if it does not exist yet. It stops with its parent.
    pub(super) async fn child(
        &self,
        started: &Attempt,
        mut agent: Agent,
        drive: &DriveChild,
    ) -> Result<Child> {
        let (parent, call, allotment) = (&self.live, started.call.call_id, started.allotment);
        let session = started.intent.record.session.ok_or(RuntimeError::ShuttingDown)?;
        let deadline = parent.deadline(started.call.evaluation_id);
        let time_left = deadline.map(|deadline| deadline.since(parent.clock().now()));
        agent.budget = allotment.or(agent.limits());
        let is_callers_time = time_left.is_some_and(|left| agent.deadline.is_none_or(|own| left <= own));
        agent.deadline = shorter(agent.deadline, time_left);
        let set_up = agent.clone();
        let uses = (started.tool.spec.workspace, self.resource_use(&started.tool));
        let live = match open(parent, session, uses, &set_up).await {
            Err(RuntimeError::SessionNotFound { .. }) => {
                let seed = parent.seed().await.rng_for(call).next_u64();
                let created = SessionCreated {
                    origin: Origin::Call { session: parent.id(), call },
                    agent: agent.recorded_definition(parent.workspace()),
                    ..SessionCreated::new(session, parent.clock().now(), Seed::new(seed))
                };
                let environment = parent.lent(uses.0, uses.1);
                LiveSession::create(environment, created, |session| set_up.set_up_session(session)).await?
            }
            other => other?,
        };
        crash_point!("child.created");
        live.channel.forward_to(parent.channel.clone());
        let driver = drive(live.clone(), agent, started.waiter.stop.clone());
        Ok(Child { live, driver, allotment, time_left, is_callers_time })
    }
}

impl Child {
    /// Drives the child session to its answer, or to a pause: from its beginning, or from where it was
    /// interrupted.
    pub(super) fn drive(
        &self,
        mission: Mission,
        resume: ResumeOptions,
    ) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async move {
            let latest = {
                let state = self.live.state().await;
                state.view.latest_evaluation().map(|latest| {
                    let least = Amounts { input_tokens: 1, ..Amounts::ONE_TURN };
                    let least = state.view.spent_by(latest).plus(least);
                    let has_budget = latest.budget.is_none_or(|budget| budget.check(least).is_ok());
                    let is_finished = latest.finished.is_some();
                    let mut reasons = state.view.pauses().map(|pause| (pause.reason, pause.session));
                    let is_truncated = reasons.any(|(reason, _)| reason == PauseReason::Truncated);
                    (latest.evaluation_id, has_budget, latest.time_left(), is_truncated, is_finished)
                })
            };
            if matches!(latest, Some((.., true))) {
                // A resume only returns the recorded answer, and the files may have been in the memory of
                // another process.
                self.live.restore_missing_files().await?;
            }
            let ended = match latest {
                None => self.driver.start(mission).await?,
                Some((evaluation, has_budget, time_left, is_truncated, _)) => {
                    let options = ResumeOptions {
                        // The answer to the mission counts, and not those to messages that were sent since.
                        evaluation: Some(evaluation),
                        // A person may have granted more than the reservation of the call. That applies until
                        // it is used up.
                        budget: self.allotment.filter(|_| !has_budget),
                        deadline: match time_left {
                            // It ran out of time together with its parent, which has more now.
                            Some(left) if left.is_zero() => self.time_left,
                            left => self.time_left.and(shorter(left, self.time_left)),
                        },
                        accept: resume.accept && is_truncated,
                        ..resume
                    };
                    self.driver.resume(options).await?
                }
            };
            crash_point!("child.ended");
            Ok(ended)
        })
    }

    /// Rolls the child session back once its call has failed. The parent restores the files.
    pub(super) async fn withdraw(&self, why: &str) {
        if let Err(error) = self.live.withdraw(why).await {
            tracing::warn!(session = %self.live.id(), %error, "a failed child session could not be rewound");
        }
    }

    /// Releases the session. Its resources belong to the parent, and stay open.
    pub(super) async fn release_claim(&self) {
        if let Err(error) = self.live.release_claim().await {
            tracing::warn!(session = %self.live.id(), %error, "a child session could not be released");
        }
    }
}

/// Opens a child session. If the parent was taken over, the child is taken over as well. A claim that this
/// process has left behind is its own.
async fn open(
    parent: &LiveSession,
    session: SessionId,
    (workspace, resources): (WorkspaceUse, ResourceUse),
    agent: &Agent,
) -> Result<Arc<LiveSession>> {
    let try_open = async |claim| {
        let environment = parent.lent(workspace, resources);
        LiveSession::open(environment, session, claim, |session| agent.set_up_session(session)).await
    };
    match try_open(parent.mode).await {
        Err(RuntimeError::Store(StoreError::Held { owner, .. })) if owner == parent.claim().owner => {
            try_open(ClaimMode::TakeOver).await
        }
        other => other,
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
