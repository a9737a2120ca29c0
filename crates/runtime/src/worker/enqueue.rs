//! Sessions that are started for workers.
//!
//! A session is stored together with its mission and its place in the queue, in one batch. No directory is opened: the worker that
//! drives it does that.

use std::collections::BTreeMap;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, InboxItem, QueueEntry};
use backstitch_core::ports::StoreError;
use backstitch_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Mission};
use crate::error::{Result, RuntimeError};
use crate::evaluate::Evaluator;
use crate::report::Version;
use crate::run::pauses_of_person;
use crate::runtime::{Runtime, SessionOptions};

/// How a session waits for a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnqueueOptions {
    /// Earliest start; at once if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Sessions of a higher priority are taken first.
    pub priority: i16,
    /// A word of the caller. A second session with it is not enqueued, and the first one is returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Labels of the session. A limit of the queue for `key=value` holds for sessions with that label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The id of the session. By default it is generated.
    #[serde(skip)]
    pub id: Option<SessionId>,
}

impl EnqueueOptions {
    fn entry(&self, agent: &str) -> QueueEntry {
        let mut entry = QueueEntry::new(agent).with_priority(self.priority);
        (entry.due, entry.key) = (self.at, self.key.clone());
        entry.tags = self.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        entry
    }
}

/// A session in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EnqueuedSession {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// False if the key was used before, for this session. Then nothing was changed.
    pub is_new: bool,
}

impl EnqueuedSession {
    fn new(session: SessionId, is_new: bool) -> Self {
        Self { v: Version, session, is_new }
    }
}

impl Runtime {
    /// Stores a session of this agent with its mission, for workers that know the agent's name ([`Worker`](crate::Worker)). Returns once
    /// that is durable. With a key, a repeated call returns the same session.
    pub async fn enqueue(
        &self,
        agent: &Agent,
        mission: impl Into<Mission>,
        options: EnqueueOptions,
    ) -> Result<EnqueuedSession> {
        let mission = mission.into();
        if mission.is_blank() {
            return Err(RuntimeError::EmptyMission);
        }
        if let Some(key) = &options.key
            && let Some(session) = self.queue()?.keyed(key).await?
        {
            return Ok(EnqueuedSession::new(session, false));
        }
        let agent = agent.resolved(&self.adapters)?;
        let (runtime, evaluator) = (self.clone(), Evaluator::of(agent.clone()));
        let name = agent.definition.get("name").and_then(serde_json::Value::as_str).unwrap_or(&agent.key);
        let entry = options.entry(name);
        let session = SessionOptions {
            id: options.id,
            tags: options.tags,
            stored_with_mission: true,
            ..SessionOptions::default()
        };
        self.in_task(async move {
            let live = evaluator.create_session(&runtime, session).await?;
            live.enqueue_with_mission(entry).await;
            let begun = evaluator.begin(agent.bound.as_deref(), &live, mission).await;
            let released = live.release().await;
            match begun {
                Ok(_) => released.map(|()| EnqueuedSession::new(live.id(), true)),
                // Another caller was faster.
                Err(RuntimeError::Store(StoreError::KeyUsed { session, .. })) => {
                    Ok(EnqueuedSession::new(session, false))
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Adds an existing session to the queue, with a message if there is one: workers continue it, or answer the message. Its labels
    /// are those that it was started with. With a key, a repeated call sends no second message.
    pub async fn enqueue_again(
        &self,
        session: SessionId,
        message: Option<&str>,
        options: EnqueueOptions,
    ) -> Result<EnqueuedSession> {
        let view = self.view(session).await?;
        let summary = view.summary();
        let Some(agent) = summary.agent else {
            return Err(RuntimeError::UnknownAgent { session, agent: None });
        };
        if message.is_some_and(|text| text.trim().is_empty()) {
            return Err(RuntimeError::EmptyMission);
        }
        if let Some(key) = &options.key
            && let Some(first) = self.queue()?.keyed(key).await?
        {
            return Ok(EnqueuedSession::new(first, false));
        }
        match (message, &options.key) {
            (Some(text), None) => {
                self.send(session, text).await?;
            }
            // After a crash before the key is used, it is not sent again.
            (Some(text), Some(key)) => {
                let item = InboxItem::message(text, self.clock().now());
                self.deliver(session, key, item).await?;
            }
            (None, _) => {
                for pause in pauses_of_person(&view).cloned().collect::<Vec<_>>() {
                    match self.decide(session, pause.call_id, Decision::Continue, None).await {
                        // One decision may end several pauses.
                        Ok(_) | Err(RuntimeError::Unresolvable(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        let entry = EnqueueOptions { tags: summary.tags, ..options }.entry(&agent);
        let found = self.queue()?.enqueue(session, entry).await?;
        Ok(EnqueuedSession::new(found, found == session))
    }
}
