//! The session of an agent that works for a call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    BudgetCharged, InboxKind, Origin, PauseReason, Position, RecordBody, SessionCreated,
};
use backstitch_core::ports::{BoxFuture, Claim, StoreError};
use backstitch_core::rng::Seed;
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use backstitch_core::view::{Call, JournalView};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Mission, ResumeOptions};
use crate::driver::Driver;
use crate::error::RuntimeError;
use crate::live::{LiveSession, Surroundings, load_view, read_records};
use crate::outcome::Ended;

/// The session of an agent that works for a call, and whoever drives it.
pub(crate) struct Child {
    live: Arc<LiveSession>,
    driver: Driver,
    allotment: Option<Limits>,
    time_left: Option<Duration>,
    /// Whether its time is over when that of its caller is, and not before.
    is_callers_time: bool,
}

/// What a child is made with.
pub(crate) struct Lent<'a> {
    pub(crate) parent: &'a LiveSession,
    pub(crate) call: CallId,
    pub(crate) session: SessionId,
    pub(crate) agent: Agent,
    /// What it may spend.
    pub(crate) allotment: Option<Limits>,
    /// How much time its caller has left.
    pub(crate) time_left: Option<Duration>,
    pub(crate) workspace: WorkspaceUse,
    pub(crate) resources: ResourceUse,
    /// Stops the child with its parent.
    pub(crate) stop: CancellationToken,
}

impl Child {
    /// Opens the session that works for a call, or creates it if a crash came before.
    pub(crate) async fn take_up(lent: Lent<'_>) -> Result<Self, RuntimeError> {
        let Lent { parent, call, session, mut agent, allotment, time_left, .. } = lent;
        agent.budget = allotment.or(agent.limits());
        let is_callers_time = time_left.is_some_and(|left| agent.deadline.is_none_or(|own| left <= own));
        agent.deadline = shorter(agent.deadline, time_left);
        let set_up = agent.clone();
        let live = match open(parent, session, (lent.workspace, lent.resources), &set_up).await {
            Err(RuntimeError::SessionNotFound { .. }) => {
                let seed = parent.seed().await.rng_for(call).next_u64();
                let created = SessionCreated {
                    session_id: session,
                    created_at: parent.clock().now(),
                    origin: Origin::Call { session: parent.id(), call },
                    seed: Seed::new(seed),
                    agent: agent.definition.clone(),
                    state: Vec::new(),
                    adopted: None,
                    tags: BTreeMap::new(),
                    extra: Extra::default(),
                };
                let surroundings = surroundings(parent, (lent.workspace, lent.resources)).await;
                LiveSession::create(surroundings, created, |session| set_up.set_up(session)).await?
            }
            other => other?,
        };
        crash_point!("child.created");
        live.forward_events_to(parent);
        let driver = Driver::new(live.clone(), agent).stopped_by(lent.stop);
        Ok(Self { live, driver, allotment, time_left, is_callers_time })
    }

    /// Drives the agent to its answer, or to a pause: from its beginning, or from where it was interrupted.
    pub(crate) fn drive(
        &self,
        mission: Mission,
        resume: ResumeOptions,
    ) -> BoxFuture<'_, Result<Ended, RuntimeError>> {
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
            let mut ended = match latest {
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
            // The driver sees to it that this ends.
            while let Ended::Superseded { evaluation, .. } = ended {
                ended = self.driver.start_over(evaluation).await?;
            }
            crash_point!("child.ended");
            Ok(ended)
        })
    }

    /// The session.
    pub(crate) fn id(&self) -> SessionId {
        self.live.id()
    }

    /// Whether its time is over when that of its caller is, and not before.
    pub(crate) fn has_callers_time(&self) -> bool {
        self.is_callers_time
    }

    /// Ends its evaluation at once.
    pub(crate) fn cancel(&self) {
        self.driver.cancel();
    }

    /// What it has spent.
    pub(crate) async fn spent(&self) -> Amounts {
        self.live.state().await.view.ledger().committed()
    }

    /// Takes back all that it has done, once its call has failed. The files are its caller's business.
    pub(crate) async fn withdraw(&self, why: &str) {
        if let Err(error) = self.live.withdraw(why).await {
            tracing::warn!(session = %self.live.id(), %error, "the session of a failed call could not go back");
        }
    }

    /// Gives the session back. What its tools use is its caller's, and stays.
    pub(crate) async fn give_back(&self) {
        if let Err(error) = self.live.give_back().await {
            tracing::warn!(session = %self.live.id(), %error, "the session of a call could not be given back");
        }
    }
}

async fn surroundings(
    parent: &LiveSession,
    (workspace, resources): (WorkspaceUse, ResourceUse),
) -> Surroundings {
    Surroundings {
        store: parent.store().clone(),
        clock: parent.clock().clone(),
        owner: parent.lease().owner.clone(),
        resources: parent.resources().clone().lent(resources),
        workspace: parent.workspace().filter(|_| workspace != WorkspaceUse::None).cloned(),
    }
}

/// Opens a session that works for a call of another. Whoever took that one over takes over this one too, and what this process
/// has left held is its own.
async fn open(
    parent: &LiveSession,
    session: SessionId,
    lent: (WorkspaceUse, ResourceUse),
    agent: &Agent,
) -> Result<Arc<LiveSession>, RuntimeError> {
    let try_open = async |claim| {
        let surroundings = surroundings(parent, lent).await;
        LiveSession::open(surroundings, session, claim, |session| agent.set_up(session)).await
    };
    match try_open(parent.claimed_by()).await {
        Err(RuntimeError::Store(StoreError::Held { owner, .. })) if owner == parent.lease().owner => {
            try_open(Claim::TakeOver).await
        }
        other => other,
    }
}

/// Takes back what a session has done for a call of another that failed, if that was not done yet.
pub(crate) async fn withdraw(
    parent: &LiveSession,
    session: SessionId,
    why: &str,
) -> Result<(), RuntimeError> {
    // Both are its caller's business.
    let surroundings = surroundings(parent, (WorkspaceUse::None, ResourceUse::None)).await;
    let live = match LiveSession::open(surroundings, session, parent.claimed_by(), |_| {}).await {
        // A crash came before it.
        Err(RuntimeError::SessionNotFound { .. }) => return Ok(()),
        other => other?,
    };
    let withdrawn = live.withdraw(why).await;
    live.give_back().await?;
    withdrawn
}

/// Whether a session that works for a call has looked at the files that it was lent.
pub(crate) async fn has_files(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    match load_view(&**parent.store(), session, None).await {
        Ok(view) => Ok(view.files().is_some()),
        Err(RuntimeError::SessionNotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is nothing to take back of what a session did for a call.
pub(crate) async fn is_withdrawn(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    match load_view(&**parent.store(), session, None).await {
        Ok(view) => Ok(view.latest_evaluation().is_none()),
        Err(RuntimeError::SessionNotFound { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether a session that works for a call waits for a decision that nobody has made yet.
pub(crate) async fn still_waits(parent: &LiveSession, session: SessionId) -> Result<bool, RuntimeError> {
    let store = &**parent.store();
    let view = load_view(store, session, None).await?;
    // What only has to be resumed goes on with its caller.
    let is_decided = |reason| matches!(reason, PauseReason::Asked | PauseReason::Truncated);
    if view.pauses().all(|pause| is_decided(pause.reason)) {
        return Ok(false);
    }
    let waiting = store.inbox(session).await.map_err(RuntimeError::Store)?;
    Ok(!waiting.iter().any(|(_, item)| item.kind == InboxKind::Resolution))
}

/// What a session that works for a call has spent, where the call ends without it.
pub(crate) async fn spent_for(
    parent: &LiveSession,
    call: &Call,
) -> Result<Option<BudgetCharged>, RuntimeError> {
    let Some(child) = call.session() else { return Ok(None) };
    let amounts = match load_view(&**parent.store(), child, None).await {
        Ok(view) => view.ledger().committed(),
        Err(RuntimeError::SessionNotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let charged = BudgetCharged { reservation: None, amounts, extra: Extra::default() };
    Ok((amounts != Amounts::ZERO).then_some(charged))
}

/// How many calls lie between a session and one that a person asked.
pub(crate) async fn depth(live: &LiveSession) -> Result<u32, RuntimeError> {
    let mut origin = live.state().await.view.created().origin.clone();
    let (mut depth, mut seen) = (0, Vec::new());
    while let Some(parent) = origin.parent().filter(|parent| !seen.contains(parent)) {
        depth += u32::from(matches!(origin, Origin::Call { .. }));
        seen.push(parent);
        let next = Some(Position::START.next());
        let first = read_records(&**live.store(), parent, Position::START, next).await?;
        origin = match first.first().map(|record| &record.body) {
            Some(RecordBody::SessionCreated(created)) => created.origin.clone(),
            _ => Origin::Root,
        };
    }
    Ok(depth)
}

/// The processes that calls of a session, and of those that work for them, may have left running.
pub(crate) async fn left_running(
    live: &LiveSession,
    view: &JournalView,
) -> Result<Vec<Arc<backstitch_core::journal::ProcessStarted>>, RuntimeError> {
    let mut processes = Vec::new();
    let mut views = vec![view.clone()];
    while let Some(view) = views.pop() {
        // In a fork the calls of its parent are the parent's, which may well be running.
        let own = view.calls().filter(|call| {
            let session = call.intent.as_ref().map(|intent| intent.point.session);
            call.is_open() && session == Some(view.session_id())
        });
        for call in own {
            processes.extend(call.processes.iter().cloned());
            let Some(child) = call.session() else { continue };
            match load_view(&**live.store(), child, None).await {
                Ok(child) => views.push(child),
                Err(RuntimeError::SessionNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(processes)
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
