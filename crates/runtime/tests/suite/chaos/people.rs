//! The people that sessions wait for, who are the test itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, IdempotencyKey, InboxItem, PauseReason};
use backstitch_core::message::OptionResult;
use backstitch_core::ports::{QueueQuery, QueueState, QueuedSession};
use backstitch_core::time::Timestamp;
use backstitch_runtime::{Runtime, RuntimeError, WaitingCall};
use serde_json::{Value, json};

use super::agents::{Kind, SIGNAL};
use super::outside::{self, RESULT};
use super::place::Place;

/// Time after which a session that nobody takes was forgotten, if it is alone.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// Time that each session before it may take.
const PER_SESSION: Duration = Duration::from_millis(250);
/// A part of the reason of sessions whose records the server has lost.
const LOST: &str = "has lost records";

pub(crate) struct People {
    runtime: Runtime,
    root: PathBuf,
    /// How often it was decided that a call runs again, by its key.
    pub(crate) retries: BTreeMap<String, usize>,
    /// Calls that were decided to have happened.
    pub(crate) happened: usize,
    pub(crate) approved: usize,
    /// Sessions that stopped because the server has lost their records, if that may be.
    pub(crate) lost: Option<HashSet<SessionId>>,
    /// Sessions that are ready, the times from which they are, and when that was seen first.
    ready: HashMap<SessionId, (Option<Timestamp>, Instant)>,
}

impl People {
    pub(crate) fn new(runtime: Runtime, place: &Place) -> Self {
        let (root, retries, ready) = (place.root.clone(), BTreeMap::new(), HashMap::new());
        Self { runtime, root, retries, happened: 0, approved: 0, lost: None, ready }
    }

    /// Whether the server has lost records of a session.
    pub(crate) fn is_lost(&self, session: SessionId) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.contains(&session))
    }

    pub(crate) async fn list_queue(&self) -> Result<Vec<QueuedSession>, RuntimeError> {
        let query = QueueQuery { limit: 10_000, ..QueueQuery::default() };
        Ok(self.runtime.queue()?.queued(query).await?.sessions)
    }

    /// Helps all sessions that wait for a person or a signal, and returns how many sessions are left. `None` if the store does not answer.
    pub(crate) async fn attend(&mut self, has_faults: bool) -> Option<usize> {
        let queued = self.list_queue().await.ok()?;
        self.ready.retain(|session, (due, _)| {
            // A session with another time was taken in between.
            let is_ready = |one: &QueuedSession| {
                (one.session, one.state, one.entry.due) == (*session, QueueState::Ready, *due)
            };
            !has_faults && queued.iter().any(is_ready)
        });
        for one in &queued {
            let session = one.session;
            match one.state {
                QueueState::Failed => match &mut self.lost {
                    Some(lost) if one.reason.as_ref().is_some_and(|reason| reason.contains(LOST)) => {
                        lost.insert(session);
                    }
                    _ => panic!("{session} was given up: {:?}", one.reason),
                },
                QueueState::Ready if !has_faults => {
                    let (_, since) =
                        self.ready.entry(session).or_insert_with(|| (one.entry.due, Instant::now()));
                    let patience = FORGOTTEN + PER_SESSION * u32::try_from(queued.len()).unwrap();
                    assert!(since.elapsed() < patience, "nobody takes {session}: {one:?}");
                }
                QueueState::Waiting if one.entry.due.is_none() => {
                    // The server may just be away.
                    let _ = self.help(one).await;
                }
                _ => {}
            }
        }
        Some(queued.iter().filter(|one| one.state != QueueState::Failed).count())
    }

    async fn help(&mut self, one: &QueuedSession) -> Result<(), RuntimeError> {
        let session = one.session;
        // What was decided before is not decided again.
        if !self.runtime.store().inbox(session).await?.is_empty() {
            return Ok(());
        }
        for call in self.runtime.waiting_calls(session).await? {
            match call.reason {
                PauseReason::Approval => {
                    self.runtime.approve(session, call.call).await?;
                    self.approved += 1;
                }
                PauseReason::EffectUnknown => {
                    let decision = self.decide(&call);
                    self.runtime.decide(session, Some(call.call), decision, Some("a person".into())).await?;
                }
                PauseReason::Wait if Kind::of_name(&one.entry.agent) == Some(Kind::Buyer) => {
                    let item = InboxItem::signal(SIGNAL, json!(17), self.runtime.clock().now());
                    self.runtime.deliver(session, SIGNAL, item).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The decision of a person who looks whether the effect happened.
    fn decide(&mut self, call: &WaitingCall) -> Decision {
        let key = IdempotencyKey::new(call.session, call.call).to_string();
        let noted = outside::noted(&self.root, call.session);
        if noted.iter().any(|noted| noted.key == key && !noted.is_refused) {
            self.happened += 1;
            let result = OptionResult::new(call.call, call.name.clone(), Value::String(RESULT.to_owned()));
            return Decision::Happened { result: Box::new(result) };
        }
        *self.retries.entry(key).or_default() += 1;
        Decision::Retry
    }

    /// Describes the sessions that have not ended.
    pub(crate) async fn describe_open(&self) -> String {
        let mut text = "sessions do not end:".to_owned();
        for one in self.list_queue().await.unwrap_or_default() {
            let pauses = match self.runtime.view(one.session).await {
                Ok(view) => format!("{:?}", view.pauses().collect::<Vec<_>>()),
                Err(error) => error.to_string(),
            };
            text.push_str(&format!("\n{one:?}\n    {pauses}"));
        }
        text
    }
}
