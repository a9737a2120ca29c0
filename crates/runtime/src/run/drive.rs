//! Driving sessions for a scheduler: until they wait or end, and by the names of their agents.
//!
//! [`Runtime::drive`] and [`Runtime::deliver`] are all that a scheduler needs. Workers use them, and so can another system that
//! runs jobs, with the id of the session as its key. Both may be repeated at any time: a drive of a session that rests does nothing
//! and returns the same rest, and an item is delivered once for its word.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, PauseReason, SessionPaused, StopReason, Wait};
use backstitch_core::object::INLINE_LIMIT;
use backstitch_core::ports::{BoxFuture, Store};
use backstitch_core::session::BoxError;
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::door::Target;
use crate::agent::{Agent, ResumeOptions};
use crate::error::{Result, RuntimeError};
use crate::evaluate::Begin;
use crate::live::{find_view, open_waits};
use crate::outcome::DriveOutcome;
use crate::report::{SentItem, Version};
use crate::runtime::{Runtime, SessionOptions};

/// Why driving a session ended, and what has to happen before it is worth driving it again.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, AgentRegistry, Rest, Runtime};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let runtime = runtime.with_agents(Arc::new(AgentRegistry::new([agent.clone()])));
/// let run = runtime.start(&agent, "Mend the coat.").await?;
/// run.outcome().await?;
/// runtime.send(run.session(), "And the sleeve.").await?;
/// assert_eq!(runtime.drive(run.session()).await?, Rest::Finished);
/// assert_eq!(runtime.drive(run.session()).await?, Rest::Finished); // there was nothing left to do
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rest {
    /// Nothing was asked yet. A message starts an evaluation.
    Idle,
    /// The latest evaluation has its answer, or was cancelled. A message starts the next one.
    Finished,
    /// The latest evaluation failed. A message starts the next one.
    Failed {
        /// A stable word for the kind of error.
        error: String,
        /// What happened, for a person.
        message: String,
    },
    /// It waits for a time. An item that is delivered may end the wait before.
    Until {
        /// The time.
        #[schemars(with = "String")]
        at: Timestamp,
    },
    /// It waits for a signal.
    Signal {
        /// The name of the signal, or of one of them.
        name: String,
    },
    /// It waits for a person: for a decision, or for more of something.
    Person {
        /// What it waits for.
        reason: PauseReason,
        /// Details for a person.
        detail: String,
    },
    /// This process stopped, and paused it. Any other may drive it now.
    Stopped,
}

impl Runtime {
    /// Drives a session until it waits or ends, with the agent of its name ([`with_agents`](Self::with_agents)), and returns why
    /// it rests. Fails if another process drives it, and if an error stops it; then it can be driven again.
    pub async fn drive(&self, session: SessionId) -> Result<Rest> {
        self.drive_with(session, SessionOptions::default()).await
    }

    /// Like [`drive`](Self::drive), with options: a claim that the caller holds, or whether to take over the session from a process
    /// that does not know yet that it lost its work.
    pub fn drive_with(&self, session: SessionId, options: SessionOptions) -> BoxFuture<'_, Result<Rest>> {
        Box::pin(async move { self.drive_announced(session, options, || {}).await })
    }

    /// Does the same, and calls a function once the session is open and there is something to drive.
    pub(crate) async fn drive_announced(
        &self,
        session: SessionId,
        options: SessionOptions,
        announce: impl FnOnce() + Send,
    ) -> Result<Rest> {
        let view = self.view(session).await?;
        let (agent, resume) = self.agent_of(&view).await?;
        let paused = pauses_of_person(&view).next().cloned();
        drop(view);
        if let Some(pause) = paused
            && self.store().inbox(session).await?.is_empty()
        {
            let detail = pause.detail.clone().unwrap_or_default();
            return Ok(Rest::Person { reason: pause.reason, detail });
        }
        let begin = Begin::Resume(resume);
        let ended = match self.run(&agent, Target::Known(session, options), begin).await {
            Ok(run) => {
                announce();
                run.outcome().await
            }
            Err(error) => Err(error),
        };
        self.rest_after(session, ended).await
    }

    /// Adds an item to the inbox of a session, once for a word of the caller, and returns whether it was added. A session that waits
    /// in the queue becomes ready. Messages, [signals](InboxItem::signal) and requests can be delivered.
    pub async fn deliver(&self, session: SessionId, once: &str, item: InboxItem) -> Result<bool> {
        Ok(self.queue()?.deliver(session, once, item).await?)
    }

    /// Sends a signal to a session. The first wait for its name returns the value, also one that begins later. If a call of a
    /// sub-agent waits for it now, the sub-agent receives it.
    pub async fn signal(&self, session: SessionId, name: &str, value: Value) -> Result<SentItem> {
        let refuse = |reason: String| Err(RuntimeError::InvalidSignal { reason });
        if let Err(error) = Wait::check_signal_name(name) {
            return refuse(error.to_string());
        }
        if value.to_string().len() > INLINE_LIMIT {
            return refuse(format!("its value has more than {INLINE_LIMIT} bytes; send a reference to it"));
        }
        let view = self.view(session).await?;
        let target = waiting_for(&**self.store(), &view, name).await?.unwrap_or(session);
        let item = InboxItem::signal(name, value, self.clock().now());
        let item = self.send_within(target, item).await?;
        Ok(SentItem { v: Version, session, item, open: view.open_evaluation().is_some() })
    }

    /// Finds the agent of a session by its name, and how it continues the session.
    async fn agent_of(&self, view: &JournalView) -> Result<(Agent, ResumeOptions)> {
        let session = view.session_id();
        let name = view.summary().agent.map(|name| name.to_string());
        let (Some(name), Some(agents)) = (&name, self.agents()) else {
            return Err(RuntimeError::UnknownAgent { session, agent: name });
        };
        let unusable =
            |error: BoxError| RuntimeError::Agent { session, agent: name.clone(), cause: error.into() };
        let Some(agent) = agents.agent(name, session).await.map_err(unusable)? else {
            return Err(RuntimeError::UnknownAgent { session, agent: Some(name.clone()) });
        };
        Ok((agent, agents.resume_options(session).await.map_err(unusable)?))
    }

    async fn rest_after(&self, session: SessionId, ended: Result<DriveOutcome>) -> Result<Rest> {
        Ok(match ended {
            Err(error) if error.code() == ErrorCode::NoMessages => Rest::Idle,
            Err(error) if error.code() == ErrorCode::WaitsForPerson => {
                Rest::Person { reason: PauseReason::Asked, detail: error.to_string() }
            }
            Err(error) => return Err(error),
            Ok(DriveOutcome::Failed { failure, .. }) => {
                Rest::Failed { error: failure.kind, message: failure.message }
            }
            Ok(DriveOutcome::Paused { reason: PauseReason::Asked, .. })
                if self.registry.why.get().is_some() =>
            {
                Rest::Stopped
            }
            Ok(DriveOutcome::Paused { reason, detail, .. }) => {
                let view = self.view(session).await?;
                let now = self.clock().now();
                match open_waits(&**self.store(), &view, now).await? {
                    None => Rest::Person { reason, detail },
                    Some(open) => match open.signals.into_iter().next() {
                        Some(name) => Rest::Signal { name },
                        // Everything has come meanwhile.
                        None => Rest::Until { at: open.times.into_iter().max().unwrap_or(now) },
                    },
                }
            }
            Ok(
                DriveOutcome::Completed(_) | DriveOutcome::Cancelled { .. } | DriveOutcome::Superseded { .. },
            ) => Rest::Finished,
        })
    }
}

/// Returns the pauses that only a person ends: of a session that was stopped on a terminal, and of an answer that was cut off. A pause
/// without such a cause may be that of a process that was shut down and then killed, so it is continued.
pub(crate) fn pauses_of_person(view: &JournalView) -> impl Iterator<Item = &Arc<SessionPaused>> {
    let is_stopped = view.stopped().is_some_and(|stopped| stopped.reason == StopReason::Signal);
    view.pauses().filter(move |pause| {
        let is_asked = pause.reason == PauseReason::Asked && is_stopped;
        pause.session.is_none() && (is_asked || pause.reason == PauseReason::Truncated)
    })
}

/// Returns the session whose call waits for a signal: this one, or a child session of one of its calls.
fn waiting_for<'a>(
    store: &'a dyn Store,
    view: &'a JournalView,
    name: &'a str,
) -> backstitch_core::ports::BoxFuture<'a, Result<Option<SessionId>>> {
    Box::pin(async move {
        for pause in view.pauses() {
            if pause.wait.as_ref().is_some_and(|wait| wait.signal_name() == Some(name)) {
                return Ok(Some(view.session_id()));
            }
            let Some(child) = pause.session else { continue };
            if let Some(below) = find_view(store, child).await?
                && let Some(found) = waiting_for(store, &below, name).await?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    })
}
