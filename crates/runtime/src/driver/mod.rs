//! The driver: executes the actions of an evaluation's machine, and records all of them.
//!
//! A [`Driver`] is a live session and the agent that drives it. It sends requests to the policy, runs calls
//! through the tool runner, processes the inbox, and stops at an answer, a failure or a pause. If its process
//! dies at any point, another driver that opens the session continues from there: see
//! [`recover`](self::recover).

mod adopted;
mod ask;
mod calls;
mod child;
mod compensate;
mod content;
mod conversation;
mod cut_off;
mod drive;
mod engine;
mod fidelity;
mod finish;
mod fit;
mod follow_up;
mod hydrate;
mod inbox;
mod logs;
mod open_calls;
mod output;
mod outside;
mod past;
mod pause;
mod program;
mod question;
mod recover;
mod retry;
mod rules;
mod start;
mod stop;
mod supersede;

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

pub(crate) use engine::{ForeignLoop, StopWish};
pub use outside::ApproverDecision;
pub(crate) use outside::{AskedDecision, CallEnds, NewCall, STOPPED};
pub(crate) use question::question_before;
pub(crate) use recover::WAITED;

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
    saver: Option<Arc<Saver>>,
    /// Works on evaluations in place of a machine.
    engine: Option<Arc<dyn ForeignLoop>>,
}

impl Driver {
    /// Creates a driver of a session with this agent.
    pub fn new(live: Arc<LiveSession>, agent: Agent) -> Self {
        let inbox = Inbox::new(live.clone(), CancellationToken::new(), CancellationToken::new());
        Self::of_parts(live, Arc::new(agent), inbox, None)
    }

    fn of_parts(live: Arc<LiveSession>, agent: Arc<Agent>, inbox: Inbox, saver: Option<Arc<Saver>>) -> Self {
        let runner = ToolRunner::new(live.clone(), agent.tools.clone())
            .on_behalf_of(agent.prompt_name(), agent.policy.name().as_str())
            .with_cancellation(inbox.stop.clone())
            .with_secrets(agent.all_secrets())
            .with_approval_rules(agent.approval_rules.clone())
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
        Self { live, agent, inbox, content, pauses, asker, calls, saver, engine: None }
    }

    /// Makes the cancellation of this token equivalent to [`Driver::stop`].
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        // A driver that stops itself must not stop others that have the same token.
        let inbox = Inbox::new(self.live.clone(), stop.child_token(), self.inbox.cancel.clone());
        Self::of_parts(self.live, self.agent, inbox, self.saver)
    }

    /// Saves checkpoints with `saver`, if there is one.
    pub(crate) fn saving(self, saver: Option<Arc<Saver>>) -> Self {
        let inbox = Inbox::new(self.live.clone(), self.inbox.stop.clone(), self.inbox.cancel.clone());
        Self::of_parts(self.live, self.agent, inbox, saver)
    }

    /// Returns the driven session.
    pub fn session(&self) -> &Arc<LiveSession> {
        &self.live
    }

    /// Returns the events of the session from now on, while it is driven.
    pub fn events(&self) -> EventStream {
        self.live.events()
    }

    /// Returns the agent that drives the session.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Stops at once: running calls are rolled back, and the session pauses. For a person who presses Ctrl-C.
    pub fn stop(&self) {
        self.inbox.stop.cancel();
    }

    /// Ends the running evaluation, and rolls back its running calls. This driver cannot be used afterwards.
    pub fn cancel(&self) {
        self.inbox.cancel.cancel();
    }

    /// Saves a checkpoint, if there is a saver.
    async fn save_checkpoint(&self) -> Result<(), RuntimeError> {
        match &self.saver {
            Some(saver) => saver.save(&self.live).await,
            None => Ok(()),
        }
    }
}
