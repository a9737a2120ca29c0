//! A loop for callers with their own storage: it answers requests, and saves a snapshot of each while it is
//! in progress.
//!
//! A [`MainLoop`] creates a session and an agent for each request. With a [`CheckpointHandler`] it first
//! looks for a snapshot of an earlier attempt and resumes from it, saves one before each action and after
//! each call, and clears it when there is an answer. Snapshots are saved with their content inlined, so that
//! they can be resumed in any store. If one cannot be saved, the loop stops before its next action. Sessions
//! in a durable store need none of this.
//!
//! If a pending call may have had an effect outside, `execute` fails with `ToolIdempotencyError` each time,
//! until the tool's `reconcile` hook reports the outcome, or a person decides: adopt the snapshot, resolve
//! the call in that session, and save the result of
//! [`LiveSession::export_snapshot`](crate::LiveSession::export_snapshot).

use std::sync::Arc;

use backstitch_core::prompt::BoundPrompt;

use crate::agent::{Agent, Mission, ResumeOptions};
use crate::checkpoint::{CheckpointError, CheckpointHandler};
use crate::driver::DriverParts;
use crate::error::RuntimeError;
use crate::evaluate::{Begin, Evaluator};
use crate::live::Saver;
use crate::outcome::FinalAnswer;
use crate::runtime::{Runtime, SessionOptions};

/// A loop that answers requests.
pub trait MainLoop: Send + Sync {
    /// The type of requests.
    type Request: Send + Sync;

    /// Returns the runtime that drives the sessions.
    fn runtime(&self) -> &Runtime;

    /// Returns the options of the session for a request.
    fn create_session(&self, request: &Self::Request) -> SessionOptions;

    /// Returns the agent for a request, and its mission or prompt.
    fn create_prompt(&self, request: &Self::Request) -> Task;

    /// Returns the storage of snapshots, if there is one.
    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<Self::Request>>> {
        None
    }

    /// Answers a request: from a snapshot of an earlier attempt if there is one, otherwise from the
    /// beginning.
    fn execute(
        &self,
        request: Arc<Self::Request>,
    ) -> impl Future<Output = Result<FinalAnswer, MainLoopError>> + Send
    where
        Self::Request: 'static,
    {
        async move {
            let handler = self.checkpoints();
            let options = self.create_session(&request);
            let saved = match &handler {
                Some(handler) => handler.load(&request).map_err(MainLoopError::Checkpoint)?,
                None => None,
            };
            let saver = handler.clone().map(|handler| {
                let request = request.clone();
                Saver::new(move |snapshot| handler.save(&request, snapshot))
            });
            let runtime = self.runtime();
            let (agent, prompt, mission) = match self.create_prompt(&request) {
                Task::Mission(agent, mission) => (agent, None, mission),
                Task::Prompt(agent, prompt) => {
                    let mission = Mission::new(prompt.mission().to_vec());
                    (agent, Some(prompt), mission)
                }
            };
            let evaluator = Evaluator::with_parts(*agent, DriverParts { saver, ..DriverParts::default() });
            let (session, begin) = match &saved {
                Some(snapshot) => {
                    let session = evaluator.adopt_session(runtime, snapshot, options).await?;
                    (session, Begin::Resume(ResumeOptions::default()))
                }
                None => (evaluator.create_session(runtime, options).await?, Begin::Mission(mission)),
            };
            let ended = evaluator.run(prompt.as_ref(), &session, begin, || {}).await;
            session.release().await?;
            let ended = ended?;
            let answered = ended.answer()?;
            if let Some(handler) = &handler {
                handler.clear(&request).map_err(MainLoopError::Checkpoint)?;
            }
            Ok(answered)
        }
    }
}

/// The agent for a request, and its mission or prompt.
#[derive(Debug, Clone)]
pub enum Task {
    /// An agent with a mission.
    Mission(Box<Agent>, Mission),
    /// An agent with a prompt, which replaces its name and system message.
    Prompt(Box<Agent>, BoundPrompt),
}

impl From<(Agent, Mission)> for Task {
    fn from((agent, mission): (Agent, Mission)) -> Self {
        Self::Mission(Box::new(agent), mission)
    }
}

impl From<(Agent, BoundPrompt)> for Task {
    fn from((agent, prompt): (Agent, BoundPrompt)) -> Self {
        Self::Prompt(Box::new(agent), prompt)
    }
}

/// An error while a request is answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MainLoopError {
    /// The session could not be driven to an answer.
    #[error(transparent)]
    Runtime(RuntimeError),
    /// A snapshot could not be loaded, saved or cleared.
    #[error(transparent)]
    Checkpoint(CheckpointError),
}

impl From<RuntimeError> for MainLoopError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Checkpoint(error) => Self::Checkpoint(*error),
            other => Self::Runtime(other),
        }
    }
}
