//! What the queues of all stores have in common: the words of their rows, and how a release changes one.

use std::time::Duration;

use backstitch_core::ports::{QueueRest, QueueState, StoreError};
use backstitch_core::time::Timestamp;

/// The most bytes that are kept of the reason of a failure.
const MOST_REASON_BYTES: usize = 4096;

/// The stored word of a state.
pub(crate) fn state_word(state: QueueState) -> &'static str {
    match state {
        QueueState::Ready => "ready",
        QueueState::Waiting => "waiting",
        QueueState::Held => "held",
        QueueState::Failed => "failed",
    }
}

/// The state that a word stands for.
pub(crate) fn state_of(word: &str) -> Result<QueueState, StoreError> {
    let all = [QueueState::Ready, QueueState::Waiting, QueueState::Held, QueueState::Failed];
    let invalid = || StoreError::Corrupt { source: "the queue has an invalid state".into() };
    all.into_iter().find(|state| state_word(*state) == word).ok_or_else(invalid)
}

/// A stored time.
pub(crate) fn time_of(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_unix_micros(micros).map_err(|source| StoreError::Corrupt { source: source.into() })
}

/// What a release does to the number of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptCount {
    Reset,
    Keep,
    Add,
}

/// The row that a released session has from then on. One that is done has none, unless its inbox got an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReleasedRow {
    pub(crate) is_done: bool,
    pub(crate) state: QueueState,
    /// Time at which a waiting session becomes ready.
    pub(crate) until: Option<Timestamp>,
    /// The same from now on, by the clock of the store.
    pub(crate) after: Option<Duration>,
    pub(crate) attempts: AttemptCount,
    pub(crate) reason: Option<String>,
}

impl ReleasedRow {
    pub(crate) fn new(rest: QueueRest) -> Self {
        let row = |state, attempts| Self {
            is_done: false,
            state,
            until: None,
            after: None,
            attempts,
            reason: None,
        };
        match rest {
            QueueRest::Done => Self { is_done: true, ..row(QueueState::Ready, AttemptCount::Reset) },
            QueueRest::Wait { until } => Self { until, ..row(QueueState::Waiting, AttemptCount::Reset) },
            QueueRest::Ready => row(QueueState::Ready, AttemptCount::Keep),
            QueueRest::Later { after } => {
                Self { after: Some(after), ..row(QueueState::Waiting, AttemptCount::Keep) }
            }
            QueueRest::Retry { after, reason } => Self {
                after: Some(after),
                reason: Some(shortened(&reason)),
                ..row(QueueState::Waiting, AttemptCount::Add)
            },
            QueueRest::Fail { reason } => {
                Self { reason: Some(shortened(&reason)), ..row(QueueState::Failed, AttemptCount::Add) }
            }
        }
    }
}

/// The beginning of a text, without characters that a store cannot keep.
fn shortened(reason: &str) -> String {
    let end = reason.floor_char_boundary(MOST_REASON_BYTES);
    reason[..end].replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_words() {
        for state in [QueueState::Ready, QueueState::Waiting, QueueState::Held, QueueState::Failed] {
            assert_eq!(state_of(state_word(state)).unwrap(), state);
        }
        assert!(state_of("gone").is_err());
    }

    #[test]
    fn long_reasons_are_shortened_between_characters() {
        let long = "ä".repeat(MOST_REASON_BYTES);
        assert!(shortened(&format!("x{long}")).len() <= MOST_REASON_BYTES);
        assert_eq!(shortened("a\0b"), "a\u{fffd}b");
    }
}
