//! Slices of each policy, and a deterministic session.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::session::{Event, Items, Session, Slice};
use backstitch_core::time::FixedClock;
use backstitch_macros::Slice;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A State slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "note", crate = backstitch_core::__private)]
pub(crate) struct Note {
    pub(crate) key: u32,
    pub(crate) text: String,
}

/// A Log slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "deed", policy = "log", crate = backstitch_core::__private)]
pub(crate) struct Deed(pub(crate) u32);

/// A Cache slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "total", policy = "cache", crate = backstitch_core::__private)]
pub(crate) struct Total(pub(crate) u32);

/// A Journal slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "line", policy = "journal", crate = backstitch_core::__private)]
pub(crate) struct Line(pub(crate) u32);

/// An event that is not a slice item.
#[derive(Debug)]
pub(crate) struct Knock {
    pub(crate) times: u32,
}

impl Event for Knock {}

pub(crate) fn note(key: u32, text: &str) -> Note {
    Note { key, text: text.to_owned() }
}

pub(crate) fn session_id(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

/// A clock with a time that is easy to recognize in a snapshot.
pub(crate) fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()))
}

pub(crate) fn session() -> Session {
    Session::new(session_id(1), clock())
}

/// Returns the items of a slice as plain values, for comparisons.
pub(crate) fn items<S: Slice + Clone>(session: &Session) -> Vec<S> {
    values(&session.all::<S>().unwrap())
}

pub(crate) fn values<S: Clone>(items: &Items<S>) -> Vec<S> {
    items.iter().map(|item| S::clone(item)).collect()
}

/// A session with one item in a slice of each policy.
pub(crate) fn one_of_each() -> Session {
    let mut session = session();
    session.append(note(1, "one")).unwrap();
    session.append(Deed(1)).unwrap();
    session.append(Total(1)).unwrap();
    session.append(Line(1)).unwrap();
    session
}
