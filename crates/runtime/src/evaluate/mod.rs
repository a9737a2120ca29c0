//! Evaluation of prompts: `evaluate(prompt, session, resume)`.
//!
//! An [`Evaluator`] renders a prompt for the current state of a session, and drives an evaluation with the
//! rendered text and tools. When sections have to be opened, it starts another evaluation in its place. A
//! resumed evaluation keeps its prompt: it is rendered again for the state that the session had when the
//! evaluation started, which the journal has.

mod again;

use std::sync::Arc;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{Point, Position};
use backstitch_core::ports::{Policy, Store};
use backstitch_core::prompt::{BoundPrompt, RenderedPrompt, register_slices};
use backstitch_core::session::Snapshot;
use backstitch_core::time::Clock;
use backstitch_core::view::ConversationState;

pub use again::RequestReplay;

use crate::adopt::Export;
use crate::agent::{Agent, Mission, ResumeOptions, prompt_path};
use crate::driver::{CompactReport, Driver, DriverParts};
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::live::{LiveSession, load_view};
use crate::outcome::DriveOutcome;
use crate::runtime::{Runtime, SessionOptions};

/// Whether to resume an evaluation. `true` and `false` convert into it.
#[derive(Debug, Clone, Default)]
pub enum Resume {
    /// Starts a new evaluation.
    #[default]
    No,
    /// Resumes the named evaluation, or the latest one.
    With(ResumeOptions),
}

impl From<bool> for Resume {
    fn from(resume: bool) -> Self {
        if resume { Self::With(ResumeOptions::default()) } else { Self::No }
    }
}

impl From<ResumeOptions> for Resume {
    fn from(options: ResumeOptions) -> Self {
        Self::With(options)
    }
}

/// The first step of driving.
pub(crate) enum Begin {
    /// Start a new evaluation.
    Mission(Mission),
    /// Resume an interrupted or paused one, or answer the inbox.
    Resume(ResumeOptions),
}

/// Evaluates prompts. Cloning is cheap, and [`Evaluator::stop`] affects all clones.
#[derive(Clone)]
pub struct Evaluator {
    agent: Agent,
    parts: DriverParts,
}

impl Evaluator {
    /// Creates an evaluator with this policy, without limits.
    pub fn new(policy: impl Policy + 'static) -> Self {
        Self::of(Agent::new("").policy(policy))
    }

    /// Creates an evaluator with the policy, the limits and the set-up of an agent. Its tools are offered in
    /// addition to those of each prompt. The prompt's name and text replace its name and system message.
    pub fn of(agent: Agent) -> Self {
        Self::with_parts(agent, DriverParts::default())
    }

    /// Like [`of`](Self::of), with drivers of these parts. Cancelling their token is equivalent to [`Evaluator::stop`].
    pub(crate) fn with_parts(agent: Agent, parts: DriverParts) -> Self {
        Self { agent: agent.and_set_up(register_slices), parts }
    }

    /// Stops at once: running calls are rolled back, and the session pauses. For a person who presses Ctrl-C.
    pub fn stop(&self) {
        self.parts.stop.cancel();
    }

    /// Creates a session to evaluate prompts in.
    pub async fn create_session(
        &self,
        runtime: &Runtime,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        runtime.create_live(&self.agent, options).await
    }

    /// Opens an existing session.
    pub async fn open_session(
        &self,
        runtime: &Runtime,
        session: SessionId,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        runtime.open_live(session, &self.agent, options).await
    }

    /// Creates a session that continues from a snapshot of any origin.
    pub async fn adopt_session(
        &self,
        runtime: &Runtime,
        snapshot: &Snapshot,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        runtime.adopt(&self.agent, Export::of_snapshot(snapshot)?, options).await
    }

    /// Creates a session that continues from a conversation of any origin.
    pub async fn adopt_conversation(
        &self,
        runtime: &Runtime,
        conversation: &ConversationState,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        runtime.adopt(&self.agent, Export::of_conversation(conversation)?, options).await
    }

    /// Resumes an evaluation from a conversation in a new session. Returns that session with the outcome; if
    /// it waits for a decision, the decision is made there. A conversation of another prompt is an error, and
    /// nothing is stored.
    pub async fn resume_from(
        &self,
        runtime: &Runtime,
        prompt: &BoundPrompt,
        conversation: &ConversationState,
        options: SessionOptions,
    ) -> Result<(Arc<LiveSession>, DriveOutcome)> {
        let recorded = prompt_path(&conversation.prompt_ns, &conversation.prompt_key);
        let given = prompt_path(prompt.prompt().ns(), prompt.prompt().key());
        if recorded != given {
            let reason = "it is another prompt".to_owned();
            return Err(RuntimeError::PromptMismatch { recorded, given, reason });
        }
        let session = self.adopt_conversation(runtime, conversation, options).await?;
        let ended = self.evaluate(prompt, &session, true).await?;
        Ok((session, ended))
    }

    /// Drives a prompt to its answer, or to a pause: from the beginning, or from where its evaluation was
    /// interrupted.
    pub async fn evaluate(
        &self,
        prompt: &BoundPrompt,
        session: &Arc<LiveSession>,
        resume: impl Into<Resume>,
    ) -> Result<DriveOutcome> {
        let begin = match resume.into() {
            Resume::No => Begin::Mission(Mission::new(prompt.mission().to_vec())),
            Resume::With(options) => Begin::Resume(options),
        };
        self.run(Some(prompt), session, begin, || {}).await
    }

    /// Drives an evaluation and those that follow from it, to an end or a pause. Calls `begun` once the
    /// mission is durable.
    pub(crate) async fn run(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        begin: Begin,
        begun: impl FnOnce() + Send,
    ) -> Result<DriveOutcome> {
        // Resuming a session also answers its inbox. Starting or naming an evaluation returns the answer of
        // that one.
        let answers_waiting = matches!(&begin, Begin::Resume(options) if options.evaluation.is_none());
        let mut ended = match begin {
            Begin::Mission(mission) => {
                if mission.is_blank() {
                    return Err(RuntimeError::EmptyMission);
                }
                let (driver, evaluation) = boxed(|| self.begin_with(prompt, session, mission)).await?;
                begun();
                driver.drive(evaluation).await?
            }
            Begin::Resume(options) => {
                begun();
                self.resume(prompt, session, options).await?
            }
        };
        loop {
            // The driver limits the number of expansions, so this terminates.
            let next = match &ended {
                DriveOutcome::Superseded { evaluation, .. } => {
                    Some(self.driver(prompt, session, None).await?.start_over(*evaluation).await?)
                }
                DriveOutcome::Completed(_) if answers_waiting && !self.parts.stop.is_cancelled() => {
                    self.driver(prompt, session, None).await?.start_waiting().await?
                }
                _ => None,
            };
            match next {
                Some(next) => ended = next,
                None => return Ok(ended),
            }
        }
    }

    /// Starts an evaluation, which is left to another driver.
    pub(crate) async fn begin(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        mission: Mission,
    ) -> Result<EvaluationId> {
        Ok(self.begin_with(prompt, session, mission).await?.1)
    }

    async fn begin_with(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        mission: Mission,
    ) -> Result<(Driver, EvaluationId)> {
        let driver = self.driver(prompt, session, None).await?;
        let evaluation = driver.begin(mission, None).await?;
        Ok((driver, evaluation))
    }

    /// Summarizes the conversation of a session whose latest evaluation has ended.
    pub(crate) async fn compact(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        focus: Option<String>,
    ) -> Result<CompactReport> {
        let latest = session.view().await.latest_evaluation().map(|latest| latest.started);
        let started = latest.filter(|started| started.position != Position::START);
        self.driver(prompt, session, started).await?.compact(focus).await
    }

    async fn resume(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        mut options: ResumeOptions,
    ) -> Result<DriveOutcome> {
        if options.evaluation.is_none() && !session.has_open_evaluation().await {
            let driver = self.driver(prompt, session, None).await?;
            driver.put_message(&mut options).await?;
            if let Some(ended) = driver.start_waiting().await? {
                return Ok(ended);
            }
        }
        let started = {
            let state = session.state().await;
            let latest = || state.view.latest_evaluation().map(|latest| latest.evaluation_id);
            let Some(mut evaluation) = options.evaluation.or_else(latest) else {
                return Err(RuntimeError::ConversationNotFound { session: session.id() });
            };
            // The latest replacement of an evaluation is resumed.
            let successor = |of: EvaluationId| {
                let mut all = state.view.evaluations();
                all.find(|known| {
                    known.started_with().is_some_and(|start| start.parent_evaluation == Some(of))
                })
            };
            while let Some(next) = successor(evaluation) {
                evaluation = next.evaluation_id;
            }
            options.evaluation = Some(evaluation);
            let known = state.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
            // An evaluation that came with a snapshot was rendered in another session, whose state is not
            // known.
            Some(known.started).filter(|started| started.position != Position::START)
        };
        self.driver(prompt, session, started).await?.resume(options).await
    }

    /// Returns a driver with the prompt rendered for the session, in its current state or in that at a point.
    async fn driver(
        &self,
        prompt: Option<&BoundPrompt>,
        session: &Arc<LiveSession>,
        at: Option<Point>,
    ) -> Result<Driver> {
        let mut agent = self.agent.clone();
        if let Some(prompt) = prompt {
            let rendered = self.render_prompt(prompt, session, at).await?;
            agent = agent.rendered_prompt(prompt, rendered)?;
        }
        Ok(Driver::with_parts(session.clone(), agent, self.parts.clone()))
    }

    async fn render_prompt(
        &self,
        prompt: &BoundPrompt,
        session: &Arc<LiveSession>,
        at: Option<Point>,
    ) -> Result<RenderedPrompt> {
        match at {
            Some(at) if prompt.prompt().depends_on_session() => {
                self.render_prompt_at(prompt, &**session.store(), at, session.clock().clone()).await
            }
            _ => Ok(prompt.render(&session.state().await.session)?),
        }
    }

    /// Renders the prompt for the state of a session at a point.
    async fn render_prompt_at(
        &self,
        prompt: &BoundPrompt,
        store: &dyn Store,
        at: Point,
        clock: Arc<dyn Clock>,
    ) -> Result<RenderedPrompt> {
        let view = load_view(store, at.session, Some(at.position)).await?;
        let mut then = view.session(clock);
        self.agent.set_up_session(&mut then);
        Ok(prompt.render(&then)?)
    }
}

debug_fields!(Evaluator { agent });
