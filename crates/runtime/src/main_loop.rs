//! For people with their own storage: a loop that answers requests, and keeps a snapshot of each while it is on its way.
//!
//! A [`MainLoop`] makes a session and an agent for each request. With a [`CheckpointHandler`] it looks first whether an earlier
//! attempt left a snapshot, resumes from it if so, saves one before each action and after each call, and clears it when there is
//! an answer. Snapshots are saved with their content inlined, so that they resume in any store. One that cannot be saved stops
//! the loop before its next action. Whoever keeps sessions in a durable store needs none of this.
//!
//! Where a pending call may have had an effect outside, `execute` fails with `ToolIdempotencyError` each time, until the tool's
//! `reconcile` hook knows better, or somebody decides: adopt the snapshot, resolve the call in that session, and save what
//! [`LiveSession::export_snapshot`](crate::LiveSession::export_snapshot) returns.

use std::sync::Arc;

use backstitch_core::prompt::BoundPrompt;

use crate::agent::{Agent, Mission, ResumeOptions};
use crate::checkpoint::{CheckpointError, CheckpointHandler};
use crate::error::RuntimeError;
use crate::evaluate::{Begin, Evaluator};
use crate::live::Saver;
use crate::outcome::FinalAnswer;
use crate::runtime::{Runtime, SessionOptions};

/// A loop that answers requests.
pub trait MainLoop: Send + Sync {
    /// What is asked.
    type Request: Send + Sync;

    /// Where sessions live while they are driven.
    fn runtime(&self) -> &Runtime;

    /// What a session for a request lives with.
    fn create_session(&self, request: &Self::Request) -> SessionOptions;

    /// Who answers a request, and what it is asked.
    fn create_prompt(&self, request: &Self::Request) -> Task;

    /// Where snapshots are kept, if they are.
    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<Self::Request>>> {
        None
    }

    /// Answers a request: from a snapshot of an earlier attempt if there is one, from the beginning otherwise.
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
            let evaluator = Evaluator::of(*agent).saving(saver);
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

/// What a request makes of whoever answers it.
#[derive(Debug, Clone)]
pub enum Task {
    /// An agent as it is, asked this.
    Mission(Box<Agent>, Mission),
    /// An agent, driven by a prompt: its name and system message give way to the prompt's.
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

/// A request could not be answered.
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
