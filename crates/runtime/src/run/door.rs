//! Starts, asks and resumes sessions: opens what their agents name, and drives them in tasks of the runtime.

use backstitch_core::ports::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{PauseReason, Position, StopReason};
use futures_util::FutureExt as _;
use tokio::sync::{oneshot, watch};

use super::Run;
use super::opening::{holder, new_copy};
use super::task::async_runtime;
use crate::agent::{Agent, Mission, ResumeOptions};
use crate::driver::{DriverParts, StopCause};
use crate::error::{Result, RuntimeError};
use crate::evaluate::{Begin, Evaluator};
use crate::events::EventStream;
use crate::heap::boxed;
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;
use crate::runtime::{Runtime, SessionOptions};
use crate::workspace::{MovedFiles, OpenedWorkspace};

/// The session that a run drives.
pub(super) enum Target {
    New(SessionOptions),
    Known(SessionId, SessionOptions),
}

impl Runtime {
    /// Starts a session of this agent. Returns once session and mission are durable. A task of the runtime
    /// drives it.
    pub async fn start(&self, agent: &Agent, mission: impl Into<Mission>) -> Result<Run> {
        self.start_with(agent, mission, SessionOptions::default()).await
    }

    /// Starts a session with options: its id, seed, tags, or a workspace in place of the agent's.
    pub async fn start_with(
        &self,
        agent: &Agent,
        mission: impl Into<Mission>,
        options: SessionOptions,
    ) -> Result<Run> {
        let options = SessionOptions { stored_with_mission: true, ..options };
        self.run(agent, Target::New(options), Begin::Mission(mission.into())).await
    }

    /// Starts a follow-up evaluation in a session. The model sees the conversation so far. Fails with
    /// [`RuntimeError::EvaluationOpen`] while an evaluation is open.
    pub async fn ask(&self, session: SessionId, agent: &Agent, mission: impl Into<Mission>) -> Result<Run> {
        self.ask_with(session, agent, mission, SessionOptions::default()).await
    }

    /// Like [`ask`](Self::ask), with options: a workspace in place of the agent's, and whether to take over
    /// the session from the process that holds it.
    pub async fn ask_with(
        &self,
        session: SessionId,
        agent: &Agent,
        mission: impl Into<Mission>,
        options: SessionOptions,
    ) -> Result<Run> {
        self.run(agent, Target::Known(session, options), Begin::Mission(mission.into())).await
    }

    /// Resumes a session that was interrupted or paused, or that has messages waiting.
    pub async fn resume(&self, session: SessionId, agent: &Agent) -> Result<Run> {
        self.resume_with(session, agent, ResumeOptions::default(), SessionOptions::default()).await
    }

    /// Resumes a session with options: more budget or time, another fidelity, what to do about changed files,
    /// and whether to take over the session from the process that holds it.
    pub async fn resume_with(
        &self,
        session: SessionId,
        agent: &Agent,
        resume: ResumeOptions,
        options: SessionOptions,
    ) -> Result<Run> {
        self.run(agent, Target::Known(session, options), Begin::Resume(resume)).await
    }

    /// Returns the events of a session from its first record on. Live events are included while a run of this
    /// runtime drives it. If another process does, the records are read from the store.
    ///
    /// If a run drives it now, the events end with that run. Otherwise they include those of later runs, and
    /// [`until_idle`](EventStream::until_idle) ends them at the last record.
    pub fn events(&self, session: SessionId) -> EventStream {
        match self.registry.follow(session) {
            Ok(live) => live.events().from(Position::START),
            Err(feed) => EventStream::of_feed(self.store().clone(), session, feed),
        }
    }

    /// Pauses all runs, waits until their sessions are released, and prevents further ones. Sessions can be
    /// resumed later.
    pub async fn shutdown(&self) {
        self.stop(StopReason::Shutdown);
        let registry = &self.registry;
        registry.tasks.close();
        registry.tasks.wait().await;
    }

    /// Pauses all runs and prevents further ones, without waiting for them. The reason is recorded in each
    /// session.
    pub fn stop(&self, reason: StopReason) {
        self.registry.stop(reason);
    }

    /// Fills in the files and resources of the agent where the options have none. If the session is taken over and
    /// itself holds its directory, waits until its former driver has released it. Also returns the move of the files to a new checkout.
    async fn options(
        &self,
        agent: &Agent,
        session: SessionId,
        mut options: SessionOptions,
    ) -> Result<(SessionOptions, Option<MovedFiles>)> {
        let mut moved = None;
        if options.workspace.is_none() {
            let checkout = match &options.claim {
                Some(claim) => self.checkout_of(agent, claim).await?,
                None => None,
            };
            let opened = match checkout {
                Some(opened) => Ok(Some(opened)),
                None => match self.workspace_of(agent, session).await {
                    Err(error) if options.take_over && holder(&error, session).is_some() => {
                        self.await_release(agent, session).await
                    }
                    opened => opened,
                },
            };
            if let Some(opened) = opened? {
                options.workspace = Some(opened.workspace);
                options.isolation = opened.isolation;
                moved = opened.moved;
            }
        }
        if let Some(resources) = &agent.resources {
            options.resources = resources();
        }
        Ok((options, moved))
    }

    /// Opens the workspace of an agent for a session, if it has one.
    pub(super) async fn workspace_of(
        &self,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Option<OpenedWorkspace>> {
        match agent.workspace_spec() {
            Some(spec) => self.open_workspace(&spec, session).await.map(Some),
            None => Ok(None),
        }
    }

    /// Drives a session in a task of the runtime. Returns once its mission is durable.
    pub(super) fn run<'a>(
        &'a self,
        agent: &'a Agent,
        target: Target,
        begin: Begin,
    ) -> BoxFuture<'a, Result<Run>> {
        Box::pin(async move {
            let registry = self.registry.clone();
            if registry.stop.is_cancelled() {
                return Err(RuntimeError::ShuttingDown);
            }
            let agent = agent.resolved(&self.adapters)?;
            let stop = registry.stop.child_token();
            let (publish, outcome) = watch::channel(None);
            let (begun, has_begun) = oneshot::channel();
            let engine = self.engine_of(&agent)?;
            let stops = registry.clone();
            let stopped_by: StopCause = Arc::new(move || stops.why.get().copied());
            let parts = DriverParts {
                stop: stop.clone(),
                engine,
                stopped_by: Some(stopped_by),
                ..DriverParts::default()
            };
            let evaluator = Evaluator::with_parts(agent.clone(), parts);
            let runtime = self.clone();
            let handle = async_runtime()?;
            let driving = async move {
                let mut begun = Some(begun);
                let alone = match &target {
                    Target::Known(session, _) => Some(registry.operation(*session).await),
                    Target::New(_) => None,
                };
                let opening = AssertUnwindSafe(runtime.target(&agent, &evaluator, target));
                let opened = opening.catch_unwind().await;
                drop(alone);
                let (session, from, copy) = match opened.unwrap_or(Err(RuntimeError::DriverPanicked)) {
                    Ok(opened) => opened,
                    Err(error) => {
                        if let Some(begun) = begun.take() {
                            let _ = begun.send(Err(error));
                        }
                        return;
                    }
                };
                registry.add(&session);
                let id = session.id();
                let announce = {
                    let (begun, events) = (&mut begun, session.events().from(from));
                    move || {
                        if let Some(begun) = begun.take() {
                            let _ = begun.send(Ok((id, events)));
                        }
                    }
                };
                let driving = evaluator.run(agent.bound.as_deref(), &session, begin, announce);
                let ended = AssertUnwindSafe(driving).catch_unwind().await;
                let ended = ended.unwrap_or(Err(RuntimeError::DriverPanicked));
                let is_paused = matches!(&ended, Ok(DriveOutcome::Paused { reason: PauseReason::Asked, .. }));
                if let (true, Some(reason)) = (is_paused, registry.why.get().copied()) {
                    // If it cannot be recorded, releasing the session fails with the reason.
                    let _ = session.record_stop(reason).await;
                }
                let ended = match (ended, session.release().await) {
                    (Ok(_), Err(error)) => Err(error),
                    (ended, _) => ended,
                };
                registry.remove(&session);
                drop(session);
                match begun.take() {
                    // The caller has no run yet, and receives the error itself.
                    Some(begun) => {
                        if let Err(error) = ended {
                            runtime.remove_copy(id, copy).await;
                            let _ = begun.send(Err(error));
                        }
                    }
                    None => {
                        let ended = ended.map_err(|error| RuntimeError::Shared(Arc::new(error)));
                        publish.send_replace(Some(Arc::new(ended)));
                    }
                }
            };
            self.registry.tasks.spawn_on(driving, &handle);
            let (session, events) = has_begun.await.unwrap_or(Err(RuntimeError::ShuttingDown))?;
            Ok(Run { runtime: self.clone(), session, events, outcome, stop })
        })
    }

    /// Opens the session of a run. Also returns the position at which its events start, and the copy that was made for a
    /// new session.
    async fn target(
        &self,
        agent: &Agent,
        evaluator: &Evaluator,
        target: Target,
    ) -> Result<(Arc<LiveSession>, Position, Option<PathBuf>)> {
        match target {
            Target::New(mut options) => {
                let id = options.id.map_or_else(|| self.new_id(), Ok)?;
                options.id = Some(id);
                // A new session has no former driver. That of an existing one with this id is left alone.
                options.take_over = false;
                let (options, _) = self.options(agent, id, options).await?;
                let copy = new_copy(&options);
                match evaluator.create_session(self, options).await {
                    Ok(session) => Ok((session, Position::START, copy)),
                    Err(error) => {
                        self.remove_copy(id, copy).await;
                        Err(error)
                    }
                }
            }
            Target::Known(session, options) => {
                // The directory is opened before the session is claimed. If it is in use because a process holds the
                // session, that is the reason of the failure.
                let (takes_over, is_lent) = (options.take_over, options.claim.is_some());
                let (mut options, moved) = match self.options(agent, session, options).await {
                    Err(error) if !takes_over => return Err(self.explain_held(session, error).await),
                    options => options?,
                };
                let isolation = options.isolation.take();
                let session = evaluator.open_session(self, session, options).await?;
                if let Some(isolation) = isolation {
                    let recorded = match boxed(|| session.reconcile_files()).await {
                        Ok(()) => boxed(|| session.record_isolation(isolation)).await,
                        Err(error) => Err(error),
                    };
                    session.clone().or_release(recorded).await?;
                }
                if let Some(moved) = moved {
                    let recorded = boxed(|| session.record_move(moved)).await;
                    session.clone().or_release(recorded).await?;
                }
                if !is_lent {
                    let released = boxed(|| self.give_to_workers(session.id())).await;
                    session.clone().or_release(released).await?;
                }
                let head = session.view().await.head();
                Ok((session, head, None))
            }
        }
    }
}
