//! The suite that the queue of every store passes.
//!
//! Each property is a function that takes an empty store. The tests of a store call `queue_conformance!(make)`.

mod entries;
mod limits;
mod rests;
mod side_by_side;
mod wake;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, QueueEntry};
use backstitch_core::ports::{
    ClaimMode, Owner, Queue, QueueQuery, QueueState, QueuedSession, Store, StoreError, TakeRequest,
    TakenSession,
};
use backstitch_core::time::Timestamp;
use backstitch_testkit::{block_on, sample};

use super::{HasStore, append, claim, first_batch};

pub(crate) use entries::*;
pub(crate) use limits::*;
pub(crate) use rests::*;
pub(crate) use side_by_side::*;
pub(crate) use wake::*;

/// Calls a macro with the names of all properties, after the other arguments.
macro_rules! queue_properties {
    ($macro:path, $($given:tt)*) => {
        $macro! { $($given)*
            a_session_is_enqueued_with_its_first_batch
            a_refused_batch_enqueues_nothing
            a_session_that_exists_is_enqueued
            a_removed_session_leaves_the_queue
            words_that_cannot_be_kept_are_refused
            sessions_are_taken_by_priority_and_then_by_time
            sessions_of_other_agents_stay
            a_session_that_is_held_otherwise_is_not_taken
            a_session_waits_for_its_time
            pages_list_the_queue_in_the_order_of_creation
            schedules_advance_once
            limits_hold_for_each_tag
            limits_hold_for_workers_side_by_side
            a_session_that_is_done_leaves_the_queue
            attempts_are_counted_until_one_succeeds
            a_session_that_failed_stays_until_it_is_retried
            a_session_is_taken_out_unless_it_is_held
            a_stale_claim_releases_nothing
            an_item_wakes_a_session_that_waits
            an_item_that_came_meanwhile_makes_a_released_session_ready
            an_item_is_delivered_once
            no_wake_up_is_lost
            of_many_callers_with_a_key_one_enqueues
            a_session_is_taken_by_one_of_many
        }
    };
}

/// A store with a queue, or a value that owns one.
pub(crate) trait HasQueue: HasStore {
    /// The queue.
    fn queue(&self) -> &dyn Queue;
}

impl<S: Store + Queue> HasQueue for S {
    fn queue(&self) -> &dyn Queue {
        self
    }
}

/// Generates a test for each property of a queue.
macro_rules! queue_conformance {
    (optional $make:expr) => {
        $crate::conformance::queue::queue_properties! { $crate::conformance::queue::queue_tests, (optional $make) }
    };
    ($make:expr) => {
        $crate::conformance::queue::queue_properties! {
            $crate::conformance::queue::queue_tests, (optional || Some($make()))
        }
    };
}

macro_rules! queue_tests {
    ((optional $make:expr) $($property:ident)*) => {$(
        #[test]
        fn $property() {
            let make = $make;
            let Some(made) = make() else { return };
            let store = $crate::conformance::HasStore::store(&made);
            $crate::conformance::queue::$property(store, $crate::conformance::queue::HasQueue::queue(&made));
        }
    )*};
}

pub(crate) use {queue_conformance, queue_properties, queue_tests};

/// The agent of all sessions that name no other.
const AGENT: &str = "tailor";

fn entry() -> QueueEntry {
    QueueEntry::new(AGENT)
}

/// Creates a session that is enqueued, and releases it.
fn enqueued(store: &dyn Store, seed: u64, entry: QueueEntry) -> SessionId {
    try_enqueued(store, seed, entry).expect("a session can be enqueued")
}

fn try_enqueued(store: &dyn Store, seed: u64, entry: QueueEntry) -> Result<SessionId, StoreError> {
    let session = sample::session(seed);
    let held = claim(store, session, "creator", ClaimMode::IfFree)?;
    let mut batch = first_batch(session);
    batch.enqueue(entry);
    let appended = append(store, session, Position::START, held.fence, batch);
    block_on(store.release(held)).expect("a held session can be released");
    appended.map(|_| session)
}

/// Takes sessions for an agent.
fn take(queue: &dyn Queue, limit: usize) -> Vec<TakenSession> {
    let request = TakeRequest { owner: Owner::new("worker"), agents: vec![AGENT.to_owned()], limit };
    block_on(queue.take(request)).expect("sessions can be taken")
}

fn sessions_of(taken: &[TakenSession]) -> Vec<SessionId> {
    taken.iter().map(|taken| taken.claim.session).collect()
}

/// Takes the only session that can be taken.
fn take_one(queue: &dyn Queue) -> TakenSession {
    let mut taken = take(queue, 10);
    assert_eq!(taken.len(), 1, "{taken:?}");
    taken.remove(0)
}

/// The whole queue.
fn listed(queue: &dyn Queue) -> Vec<QueuedSession> {
    let query = QueueQuery { limit: 1000, ..QueueQuery::default() };
    block_on(queue.queued(query)).expect("the queue can be listed").sessions
}

fn state_of(queue: &dyn Queue, session: SessionId) -> Option<QueueState> {
    let query = QueueQuery { session: Some(session), limit: 1, ..QueueQuery::default() };
    let page = block_on(queue.queued(query)).expect("the queue can be listed");
    page.sessions.first().map(|queued| queued.state)
}

/// A moment of the past; later for larger numbers.
fn past(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_600_000_000_000_000 + seconds * 1_000_000).expect("a time")
}

/// A moment that no test reaches.
fn future(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(9_000_000_000_000_000 + seconds * 1_000_000).expect("a time")
}
