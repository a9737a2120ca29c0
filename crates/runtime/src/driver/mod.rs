//! The driver: does what an evaluation's machine wants, and records all of it.
//!
//! A [`Driver`] is a live session and the agent that drives it. It asks the policy, runs calls through the tool runner, takes
//! in what is said from outside, and stops at an answer, a failure or a pause. Whatever the place at which its process dies,
//! another driver that opens the session goes on from there: see [`recover`](self::recover).

mod adopted;
mod ask;
mod attend;
mod calls;
mod child;
mod compensate;
mod conversation;
mod cut_off;
mod drive;
mod fidelity;
mod finish;
mod follow_up;
mod hydrate;
mod logs;
mod output;
mod past;
mod program;
mod question;
mod recover;
mod retry;
mod stop;
mod supersede;

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

pub(crate) use question::question_before;

use crate::agent::{Agent, ResumeOptions};
use crate::error::RuntimeError;
use crate::events::EventStream;
use crate::live::{LiveSession, Saver};
use crate::runner::ToolRunner;

/// A live session and the agent that drives it.
pub struct Driver {
    live: Arc<LiveSession>,
    agent: Agent,
    runner: ToolRunner,
    /// Stops running calls and requests; the session pauses.
    stop: CancellationToken,
    /// Ends the evaluation that runs.
    cancel: CancellationToken,
    /// How the evaluation was resumed, for those that work for its calls.
    resumed_with: Mutex<ResumeOptions>,
    hydrated: hydrate::Hydrated,
    /// Who saves checkpoints, where they are wanted.
    saver: Option<Arc<Saver>>,
}

impl Driver {
    /// Drives a session with this agent.
    pub fn new(live: Arc<LiveSession>, agent: Agent) -> Self {
        let stop = CancellationToken::new();
        let runner = ToolRunner::new(live.clone(), agent.tools.clone())
            .on_behalf_of(agent.prompt_name(), agent.policy.name().as_str())
            .with_cancellation(stop.clone())
            .with_secrets(agent.all_secrets())
            .called_by(agent.clone(), child::drive_child);
        Self {
            live,
            agent,
            runner,
            stop,
            cancel: CancellationToken::new(),
            resumed_with: Mutex::default(),
            hydrated: hydrate::Hydrated::default(),
            saver: None,
        }
    }

    /// Cancelling this token does the same as [`Driver::stop`].
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        Self { runner: self.runner.with_cancellation(stop.clone()), stop, ..self }
    }

    /// Saves checkpoints with this, if there is something.
    pub(crate) fn saving(mut self, saver: Option<Arc<Saver>>) -> Self {
        self.runner = self.runner.saving(saver.clone());
        self.saver = saver;
        self
    }

    /// The session.
    pub fn session(&self) -> &Arc<LiveSession> {
        &self.live
    }

    /// The events of the session from now on, while it is driven.
    pub fn events(&self) -> EventStream {
        self.live.events()
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// How those that work for calls are resumed: as their caller was.
    fn resumed_with(&self) -> ResumeOptions {
        self.resumed_with.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops what runs at once: running calls are rolled back, and the session pauses. For a person who presses Ctrl-C.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the evaluation that runs: running calls are rolled back. Nothing more can be driven by this driver.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Saves a checkpoint, where they are wanted.
    async fn save_checkpoint(&self) -> Result<(), RuntimeError> {
        match &self.saver {
            Some(saver) => saver.save(&self.live).await,
            None => Ok(()),
        }
    }
}
