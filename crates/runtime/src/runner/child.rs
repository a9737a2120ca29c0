//! The session of an agent that works for a call.
//!
//! To drive a session takes a driver, which runs its calls with a runner. So that the runner need not know who drives, it is given
//! a way to make one for the session of a sub-agent ([`DriveChild`]).

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::crash_point;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Origin, PauseReason, SessionCreated};
use backstitch_core::ports::{BoxFuture, ClaimMode, StoreError};
use backstitch_core::rng::Seed;
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Mission, ResumeOptions};
use crate::error::RuntimeError;
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;

/// Makes what drives the session of a sub-agent, until the token stops it.
pub(crate) type DriveChild = fn(Arc<LiveSession>, Agent, CancellationToken) -> Box<dyn ChildDriver>;

/// Drives the session of a sub-agent to its answer, or to a pause. Evaluations that take the place of others are driven too.
pub(crate) trait ChildDriver: Send + Sync {
    /// Starts an evaluation.
    fn start(&self, mission: Mission) -> BoxFuture<'_, Result<DriveOutcome, RuntimeError>>;

    /// Resumes an evaluation.
    fn resume(&self, options: ResumeOptions) -> BoxFuture<'_, Result<DriveOutcome, RuntimeError>>;

    /// Ends the evaluation that runs.
    fn cancel(&self);
}

/// The session of an agent that works for a call, and what drives it.
pub(super) struct Child {
    live: Arc<LiveSession>,
    driver: Box<dyn ChildDriver>,
    allotment: Option<Limits>,
    time_left: Option<Duration>,
    /// Whether its time is over when that of its caller is, and not before.
    is_callers_time: bool,
}

/// What a child is made with.
pub(super) struct ChildParams<'a> {
    pub(super) parent: &'a LiveSession,
    pub(super) call: CallId,
    pub(super) session: SessionId,
    pub(super) agent: Agent,
    /// What it may spend.
    pub(super) allotment: Option<Limits>,
    /// How much time its caller has left.
    pub(super) time_left: Option<Duration>,
    pub(super) workspace: WorkspaceUse,
    pub(super) resources: ResourceUse,
    /// Stops the child with its parent.
    pub(super) stop: CancellationToken,
    pub(super) drive: DriveChild,
}

impl Child {
    /// Opens the session that works for a call, or creates it if a crash came before.
    pub(super) async fn take_up(lent: ChildParams<'_>) -> Result<Self, RuntimeError> {
        let ChildParams { parent, call, session, mut agent, allotment, time_left, .. } = lent;
        agent.budget = allotment.or(agent.limits());
        let is_callers_time = time_left.is_some_and(|left| agent.deadline.is_none_or(|own| left <= own));
        agent.deadline = shorter(agent.deadline, time_left);
        let set_up = agent.clone();
        let live = match open(parent, session, (lent.workspace, lent.resources), &set_up).await {
            Err(RuntimeError::SessionNotFound { .. }) => {
                let seed = parent.seed().await.rng_for(call).next_u64();
                let created = SessionCreated {
                    origin: Origin::Call { session: parent.id(), call },
                    agent: agent.definition.clone(),
                    ..SessionCreated::new(session, parent.clock().now(), Seed::new(seed))
                };
                let surroundings = parent.lent(lent.workspace, lent.resources);
                LiveSession::create(surroundings, created, |session| set_up.set_up(session)).await?
            }
            other => other?,
        };
        crash_point!("child.created");
        live.forward_events_to(parent);
        let driver = (lent.drive)(live.clone(), agent, lent.stop);
        Ok(Self { live, driver, allotment, time_left, is_callers_time })
    }

    /// Drives the agent to its answer, or to a pause: from its beginning, or from where it was interrupted.
    pub(super) fn drive(
        &self,
        mission: Mission,
        resume: ResumeOptions,
    ) -> BoxFuture<'_, Result<DriveOutcome, RuntimeError>> {
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
                // Its recorded answer is all that a resume gives, and its files may have been in the memory of a process.
                self.live.bring_back_files().await?;
            }
            let ended = match latest {
                None => self.driver.start(mission).await?,
                Some((evaluation, has_budget, time_left, is_truncated, _)) => {
                    let options = ResumeOptions {
                        // The call is answered by what it asked for, and not by what was sent to the session since.
                        evaluation: Some(evaluation),
                        // A person may have given it more than its call holds back: that stands as long as it lasts.
                        budget: self.allotment.filter(|_| !has_budget),
                        deadline: match time_left {
                            // It ran out of time with its caller, who has more now.
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

    /// The session.
    pub(super) fn id(&self) -> SessionId {
        self.live.id()
    }

    /// Whether its time is over when that of its caller is, and not before.
    pub(super) fn has_callers_time(&self) -> bool {
        self.is_callers_time
    }

    /// Ends its evaluation at once.
    pub(super) fn cancel(&self) {
        self.driver.cancel();
    }

    /// What it has spent.
    pub(super) async fn spent(&self) -> Amounts {
        self.live.state().await.view.ledger().committed()
    }

    /// Takes back all that it has done, once its call has failed. The files are its caller's business.
    pub(super) async fn withdraw(&self, why: &str) {
        if let Err(error) = self.live.withdraw(why).await {
            tracing::warn!(session = %self.live.id(), %error, "the session of a failed call could not go back");
        }
    }

    /// Gives the session back. What its tools use is its caller's, and stays.
    pub(super) async fn give_back(&self) {
        if let Err(error) = self.live.give_back().await {
            tracing::warn!(session = %self.live.id(), %error, "the session of a call could not be given back");
        }
    }
}

/// Opens a session that works for a call of another. Whoever took that one over takes over this one too, and what this process
/// has left held is its own.
async fn open(
    parent: &LiveSession,
    session: SessionId,
    (workspace, resources): (WorkspaceUse, ResourceUse),
    agent: &Agent,
) -> Result<Arc<LiveSession>, RuntimeError> {
    let try_open = async |claim| {
        let surroundings = parent.lent(workspace, resources);
        LiveSession::open(surroundings, session, claim, |session| agent.set_up(session)).await
    };
    match try_open(parent.claimed_by()).await {
        Err(RuntimeError::Store(StoreError::Held { owner, .. })) if owner == parent.lease().owner => {
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
