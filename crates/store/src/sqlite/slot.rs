//! A slot in which the submitter of a piece of work waits for its outcome.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use backstitch_core::ports::StoreError;

/// Delivers the outcome of a piece of work, or the request that its owner leads the next commit.
pub(super) struct Slot<T> {
    state: Mutex<SlotState<T>>,
}

enum SlotState<T> {
    Waiting(Option<Waker>),
    /// There is no leader, so the owner of this slot must lead.
    Lead,
    Done(Result<T, StoreError>),
    /// The outcome was taken.
    Over,
}

/// Message that a poll receives.
pub(super) enum SlotOutcome<T> {
    Lead,
    Done(Result<T, StoreError>),
}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(SlotState::Waiting(None)) }
    }

    fn state(&self) -> MutexGuard<'_, SlotState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, new: SlotState<T>) {
        let old = std::mem::replace(&mut *self.state(), new);
        if let SlotState::Waiting(Some(waker)) = old {
            waker.wake();
        }
    }

    /// Makes the owner the leader. The caller must wake the returned waker.
    #[must_use]
    pub(super) fn lead(&self) -> Option<Waker> {
        match std::mem::replace(&mut *self.state(), SlotState::Lead) {
            SlotState::Waiting(waker) => waker,
            SlotState::Lead | SlotState::Done(_) | SlotState::Over => None,
        }
    }

    /// Returns whether the owner was made leader and has not started yet.
    pub(super) fn is_leading(&self) -> bool {
        matches!(*self.state(), SlotState::Lead)
    }

    /// Stores the outcome and wakes the owner.
    pub(super) fn settle(&self, outcome: Result<T, StoreError>) {
        self.put(SlotState::Done(outcome));
    }

    /// Takes the message, or registers a wake-up for it.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<SlotOutcome<T>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, SlotState::Over) {
            SlotState::Done(outcome) => Poll::Ready(SlotOutcome::Done(outcome)),
            SlotState::Lead => Poll::Ready(SlotOutcome::Lead),
            SlotState::Waiting(_) | SlotState::Over => {
                *state = SlotState::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}
