//! Samples: ids, records and journals, the same for the same seed.
//!
//! | sample | what it is |
//! |---|---|
//! | [`clock`], [`ids`], [`session`] | the basics of most tests |
//! | [`created`], [`note`], [`notes`] | the smallest records and batches of a journal |
//! | [`item`] | an inbox message to a session |
//! | [`summary`] | the summary of a session that was just created |
//! | [`every_kind`] | a journal with every kind of record, every field filled |
//! | [`journal`] | a random journal: every event of a session, in a possible order |
//! | [`conversation`] | a journal in which nothing fails: request, answer, call, result, repeatedly |
//! | [`shaped`] | a random journal with other frequencies |
//! | [`Task`], [`Remark`], [`Milestone`] | the slices that these journals change |

mod calls;
mod content;
mod evaluations;
mod generator;
mod journal;
mod kinds;
mod slices;

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::id::{IdStream, SessionId};
use backstitch_core::journal::{
    Batch, InboxItem, InboxKind, JournalState, Note, Origin, Position, SessionCreated, SessionSummary,
};
use backstitch_core::rng::Seed;
use backstitch_core::time::{Clock, FixedClock};

pub use journal::{Journal, Shape, conversation, journal, shaped};
pub use kinds::every_kind;
pub use slices::{Milestone, Remark, Task, UNKNOWN_SLICE};

/// A clock that is stopped on the first morning of 2026.
pub fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at("2026-01-01T08:00:00Z".parse().expect("this is a time")))
}

/// A stream of ids that is the same for the same seed, dated by [`clock`].
pub fn ids(seed: u64) -> IdStream {
    ids_of(seed, clock())
}

fn ids_of(seed: u64, clock: Arc<dyn Clock>) -> IdStream {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    IdStream::from_seed(bytes, clock)
}

/// The id of a session; another one for another seed.
pub fn session(seed: u64) -> SessionId {
    ids(seed).next()
}

/// The first record of a session without a parent.
pub fn created(session: SessionId) -> SessionCreated {
    SessionCreated::new(session, clock().now(), Seed::new(7))
}

/// A note, which no view reads.
pub fn note(text: impl Into<String>) -> Note {
    Note::new("sample", text)
}

/// A batch of notes with these texts.
pub fn notes<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Batch {
    texts.into_iter().fold(Batch::at(clock().now()), |batch, text| batch.with(note(text)))
}

/// A message for the inbox of a session.
pub fn item(text: &str) -> InboxItem {
    InboxItem { kind: InboxKind::Message, at: clock().now(), data: serde_json::json!({ "text": text }) }
}

/// The summary of a session that has only its first record.
pub fn summary(session: SessionId) -> SessionSummary {
    let at = clock().now();
    SessionSummary {
        version: SessionSummary::VERSION,
        session,
        position: Position::new(1),
        created_at: at,
        updated_at: at,
        state: JournalState::Idle,
        pause: None,
        outcome: None,
        failure: None,
        stopped: None,
        agent: None,
        workspace: None,
        project: None,
        origin: Origin::Root,
        name: None,
        tags: BTreeMap::new(),
        mission: Arc::from(""),
        turns: 0,
        spent: Amounts::ZERO,
    }
}
