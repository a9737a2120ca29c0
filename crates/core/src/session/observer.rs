//! Observers: functions that are called after a slice has changed.
//!
//! They run after the commit, in the order of their registration, once for each commit that changed the
//! slice. They receive the items before and after, and may read the whole session. They cannot undo anything:
//! if an observer fails or panics, a warning is logged and the commit stands.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Session;
use super::error::BoxError;
use super::items::Items;
use super::reducer::Change;
use super::slice::Slice;
use super::state::SliceMap;

/// The argument of an observer.
#[derive(Debug)]
pub struct Observation<'a, S> {
    /// The items before the commit.
    pub old: Items<S>,
    /// The items after the commit.
    pub new: Items<S>,
    /// The session after the commit.
    pub session: &'a Session,
}

type Observe = dyn Fn(&Session, &SliceMap) -> Result<(), BoxError> + Send + Sync;

/// An observer of any slice.
pub(super) struct Observer {
    slice: &'static str,
    observe: Box<Observe>,
}

impl Observer {
    pub(super) fn new<S: Slice>(
        function: impl Fn(&Observation<'_, S>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        let observe = move |session: &Session, before: &SliceMap| -> Result<(), BoxError> {
            function(&Observation { old: before.items()?, new: session.all()?, session })
        };
        Self { slice: S::NAME, observe: Box::new(observe) }
    }
}

impl Session {
    pub(super) fn notify(&self, before: &SliceMap, changes: &[Change]) {
        if self.observers.is_empty() {
            return;
        }
        let changed: BTreeSet<&str> = changes.iter().map(Change::slice).collect();
        for observer in self.observers.iter().filter(|observer| changed.contains(observer.slice)) {
            let slice = observer.slice;
            match catch_unwind(AssertUnwindSafe(|| (observer.observe)(self, before))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(slice, %error, "an observer failed; the commit stands"),
                Err(_) => tracing::warn!(slice, "an observer panicked; the commit stands"),
            }
        }
    }
}
