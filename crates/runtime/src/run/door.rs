//! Operations on sessions: start, ask, resume, decide, rewind, fork.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Decision, PauseReason, Position, StopReason};
use backstitch_core::ports::{StoreError, Workspace};
use futures_util::FutureExt as _;
use tokio::sync::{oneshot, watch};

use super::Run;
use super::task::async_runtime;
use crate::adapters::{DirectoryError, SessionFiles};
use crate::agent::{Agent, Mission, ResumeOptions};
use crate::error::RuntimeError;
use crate::evaluate::{Begin, Evaluator};
use crate::events::EventStream;
use crate::history::{ApplyOptions, ApplyReport, ForkReport, RewindReport, discarded_effects};
use crate::live::{LiveSession, load_view};
use crate::outcome::DriveOutcome;
use crate::point::PointSpec;
use crate::runtime::{Runtime, SessionOptions};
use crate::workspace::{OpenedWorkspace, WorkspaceSpec};

/// The session that a run drives.
enum Target {
    New(SessionOptions),
    Known(SessionId, SessionOptions),
}

impl Runtime {
    /// Starts a session of this agent. Returns once session and mission are durable. A task of the runtime
    /// drives it.
    pub async fn start(&self, agent: &Agent, mission: impl Into<Mission>) -> Result<Run, RuntimeError> {
        self.start_with(agent, mission, SessionOptions::default()).await
    }

    /// Starts a session with options: its id, seed, tags, or a workspace in place of the agent's.
    pub async fn start_with(
        &self,
        agent: &Agent,
        mission: impl Into<Mission>,
        options: SessionOptions,
    ) -> Result<Run, RuntimeError> {
        let options = SessionOptions { stored_with_mission: true, ..options };
        self.run(agent, Target::New(options), Begin::Mission(mission.into())).await
    }

    /// Starts a follow-up evaluation in a session. The model sees the conversation so far. Fails with
    /// [`RuntimeError::EvaluationOpen`] while an evaluation is open.
    pub async fn ask(
        &self,
        session: SessionId,
        agent: &Agent,
        mission: impl Into<Mission>,
    ) -> Result<Run, RuntimeError> {
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
    ) -> Result<Run, RuntimeError> {
        self.run(agent, Target::Known(session, options), Begin::Mission(mission.into())).await
    }

    /// Resumes a session that was interrupted or paused, or that has messages waiting.
    pub async fn resume(&self, session: SessionId, agent: &Agent) -> Result<Run, RuntimeError> {
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
    ) -> Result<Run, RuntimeError> {
        self.run(agent, Target::Known(session, options), Begin::Resume(resume)).await
    }

    /// Approves a call that waits for approval. It runs on [`Runtime::resume`].
    pub async fn approve(&self, session: SessionId, call: CallId) -> Result<(), RuntimeError> {
        self.decide(session, Some(call), Decision::Approve, None).await.map(|_| ())
    }

    /// Denies a call that waits for approval. The model receives the reason once the session is resumed.
    pub async fn deny(
        &self,
        session: SessionId,
        call: CallId,
        reason: impl Into<String>,
    ) -> Result<(), RuntimeError> {
        let decision = Decision::Deny { reason: Some(reason.into()) };
        self.decide(session, Some(call), decision, None).await.map(|_| ())
    }

    /// Rewinds a session to a point: conversation, state, resources and files. [`Runtime::undo`] undoes it.
    pub async fn rewind(
        &self,
        session: SessionId,
        agent: &Agent,
        to: PointSpec,
        reason: Option<String>,
    ) -> Result<RewindReport, RuntimeError> {
        let opening = self.clone().opened(session, agent.clone());
        let rewind = move |live: Arc<LiveSession>| async move { live.rewind(&to, reason).await };
        self.operate(session, opening, rewind).await
    }

    /// Undoes the last rewind of a session.
    pub async fn undo(&self, session: SessionId, agent: &Agent) -> Result<RewindReport, RuntimeError> {
        let opening = self.clone().opened(session, agent.clone());
        self.operate(session, opening, |live: Arc<LiveSession>| async move { live.undo().await }).await
    }

    /// Forks a session at a point, and returns the new one with the outside effects of its parent after that point.
    /// An agent with a workspace names the directory of the fork, which must not be that of its parent. The files at
    /// the point are restored into it.
    pub async fn fork(
        &self,
        parent: SessionId,
        agent: &Agent,
        at: PointSpec,
    ) -> Result<ForkReport, RuntimeError> {
        let agent = agent.resolved(self.adapters())?;
        let id = self.new_id()?;
        let runtime = self.clone();
        let effects = discarded_effects(&**self.store(), parent, &at).await?;
        let opening = async move {
            let options = SessionOptions { id: Some(id), ..SessionOptions::default() };
            let mut options = runtime.options(&agent, id, options).await?;
            let definition = agent.recorded_definition(options.workspace.as_ref());
            options.definition = (!definition.is_null()).then_some(definition);
            let copy = new_copy(&options);
            let forked = runtime.fork_session(parent, at, options).await;
            if forked.is_err() {
                runtime.remove_copy(id, copy).await;
            }
            forked
        };
        let forked = |live: Arc<LiveSession>| async move { Ok(live.id()) };
        let session = self.operate(id, opening, forked).await?;
        Ok(ForkReport { session, effects })
    }

    /// Merges the changes of an isolated session into its project. With conflicts, nothing is written. An application that was
    /// interrupted is completed first.
    pub async fn apply(
        &self,
        session: SessionId,
        agent: &Agent,
        options: ApplyOptions,
    ) -> Result<ApplyReport, RuntimeError> {
        let (runtime, opening) = (self.clone(), self.clone().opened(session, agent.clone()));
        let excludes = agent.workspace_spec().map(|spec| spec.excludes).unwrap_or_default();
        let apply = move |live: Arc<LiveSession>| async move {
            let project = runtime.opened_project(&live, excludes).await?;
            live.apply(project, options).await
        };
        self.operate(session, opening, apply).await
    }

    /// Undoes the latest application of a session's changes to its project.
    pub async fn undo_apply(
        &self,
        session: SessionId,
        agent: &Agent,
        options: ApplyOptions,
    ) -> Result<ApplyReport, RuntimeError> {
        let (runtime, opening) = (self.clone(), self.clone().opened(session, agent.clone()));
        let excludes = agent.workspace_spec().map(|spec| spec.excludes).unwrap_or_default();
        let undo = move |live: Arc<LiveSession>| async move {
            let project = runtime.opened_project(&live, excludes).await?;
            live.undo_apply(project, options).await
        };
        self.operate(session, opening, undo).await
    }

    /// Opens the project that an isolated session works in a copy of. An application that was interrupted is completed.
    async fn opened_project(
        &self,
        live: &LiveSession,
        excludes: Vec<String>,
    ) -> Result<Arc<dyn Workspace>, RuntimeError> {
        let session = live.id();
        let view = live.state().await.view.clone();
        let isolated = view.isolation().ok_or(RuntimeError::NotIsolated { session })?;
        let mut spec = WorkspaceSpec::new(&isolated.record.project);
        spec.excludes = excludes;
        let files = SessionFiles::Known { directory: Some(spec.path.clone()) };
        let project = self.opened_directory(&spec, session, files).await?.workspace;
        live.complete_apply(project.clone()).await?;
        Ok(project)
    }

    /// Returns the events of a session from its first record on. Live events are included while a run of this
    /// runtime drives it. If another process does, the records are read from the store.
    ///
    /// If a run drives it now, the events end with that run. Otherwise they include those of later runs, and
    /// [`until_idle`](EventStream::until_idle) ends them at the last record.
    pub fn events(&self, session: SessionId) -> EventStream {
        match self.registry().follow(session) {
            Ok(live) => live.events().from(Position::START),
            Err(feed) => EventStream::of_feed(self.store().clone(), session, feed),
        }
    }

    /// Pauses all runs, waits until their sessions are released, and prevents further ones. Sessions can be
    /// resumed later.
    pub async fn shutdown(&self) {
        self.stop(StopReason::Shutdown);
        let registry = self.registry();
        registry.tasks.close();
        registry.tasks.wait().await;
    }

    /// Pauses all runs and prevents further ones, without waiting for them. The reason is recorded in each
    /// session.
    pub fn stop(&self, reason: StopReason) {
        self.registry().stop(reason);
    }

    async fn opened(self, session: SessionId, agent: Agent) -> Result<Arc<LiveSession>, RuntimeError> {
        let options = self.options_to_open(&agent, session, SessionOptions::default()).await?;
        self.open_idle(session, options).await
    }

    /// Returns the options to open an existing session with. Its directory is opened before the session is claimed. If
    /// it is in use because a process holds the session, this fails with that reason.
    async fn options_to_open(
        &self,
        agent: &Agent,
        session: SessionId,
        options: SessionOptions,
    ) -> Result<SessionOptions, RuntimeError> {
        if options.take_over {
            return self.options_to_take_over(agent, session, options).await;
        }
        match self.options(agent, session, options).await {
            Err(error) if error.code() == ErrorCode::WorkspaceHeld => {
                let holder = self.store().holder(session).await.map_err(RuntimeError::Store)?;
                Err(match holder {
                    Some(owner) => RuntimeError::Store(StoreError::Held { session, owner, process: None }),
                    None => error,
                })
            }
            options => options,
        }
    }

    /// Fills in the files and resources of the agent where the options have none.
    pub(super) async fn options(
        &self,
        agent: &Agent,
        session: SessionId,
        mut options: SessionOptions,
    ) -> Result<SessionOptions, RuntimeError> {
        if options.workspace.is_none()
            && let Some(opened) = self.workspace_of(agent, session).await?
        {
            options.workspace = Some(opened.workspace);
            options.isolation = opened.isolation;
        }
        if let Some(resources) = &agent.resources {
            options.resources = resources();
        }
        Ok(options)
    }

    /// Opens the workspace of an agent for a session, if it has one.
    pub(super) async fn workspace_of(
        &self,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Option<OpenedWorkspace>, RuntimeError> {
        match agent.workspace_spec() {
            Some(spec) => self.open_workspace(&spec, session).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens the files of a session as `start`, `ask` and `resume` do, for callers that need them before or after that. The
    /// workspace is for [`SessionOptions::workspace`], and the isolation for [`SessionOptions::isolation`]: a copy that was
    /// made for a new session is removed if the session cannot be started.
    pub async fn open_workspace(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
    ) -> Result<OpenedWorkspace, RuntimeError> {
        if let Some(open) = spec.opened() {
            return Ok(open.clone().into());
        }
        if spec.in_place {
            let files = SessionFiles::Known { directory: Some(spec.path.clone()) };
            return self.opened_directory(spec, session, files).await;
        }
        let mut known = spec.clone();
        let reading = self.read_off_thread(move |store| async move {
            let view = match load_view(&*store, session, None).await {
                Err(RuntimeError::SessionNotFound { .. }) => return Ok((SessionFiles::New, known)),
                view => view?,
            };
            Ok((SessionFiles::of(&view, &mut known), known))
        });
        let (files, spec) = reading.await?;
        self.opened_directory(&spec, session, files).await
    }

    async fn opened_directory(
        &self,
        spec: &WorkspaceSpec,
        session: SessionId,
        files: SessionFiles,
    ) -> Result<OpenedWorkspace, RuntimeError> {
        let opened = self.adapters().workspace(spec, session, files).await;
        opened.map_err(|error| match error.downcast::<DirectoryError>() {
            Ok(error) => RuntimeError::OpenDirectory(*error),
            Err(error) => RuntimeError::Directory { directory: spec.path.clone(), cause: Arc::from(error) },
        })
    }

    /// Removes the copy that was made for a session, unless the session was stored.
    async fn remove_copy(&self, session: SessionId, copy: Option<PathBuf>) {
        let Some(copy) = copy else { return };
        let is_stored = match self.store().head(session).await {
            Ok(head) => head != Position::START,
            Err(error) => !matches!(error, StoreError::NotFound { .. }),
        };
        if !is_stored {
            self.adapters().remove_copy(&copy, session).await;
        }
    }

    /// Drives a session in a task of the runtime. Returns once its mission is durable.
    async fn run(&self, agent: &Agent, target: Target, begin: Begin) -> Result<Run, RuntimeError> {
        let registry = self.registry().clone();
        if registry.stop.is_cancelled() {
            return Err(RuntimeError::ShuttingDown);
        }
        let agent = agent.resolved(self.adapters())?;
        let stop = registry.stop.child_token();
        let (publish, outcome) = watch::channel(None);
        let (begun, has_begun) = oneshot::channel();
        let engine = self.engine_of(&agent)?;
        let evaluator = Evaluator::of(agent.clone()).stopped_by(stop.clone()).driven_by(engine);
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
            let driving = evaluator.run(agent.bound(), &session, begin, announce);
            let ended = AssertUnwindSafe(driving).catch_unwind().await;
            let ended = ended.unwrap_or(Err(RuntimeError::DriverPanicked));
            let is_paused = matches!(&ended, Ok(DriveOutcome::Paused { reason: PauseReason::Asked, .. }));
            if let (true, Some(reason)) = (is_paused, registry.stopped_by()) {
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
        self.registry().tasks.spawn_on(driving, &handle);
        let (session, events) = has_begun.await.unwrap_or(Err(RuntimeError::ShuttingDown))?;
        Ok(Run { runtime: self.clone(), session, events, outcome, stop })
    }

    /// Opens the session of a run. Also returns the position at which its events start, and the copy that was made for a
    /// new session.
    async fn target(
        &self,
        agent: &Agent,
        evaluator: &Evaluator,
        target: Target,
    ) -> Result<(Arc<LiveSession>, Position, Option<PathBuf>), RuntimeError> {
        match target {
            Target::New(mut options) => {
                let id = match options.id {
                    Some(id) => id,
                    None => self.new_id()?,
                };
                options.id = Some(id);
                let options = self.options(agent, id, options).await?;
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
                let options = self.options_to_open(agent, session, options).await?;
                let session = evaluator.open_session(self, session, options).await?;
                let head = session.state().await.view.head();
                Ok((session, head, None))
            }
        }
    }
}

/// Returns the copy of a project that was made for a new session.
fn new_copy(options: &SessionOptions) -> Option<PathBuf> {
    options.isolation.as_ref()?;
    options.workspace.as_ref()?.host_directory()
}
