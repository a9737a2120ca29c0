//! What a worker looks at besides the queue: agents and schedules.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backstitch_core::ports::{Queue, QueueState, StoreError};
use backstitch_core::time::Timestamp;
use tokio::time::Instant;

use super::Worker;

/// Interval at which agents and schedules are read again.
const INTERVAL: Duration = Duration::from_secs(5);

/// The same interval in readings of the queue.
const POLLS: u32 = 5;

/// How many times longer the interval is as long as the store would say that something is new, and does not.
const CALM: u32 = 6;

/// What a worker knows besides the queue.
#[derive(Default)]
pub(super) struct WorkerContext {
    /// The agents whose sessions it takes. Those that had sessions before may have some at any time.
    pub(super) names: BTreeSet<String>,
    looked: Option<Instant>,
    /// Whether there was a hint since it looked.
    is_hinted: bool,
    /// The earliest time of a schedule.
    next: Option<Timestamp>,
}

impl WorkerContext {
    pub(super) fn note_hint(&mut self) {
        self.is_hinted = true;
    }
}

impl Worker {
    /// Whether it is time to look around.
    pub(super) fn is_time_to_look(&self, queue: &dyn Queue, known: &WorkerContext) -> bool {
        let Some(looked) = known.looked else { return true };
        let is_due = known.next.is_some_and(|next| next <= self.runtime.clock().now());
        let calm = if queue.has_hints() && !known.is_hinted { CALM } else { 1 };
        let interval = INTERVAL.min(self.options.poll.saturating_mul(POLLS)).saturating_mul(calm);
        known.names.is_empty() || is_due || looked.elapsed() >= interval
    }

    /// Whether a hint for which there was nothing to take may be about an agent that had no sessions before.
    pub(super) fn may_have_new_agent(&self, known: &WorkerContext) -> bool {
        let is_open = self.runtime.agents().is_some_and(|agents| agents.names().is_none());
        is_open && known.is_hinted && known.looked.is_none_or(|at| at.elapsed() >= self.options.poll)
    }

    /// Reads agents, and starts the sessions of schedules. Returns whether there are new agents.
    pub(super) async fn look_around(
        &self,
        queue: &dyn Queue,
        known: &mut WorkerContext,
    ) -> Result<bool, StoreError> {
        (known.looked, known.is_hinted) = (Some(Instant::now()), false);
        let before = known.names.len();
        known.names.extend(self.known_names(queue).await?);
        known.next = self.apply_schedules(queue).await?;
        Ok(known.names.len() > before)
    }

    /// Returns the names of the agents whose sessions it takes, and reports those that wait for others.
    async fn known_names(&self, queue: &dyn Queue) -> Result<Vec<String>, StoreError> {
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for count in queue.counts().await? {
            if count.state == QueueState::Ready {
                *waiting.entry(count.agent).or_default() += count.sessions;
            } else {
                waiting.entry(count.agent).or_default();
            }
        }
        let Some(names) = self.runtime.agents().map_or(Some(Vec::new()), |agents| agents.names()) else {
            return Ok(waiting.into_keys().collect());
        };
        for (agent, ready) in waiting {
            if ready > 0 && !names.contains(&agent) {
                self.note_unknown(&agent);
            }
        }
        Ok(names)
    }
}
