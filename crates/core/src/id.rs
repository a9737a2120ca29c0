//! Identities.
//!
//! Each kind of entity has its own id type, so that a call's id cannot be passed for a session's. Ids are
//! UUIDv7: the time comes from the injected clock and the random bits from an [`IdStream`] of the session, so
//! a repeated session creates the same ids. Ids define no order; only positions in a journal do.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text_form::shown_as_text;
use crate::time::Clock;

/// The text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind} (a UUID): {text:?}")]
pub struct InvalidId {
    /// Kind of id that was expected.
    pub kind: &'static str,
    /// The rejected text.
    pub text: String,
}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        shown_as_text!($name, "format": "uuid");

        impl $name {
            /// The id as a UUID.
            pub fn as_uuid(&self) -> &Uuid {
                &self.0
            }

            /// Restores an id from its UUID.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, formatter)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| InvalidId { kind: $kind, text: text.chars().take(64).collect() })
            }
        }
    )*};
}

id_types! {
    /// Names a session: the durable unit with one journal.
    ///
    /// ```
    /// use backstitch_core::id::SessionId;
    ///
    /// let id: SessionId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse()?;
    /// assert_eq!(id.to_string(), "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d");
    /// assert!("nonsense".parse::<SessionId>().is_err());
    /// # Ok::<(), backstitch_core::id::InvalidId>(())
    /// ```
    SessionId = "session id";
    /// Names an evaluation: one prompt driven to one answer.
    ///
    /// ```
    /// use backstitch_core::id::EvaluationId;
    ///
    /// let id: EvaluationId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse()?;
    /// assert_eq!(id.to_string(), "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d");
    /// assert!("nonsense".parse::<EvaluationId>().is_err());
    /// # Ok::<(), backstitch_core::id::InvalidId>(())
    /// ```
    EvaluationId = "evaluation id";
    /// Names a message.
    MessageId = "message id";
    /// Names a call of an option. It is the `invocation_id` of messages, and idempotency keys are derived
    /// from it.
    ///
    /// ```
    /// use backstitch_core::id::CallId;
    ///
    /// let id: CallId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse()?;
    /// assert_eq!(id.to_string(), "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d");
    /// assert!("nonsense".parse::<CallId>().is_err());
    /// # Ok::<(), backstitch_core::id::InvalidId>(())
    /// ```
    CallId = "call id";
    /// Names a snapshot.
    SnapshotId = "snapshot id";
    /// Names a reservation of budget.
    ReservationId = "reservation id";
}

impl CallId {
    /// Derives the id of a call that has another kind of id at its origin. The same call of the same origin
    /// gets the same id.
    pub fn of_foreign(origin: SessionId, id: &str) -> Self {
        derived(origin.as_uuid(), &format!("foreign call {id}"))
    }

    /// Derives the id of a call that a program makes, from the answer that holds the program and a label that
    /// is unique within the program. A program that runs again makes its calls under the same ids.
    pub fn of_program(answer: MessageId, label: &str) -> Self {
        derived(answer.as_uuid(), &format!("program call {label}"))
    }
}

impl MessageId {
    /// Derives the id of a message that is computed from this one and not recorded. The result is
    /// deterministic.
    pub fn derived(self, label: &str) -> Self {
        derived(self.as_uuid(), label)
    }
}

/// Derives an id from another one and a label, deterministically.
pub(crate) fn derived<Id: From<Uuid>>(from: &Uuid, label: &str) -> Id {
    let mut hasher = blake3::Hasher::new_derive_key("backstitch 2026 derived id");
    hasher.update(from.as_bytes());
    hasher.update(label.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Id::from(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// The random stream from which a session's ids are created.
///
/// It is seeded by the session and by the *epoch*, the journal position at which the session was opened. If
/// any id of an earlier stream was recorded, a session that is opened again after a crash is at a later
/// position, so no recorded id repeats. The stream is never part of a snapshot and never rolled back. A fork
/// has another session id and therefore another stream.
#[derive(Clone)]
pub struct IdStream {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    random: Mutex<blake3::OutputReader>,
}

impl IdStream {
    /// Creates the stream of `session`, opened at journal position `epoch`.
    pub fn new(session: SessionId, epoch: u64, clock: Arc<dyn Clock>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("backstitch 2026 session id stream");
        hasher.update(session.as_uuid().as_bytes());
        hasher.update(&epoch.to_le_bytes());
        Self::from_random(hasher.finalize_xof(), clock)
    }

    /// Creates a stream that belongs to no session, for the ids of sessions themselves. The seed must come
    /// from the system's entropy if ids must be unique, and may be fixed if they must be repeatable.
    pub fn from_seed(seed: [u8; 32], clock: Arc<dyn Clock>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("backstitch 2026 free id stream");
        hasher.update(&seed);
        Self::from_random(hasher.finalize_xof(), clock)
    }

    fn from_random(random: blake3::OutputReader, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner { clock, random: Mutex::new(random) }) }
    }

    /// Returns the next id of the stream.
    pub fn next<Id: From<Uuid>>(&self) -> Id {
        let mut random = [0; 10];
        // A poisoned lock means that another thread panicked between two reads; the stream itself is sound.
        self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut random);
        let millis = self.inner.clock.now().unix_millis();
        Id::from(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// The clock that provides the time of the ids.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }
}

impl fmt::Debug for IdStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IdStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::time::FixedClock;

    fn stream(session: u128, epoch: u64) -> IdStream {
        IdStream::new(SessionId::from_uuid(Uuid::from_u128(session)), epoch, Arc::new(FixedClock::default()))
    }

    #[test]
    fn the_same_stream_gives_the_same_ids() {
        let (one, other) = (stream(1, 0), stream(1, 0));
        for _ in 0..100 {
            assert_eq!(one.next::<CallId>(), other.next::<CallId>());
        }
    }

    #[test]
    fn no_id_occurs_twice_over_sessions_and_epochs() {
        let mut seen = HashSet::new();
        for (session, epoch) in [(1, 0), (1, 7), (2, 0), (2, 7)] {
            let ids = stream(session, epoch);
            for _ in 0..2_000 {
                assert!(seen.insert(ids.next::<MessageId>()));
            }
        }
    }

    #[test]
    fn ids_are_version_7_and_dated() {
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05.678Z".parse().unwrap()));
        let ids = IdStream::from_seed([7; 32], clock);
        let id: SessionId = ids.next();
        assert_eq!(id.as_uuid().get_version_num(), 7);
        let (seconds, nanos) = id.as_uuid().get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (1_767_323_045, 678_000_000));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let error = "call_1".parse::<CallId>().unwrap_err();
        assert_eq!(error.to_string(), "not a call id (a UUID): \"call_1\"");
    }
}
