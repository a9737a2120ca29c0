//! The driver: does what an evaluation's machine wants, and records all of it.
//!
//! A [`Driver`] is a live session and the agent that drives it. It asks the policy, runs calls through the tool runner, takes
//! in what is said from outside, and stops at an answer, a failure or a pause. Whatever the place at which its process dies,
//! another driver that opens the session goes on from there: see [`recover`](self::recover).

mod adopted;
mod ask;
mod attend;
mod calls;
mod compensate;
mod conversation;
mod cut_off;
mod drive;
mod fidelity;
mod finish;
mod follow_up;
mod hydrate;
mod logs;
mod outcome;
mod output;
mod past;
mod program;
mod question;
mod recover;
mod retry;
mod save;
mod stop;
mod supersede;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::id::EvaluationId;
use backstitch_core::message::{MediaPart, Part};
use backstitch_core::object::Object;
use tokio_util::sync::CancellationToken;

pub(crate) use hydrate::read_json;
pub use outcome::{Answered, Ended};
pub(crate) use question::question_before;
pub use retry::Backoff;
pub(crate) use save::Saver;

use crate::agent::Agent;
use crate::events::EventStream;
use crate::live::LiveSession;
use crate::runner::ToolRunner;

/// What a session is asked to do: words, and perhaps media.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mission {
    parts: Vec<Part>,
    objects: Vec<Object>,
}

impl Mission {
    /// A mission of these parts. Media among them lies outside, or in the store already.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, objects: Vec::new() }
    }

    /// Adds media whose bytes are at hand: they are stored with the mission. See [`MediaPart::held`].
    #[must_use]
    pub fn with_media(mut self, (media, object): (MediaPart, Object)) -> Self {
        self.parts.push(Part::Media(media));
        self.objects.push(object);
        self
    }

    /// What is asked.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl From<&str> for Mission {
    fn from(text: &str) -> Self {
        Self::new(vec![Part::text(text)])
    }
}

impl From<String> for Mission {
    fn from(text: String) -> Self {
        Self::new(vec![Part::text(text)])
    }
}

/// How far an agent may differ from the one that an evaluation was started with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Not at all: system message, tools and output are the same. Refused where nothing is recorded to compare them with.
    Strict,
    /// The prompt has the same name, and every call without a result can still be made as it was. The recorded system message
    /// is sent.
    #[default]
    Compatible,
    /// As far as it likes.
    Forced,
}

/// What to do about files that changed while nobody drove the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// They are what a person made of them: the session continues with them, and nothing is restored. A call that was interrupted
    /// while it may have been writing does not run again then, but ends with an error that says that its files were kept.
    Adopt,
    /// They are put back to what they were. As found they are kept.
    Restore,
    /// The session waits until somebody says which.
    Ask,
}

/// How an evaluation is resumed.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// Which one; without it, the latest.
    pub evaluation: Option<EvaluationId>,
    /// How far the agent may differ.
    pub fidelity: Fidelity,
    /// What it may spend from now on.
    pub budget: Option<Limits>,
    /// How much active time it has from now on.
    pub deadline: Option<Duration>,
    /// Takes an answer that reached its token limit as it is, in place of continuing it.
    pub accept: bool,
    /// What to do about files that changed meanwhile; without it they are adopted, unless the machine was restarted since: then
    /// nobody knows whether a person changed them or a power loss did, and the session asks.
    pub drift: Option<Drift>,
}

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
            .called_by(agent.clone());
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
}
