//! The queue of a store: sessions that wait for a worker.
//!
//! A session enters the queue with the batch that creates it ([`Batch::enqueue`](crate::journal::Batch::enqueue)): its
//! records, its entry and its key are stored together or not at all. It stays until a worker releases it with
//! [`QueueRest::Done`], or until it is removed from the store. Between the two it is in one state:
//!
//! | state | leaves it by |
//! |---|---|
//! | [`Ready`](QueueState::Ready) | [`Queue::take`] |
//! | [`Waiting`](QueueState::Waiting) | its time, or an item in its inbox |
//! | [`Held`](QueueState::Held) | [`Queue::release`], or [`Queue::recover`] after the end of its worker |
//! | [`Failed`](QueueState::Failed) | [`Queue::retry`] |
//!
//! [`Queue::dequeue`] ends all of them but the third.
//!
//! No wake-up is lost: every item that reaches an inbox ([`Store::send`](super::Store::send), [`Queue::deliver`])
//! makes a waiting session ready in the same transaction, and [`Queue::release`] makes a session ready whose inbox got
//! an item since it was taken. Only a session that was never taken waits for its time regardless.
//!
//! A session can be held without the queue ([`Store::claim`](super::Store::claim)), for example by a person who
//! resumes it. That changes nothing in the queue: no worker takes the session while the claim lasts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BoxFuture;
use super::query::SessionCursor;
use super::store::{Owner, SessionClaim};
use super::store_error::StoreError;
use crate::id::SessionId;
use crate::journal::{InboxId, InboxItem, QueueEntry};
use crate::time::Timestamp;

/// Which sessions a worker wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeRequest {
    /// Name of the worker.
    pub owner: Owner,
    /// Names of the agents that it knows. An empty list takes nothing.
    pub agents: Vec<String>,
    /// The most sessions.
    pub limit: usize,
}

/// A session that a worker has taken. Its claim is one like [`Store::claim`](super::Store::claim) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenSession {
    /// The claim.
    pub claim: SessionClaim,
    /// The entry as it was enqueued; `due` is the time for which it waited.
    pub entry: QueueEntry,
    /// How often in a row it was released for another attempt, or its worker ended without a release.
    pub attempts: u32,
    /// The last item in its inbox when it was taken. Later ones make it ready again when it is released.
    pub seen: Option<InboxId>,
}

/// Why a worker gives a session back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueRest {
    /// It has ended, and leaves the queue.
    Done,
    /// It waits for an item in its inbox, or for this time if there is one.
    Wait {
        /// Time at which it becomes ready without an item.
        until: Option<Timestamp>,
    },
    /// It is ready without a failure, for example because the worker ends.
    Ready,
    /// It could not be driven now, without a failure of its own, and becomes ready later.
    Later {
        /// Time until then.
        after: Duration,
    },
    /// It failed, and becomes ready for another attempt.
    Retry {
        /// Time until then.
        after: Duration,
        /// What failed.
        reason: String,
    },
    /// It failed for good.
    Fail {
        /// What failed.
        reason: String,
    },
}

/// State of a session in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueState {
    /// The next worker with room takes it.
    Ready,
    /// It waits for its time, or for an item in its inbox.
    Waiting,
    /// A worker drives it.
    Held,
    /// It was given up.
    Failed,
}

/// A session in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedSession {
    /// The session.
    pub session: SessionId,
    /// Its entry. `due` is the time for which it waits or waited last; a waiting session without one waits for an item only.
    #[serde(flatten)]
    pub entry: QueueEntry,
    /// Its state.
    pub state: QueueState,
    /// See [`TakenSession::attempts`].
    pub attempts: u32,
    /// What failed last, as long as no attempt has succeeded since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which sessions of the queue to list, in the order of their creation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueQuery {
    /// This state.
    pub state: Option<QueueState>,
    /// This agent.
    pub agent: Option<String>,
    /// This session.
    pub session: Option<SessionId>,
    /// The most results of a page. Zero counts as one.
    pub limit: usize,
    /// Continues after an earlier page of the same query.
    pub after: Option<SessionCursor>,
}

/// Results of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueuePage {
    /// The sessions, at most as many as the query's limit; fewer only at the end.
    pub sessions: Vec<QueuedSession>,
    /// Where the next page begins; none at the end.
    pub next: Option<SessionCursor>,
}

/// How many sessions of an agent are in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCount {
    /// The agent.
    pub agent: String,
    /// The state.
    pub state: QueueState,
    /// Number of sessions; not zero.
    pub sessions: u64,
}

/// A limit for sessions with a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLimit {
    /// The tag.
    pub tag: String,
    /// The most sessions with this tag that workers hold at a time.
    pub most: u32,
    /// How many they hold now.
    pub held: u64,
}

/// A rule by which sessions are enqueued again and again.
///
/// The store keeps it and does not read `cron` or `request`. When `next` has come, a worker enqueues a session with
/// [`Schedule::key`] and then moves the schedule on by [`Queue::advance_schedule`]. The key makes that safe for
/// several workers, and after a crash between the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name, by which it is replaced and removed.
    pub name: String,
    /// When, as a cron expression.
    pub cron: String,
    /// What to enqueue, in the form of its writer.
    pub request: Value,
    /// The next time.
    pub next: Timestamp,
    /// The session that was enqueued last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SessionId>,
}

impl Schedule {
    /// The key of the session that is enqueued at the next time.
    pub fn key(&self) -> String {
        format!("schedule/{}/{}", self.name, self.next)
    }
}

/// The queue of a store.
pub trait Queue: Send + Sync {
    /// Adds a session that exists. A new one is added by its first batch instead. If the queue has the session, its
    /// agent, priority, time and tags are replaced, and it is due again, unless a worker holds it: then nothing is
    /// changed. Returns the session: if the key was used before, the one that it was used for, and nothing is changed.
    fn enqueue(&self, session: SessionId, entry: QueueEntry) -> BoxFuture<'_, Result<SessionId, StoreError>>;

    /// The session that was enqueued with a key, if it was not removed since.
    fn keyed(&self, key: &str) -> BoxFuture<'_, Result<Option<SessionId>, StoreError>>;

    /// Takes sessions that are ready or whose time has come: of a higher priority first, then by their time. None that is
    /// held, and none with a tag whose limit is reached. Two workers never take the same session.
    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<TakenSession>, StoreError>>;

    /// Completes when the queue may have something new to take. That is a hint: it may come for nothing, and may not come at all,
    /// as in stores that give none. One caller at a time gets it.
    fn wait_for_hint(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Whether hints come at this time, so that it need not be read often.
    fn has_hints(&self) -> bool {
        false
    }

    /// Gives a session back and releases its claim, in one transaction. It is ready at once if its inbox got an item since it
    /// was taken, unless it failed for good. Fails with [`StoreError::Fenced`] if the claim is no longer current: then another worker has the
    /// session.
    fn release(&self, taken: TakenSession, rest: QueueRest) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Adds an item to the inbox of a session like [`Store::send`](super::Store::send), but once per word and session, also after
    /// the item was taken out of the inbox. Returns whether it was added.
    fn deliver(
        &self,
        session: SessionId,
        once: &str,
        item: InboxItem,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Makes the sessions of workers that have ended ready, each with one attempt more. Returns their number. Any worker calls
    /// this from time to time; see [`Queue::recovery_interval`].
    fn recover(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// How often to call [`Queue::recover`].
    fn recovery_interval(&self) -> Duration;

    /// Takes a session out of the queue, unless a worker holds it. Returns whether it was taken out. Its journal and its key stay.
    fn dequeue(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Makes a session ready that had failed, with no attempts. Returns whether it had.
    fn retry(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// The earliest time at which a waiting session of these agents, or a schedule, is due. It may have passed.
    fn next_due(&self, agents: Vec<String>) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// A page of the queue.
    fn queued(&self, query: QueueQuery) -> BoxFuture<'_, Result<QueuePage, StoreError>>;

    /// How many sessions are in the queue, by agent and state.
    fn counts(&self) -> BoxFuture<'_, Result<Vec<QueueCount>, StoreError>>;

    /// Sets the limit of a tag, or removes it.
    fn set_limit(&self, tag: &str, most: Option<u32>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All limits, by tag.
    fn limits(&self) -> BoxFuture<'_, Result<Vec<QueueLimit>, StoreError>>;

    /// Adds a schedule, or replaces the one with its name.
    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes a schedule. Returns whether there was one.
    fn remove_schedule(&self, name: &str) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All schedules, by name.
    fn schedules(&self) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>>;

    /// Notes the session that was enqueued at the time `due` of a schedule, and sets its next time. Returns false, and changes
    /// nothing, if `due` is not its next time any more: another worker was faster, or it was replaced or removed.
    fn advance_schedule(
        &self,
        name: &str,
        due: Timestamp,
        next: Timestamp,
        session: SessionId,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// The most bytes of a word of the queue: a name, a key or a tag.
const MOST_WORD_BYTES: usize = 400;
/// The most tags of an entry.
const MOST_TAGS: usize = 32;

/// Checks a word that every store has to keep: a key, a tag, or the name of an agent or a schedule. `what` says which.
pub fn check_queue_word(what: &'static str, word: &str) -> Result<(), StoreError> {
    let reason = match word {
        "" => "it is empty",
        word if word.len() > MOST_WORD_BYTES => "it has more than 400 bytes",
        word if word.chars().any(char::is_control) => "it has control characters",
        _ => return Ok(()),
    };
    let word = word.chars().take(40).collect();
    Err(StoreError::QueueWord { what, word, reason })
}

/// Checks the words of an entry.
pub fn check_queue_entry(entry: &QueueEntry) -> Result<(), StoreError> {
    check_queue_word("agent", &entry.agent)?;
    entry.tags.iter().try_for_each(|tag| check_queue_word("tag", tag))?;
    if let Some(tag) = entry.tags.iter().nth(MOST_TAGS) {
        let (word, reason) = (tag.clone(), "an entry has at most 32 tags");
        return Err(StoreError::QueueWord { what: "tag", word, reason });
    }
    entry.key.iter().try_for_each(|key| check_queue_word("key", key))
}
