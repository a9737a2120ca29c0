//! The driver: does what an evaluation's machine wants, and records all of it.
//!
//! A [`Driver`] is a live session and the agent that drives it. It asks the policy, runs calls through the tool runner, takes
//! in what is said from outside, and stops at an answer, a failure or a pause. Whatever the place at which its process dies,
//! another driver that opens the session goes on from there: see [`recover`](self::recover).

mod adopted;
mod ask;
mod calls;
mod child;
mod compensate;
mod content;
mod conversation;
mod cut_off;
mod drive;
mod fidelity;
mod finish;
mod follow_up;
mod hydrate;
mod inbox;
mod logs;
mod open_calls;
mod output;
mod past;
mod pause;
mod program;
mod question;
mod recover;
mod retry;
mod start;
mod stop;
mod supersede;

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

pub(crate) use question::question_before;

use ask::Asker;
use calls::Calls;
use content::Content;
use inbox::Inbox;
use pause::Pauses;

use crate::agent::Agent;
use crate::error::RuntimeError;
use crate::events::EventStream;
use crate::live::{LiveSession, Saver};
use crate::runner::ToolRunner;

/// A live session and the agent that drives it.
pub struct Driver {
    live: Arc<LiveSession>,
    agent: Arc<Agent>,
    inbox: Arc<Inbox>,
    content: Arc<Content>,
    pauses: Pauses,
    asker: Asker,
    calls: Calls,
    /// Who saves checkpoints, where they are wanted.
    saver: Option<Arc<Saver>>,
}

impl Driver {
    /// Drives a session with this agent.
    pub fn new(live: Arc<LiveSession>, agent: Agent) -> Self {
        let inbox = Inbox::new(live.clone(), CancellationToken::new(), CancellationToken::new());
        Self::of_parts(live, Arc::new(agent), inbox, None)
    }

    fn of_parts(live: Arc<LiveSession>, agent: Arc<Agent>, inbox: Inbox, saver: Option<Arc<Saver>>) -> Self {
        let runner = ToolRunner::new(live.clone(), agent.tools.clone())
            .on_behalf_of(agent.prompt_name(), agent.policy.name().as_str())
            .with_cancellation(inbox.stop.clone())
            .with_secrets(agent.all_secrets())
            .called_by(agent.clone(), child::drive_child)
            .saving(saver.clone());
        let (inbox, content) = (Arc::new(inbox), Arc::new(Content::new(live.clone())));
        let pauses = Pauses::new(live.clone(), content.clone());
        let asker = Asker {
            live: live.clone(),
            agent: agent.clone(),
            inbox: inbox.clone(),
            content: content.clone(),
            pauses: pauses.clone(),
        };
        let calls = Calls {
            live: live.clone(),
            agent: agent.clone(),
            runner,
            inbox: inbox.clone(),
            content: content.clone(),
            pauses: pauses.clone(),
            resumed_with: Mutex::default(),
        };
        Self { live, agent, inbox, content, pauses, asker, calls, saver }
    }

    /// Cancelling this token does the same as [`Driver::stop`].
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        let inbox = Inbox::new(self.live.clone(), stop, self.inbox.cancel.clone());
        Self::of_parts(self.live, self.agent, inbox, self.saver)
    }

    /// Saves checkpoints with this, if there is something.
    pub(crate) fn saving(self, saver: Option<Arc<Saver>>) -> Self {
        let inbox = Inbox::new(self.live.clone(), self.inbox.stop.clone(), self.inbox.cancel.clone());
        Self::of_parts(self.live, self.agent, inbox, saver)
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

    /// Stops what runs at once: running calls are rolled back, and the session pauses. For a person who presses Ctrl-C.
    pub fn stop(&self) {
        self.inbox.stop.cancel();
    }

    /// Ends the evaluation that runs: running calls are rolled back. Nothing more can be driven by this driver.
    pub fn cancel(&self) {
        self.inbox.cancel.cancel();
    }

    /// Saves a checkpoint, where they are wanted.
    async fn save_checkpoint(&self) -> Result<(), RuntimeError> {
        match &self.saver {
            Some(saver) => saver.save(&self.live).await,
            None => Ok(()),
        }
    }
}
