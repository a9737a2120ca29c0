//! The driver: executes the actions of an evaluation's machine, and records all of them.
//!
//! A [`Driver`] is a live session and the agent that drives it. It sends requests to the policy, runs calls
//! through the tool runner, processes the inbox, and stops at an answer, a failure or a pause. If its process
//! dies at any point, another driver that opens the session continues from there: see
//! [`recover`](self::recover).

mod arriving;
mod ask;
mod calls;
mod compact;
mod compensate;
mod content;
mod conversation;
mod cut_off;
mod drive;
mod engine;
mod fidelity;
mod finish;
mod fit;
mod hydrate;
mod inbox;
mod kept;
mod open_calls;
mod output;
mod outside;
mod pause;
mod question;
mod recover;
mod retry;
mod room;
mod start;
mod summarize;
mod supersede;

use std::sync::{Arc, Mutex};

use backstitch_core::journal::StopReason;
use tokio_util::sync::CancellationToken;

pub use compact::CompactReport;
pub(crate) use engine::{ForeignLoop, StopRequest};
pub use kept::{KeptAttempt, is_saved_piece, load_kept_attempts};
pub use outside::{ApprovalQuestion, ApproverDecision};
pub(crate) use outside::{AskedDecision, CallEnds, NewCall, STOPPED};
pub(crate) use question::question_before;
pub(crate) use recover::WAITED;

use arriving::ArrivingAnswer;
use ask::Asker;
use calls::Calls;
use content::Content;
use inbox::Inbox;
use pause::Pauses;

use crate::agent::Agent;
use crate::error::Result;
use crate::events::EventStream;
use crate::live::{LiveSession, Saver};
use crate::runner::ToolRunner;

/// What a driver has besides its session and its agent.
#[derive(Clone, Default)]
pub(crate) struct DriverParts {
    /// Cancelling it stops the driver. A driver that stops itself does not stop others that have the same
    /// token.
    pub(crate) stop: CancellationToken,
    /// Saves checkpoints.
    pub(crate) saver: Option<Arc<Saver>>,
    /// Works on evaluations in place of a machine.
    pub(crate) engine: Option<Arc<dyn ForeignLoop>>,
    /// Returns the reason for which every run was stopped. Without it, a person stops the driver.
    pub(crate) stopped_by: Option<StopCause>,
}

/// Returns the reason for which every run of a runtime was stopped, if it was.
pub(crate) type StopCause = Arc<dyn Fn() -> Option<StopReason> + Send + Sync>;

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
    engine: Option<Arc<dyn ForeignLoop>>,
}

impl Driver {
    /// Creates a driver of a session with this agent.
    pub fn new(live: Arc<LiveSession>, agent: Agent) -> Self {
        Self::with_parts(live, agent, DriverParts::default())
    }

    /// Creates a driver of a session with this agent and these parts.
    pub(crate) fn with_parts(live: Arc<LiveSession>, agent: Agent, parts: DriverParts) -> Self {
        Self::assemble(live, Arc::new(agent), parts, CancellationToken::new())
    }

    /// Returns a driver of the same session, for the calls of its engine. It stops with this one.
    pub(crate) fn beside(&self) -> Self {
        let stopped_by = self.asker.stopped_by.clone();
        let parts = DriverParts { stop: self.inbox.stop.clone(), stopped_by, ..DriverParts::default() };
        Self::assemble(self.live.clone(), self.agent.clone(), parts, self.inbox.cancel.child_token())
    }

    fn assemble(
        live: Arc<LiveSession>,
        agent: Arc<Agent>,
        DriverParts { stop, saver, engine, stopped_by }: DriverParts,
        cancel: CancellationToken,
    ) -> Self {
        let inbox = Inbox::new(live.clone(), stop.child_token(), cancel);
        let runner = ToolRunner::new(live.clone(), agent.tools.clone())
            .with_cancellation(inbox.stop.clone())
            .called_by(agent.clone(), supersede::child_drivers(stopped_by.clone()), saver.clone());
        let (inbox, content) = (Arc::new(inbox), Arc::new(Content::new(live.clone())));
        let pauses = Pauses::new(live.clone(), content.clone());
        let asker = Asker {
            live: live.clone(),
            agent: agent.clone(),
            inbox: inbox.clone(),
            content: content.clone(),
            pauses: pauses.clone(),
            arriving: ArrivingAnswer::default(),
            stopped_by,
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
        Self { live, agent, inbox, content, pauses, asker, calls, saver, engine }
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
    async fn save_checkpoint(&self) -> Result<()> {
        match &self.saver {
            Some(saver) => saver.save(&self.live).await,
            None => Ok(()),
        }
    }
}
