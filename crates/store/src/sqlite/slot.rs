//! A place where one waits for the outcome of one's own work, whoever does it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use backstitch_core::ports::StoreError;

/// Where the outcome of a piece of work is put, or the wish that its owner leads the next commit.
pub(super) struct Slot<T> {
    state: Mutex<SlotState<T>>,
}

enum SlotState<T> {
    Waiting(Option<Waker>),
    /// Nobody leads, so whoever waits here has to.
    Lead,
    Done(Result<T, StoreError>),
    /// The outcome was taken away.
    Over,
}

/// What one finds.
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

    /// Tells the owner that it leads. What it gives has to be woken, if there is one.
    #[must_use]
    pub(super) fn lead(&self) -> Option<Waker> {
        match std::mem::replace(&mut *self.state(), SlotState::Lead) {
            SlotState::Waiting(waker) => waker,
            SlotState::Lead | SlotState::Done(_) | SlotState::Over => None,
        }
    }

    /// Whether the owner was told to lead and has not begun to.
    pub(super) fn is_leading(&self) -> bool {
        matches!(*self.state(), SlotState::Lead)
    }

    /// Gives the outcome.
    pub(super) fn settle(&self, outcome: Result<T, StoreError>) {
        self.put(SlotState::Done(outcome));
    }

    /// What there is, or a wake-up once there is something.
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
