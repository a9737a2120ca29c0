//! Changes of a session.
//!
//! Every change is atomic: if any reducer of a dispatch fails or panics, the session is unchanged. Observers
//! are notified after the change. The methods return the changes, ready to be journaled.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::Session;
use super::error::{BoxError, SessionError};
use super::items::Items;
use super::observer::{Observation, Observer};
use super::op::SliceOp;
use super::reducer::{AnyEvent, Change, Reducer, ReducerContext, ReducerResult};
use super::slice::{Event, Slice, SlicePolicy};
use super::state::SliceMap;
use crate::time::Timestamp;

impl Session {
    /// Registers a reducer of `E` for the slice of `S`. Several reducers of one event run in the order of
    /// registration, each on the result of those before it.
    pub fn register<S: Slice, E: Event>(
        &mut self,
        reducer: impl Fn(&Items<S>, &Arc<E>, &ReducerContext<'_>) -> ReducerResult<S> + Send + Sync + 'static,
    ) -> &mut Self {
        let registry = Arc::make_mut(&mut self.registry);
        registry.add_slice::<S>();
        registry.add_reducer::<E>(Arc::new(Reducer::new::<S, E>(reducer)));
        self
    }

    /// Registers the type of a slice, so that its stored items are decoded and checked when a snapshot is
    /// restored.
    pub fn register_slice<S: Slice>(&mut self) -> &mut Self {
        Arc::make_mut(&mut self.registry).add_slice::<S>();
        self
    }

    /// Sets the policy of a slice for this session. It also applies to existing items.
    pub fn set_policy<S: Slice>(&mut self, policy: SlicePolicy) -> &mut Self {
        Arc::make_mut(&mut self.registry).set_policy::<S>(policy);
        if self.state.cell(S::NAME).is_some_and(|cell| cell.policy() != policy) {
            let mut state = self.state.clone();
            state.set_policy(S::NAME, policy);
            self.set_state(state);
        }
        self
    }

    /// Makes a slice a Cache and registers the function that computes its items. It runs on the next access
    /// if there are none: the first one, after a rollback, and after the slice was cleared.
    pub fn register_cache<S: Slice>(
        &mut self,
        compute: impl Fn(&Session) -> Result<Vec<S>, BoxError> + Send + Sync + 'static,
    ) -> &mut Self {
        let registry = Arc::make_mut(&mut self.registry);
        registry.add_slice::<S>();
        registry.add_cache::<S>(Arc::new(compute));
        self.forget(S::NAME);
        self.set_policy::<S>(SlicePolicy::Cache)
    }

    /// Registers a function that is called after each commit that changed the slice of `S`.
    pub fn observe<S: Slice>(
        &mut self,
        observer: impl Fn(&Observation<'_, S>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> &mut Self {
        self.observers.push(Observer::new::<S>(observer));
        self
    }

    /// Passes an event to all of its reducers.
    pub fn dispatch<E: Event>(&mut self, event: E) -> Result<Vec<Change>, SessionError> {
        let reducers = self.reducers::<E>()?;
        let now = self.ids.clock().now();
        self.commit_changes(|session| session.reduce(&reducers, &(Arc::new(event) as AnyEvent), now))
    }

    /// Dispatches an item to the reducers of its own type. Without any, it is appended to its slice.
    pub fn append<S: Slice>(&mut self, item: S) -> Result<Vec<Change>, SessionError> {
        self.dispatch(item)
    }

    /// Replaces all items of a slice, bypassing its reducers.
    pub fn seed<S: Slice>(
        &mut self,
        items: impl IntoIterator<Item = S>,
    ) -> Result<Vec<Change>, SessionError> {
        self.apply_op(SliceOp::replace(items))
    }

    /// Removes all items of a slice, bypassing its reducers.
    pub fn clear<S: Slice>(&mut self) -> Result<Vec<Change>, SessionError> {
        self.apply_op::<S>(SliceOp::Clear)
    }

    /// Removes the items of a slice that fulfil a condition, bypassing its reducers.
    pub fn clear_where<S: Slice>(
        &mut self,
        condition: impl FnMut(&S) -> bool,
    ) -> Result<Vec<Change>, SessionError> {
        let op = self.removal(condition)?;
        self.apply_op::<S>(op)
    }

    /// Empties every slice regardless of its policy. Registrations stay.
    pub fn reset(&mut self) {
        self.forget_computed();
        self.set_state(SliceMap::default());
    }

    pub(super) fn removal<S: Slice>(
        &self,
        mut condition: impl FnMut(&S) -> bool,
    ) -> Result<SliceOp<S>, SessionError> {
        let items = self.all::<S>()?;
        let matching = items.iter().enumerate().filter(|(_, item)| condition(item));
        let remove = matching.map(|(position, _)| position).collect();
        Ok(SliceOp::Patch { remove, append: Vec::new() })
    }

    pub(super) fn apply_op<S: Slice>(&mut self, op: SliceOp<S>) -> Result<Vec<Change>, SessionError> {
        if op.is_keep() {
            return Ok(Vec::new());
        }
        let change = Change::new(self.policy_of::<S>(), op);
        self.commit_changes(|session| session.make(change).map(|change| vec![change]))
    }

    pub(super) fn reducers<E: Event>(&self) -> Result<Vec<Arc<Reducer>>, SessionError> {
        let reducers = self.registry.reducers::<E>();
        if reducers.is_empty() {
            return Err(SessionError::NoReducer { event: type_name::<E>() });
        }
        Ok(reducers)
    }

    /// Runs reducers one after the other. If one fails, the session is left half changed, and the caller
    /// restores it.
    pub(super) fn reduce(
        &mut self,
        reducers: &[Arc<Reducer>],
        event: &AnyEvent,
        now: Timestamp,
    ) -> Result<Vec<Change>, SessionError> {
        let mut changes = Vec::new();
        for reducer in reducers {
            if let Some(change) = reducer.reduce(self, event, now)? {
                changes.push(self.make(change)?);
            }
        }
        Ok(changes)
    }

    /// Applies one change. On failure nothing is changed.
    pub(super) fn make(&mut self, change: Change) -> Result<Change, SessionError> {
        let mut state = self.state.clone();
        change.apply(self, &mut state)?;
        self.set_state(state);
        Ok(change)
    }

    /// Applies changes atomically: all of them, or none if any of them fails or panics.
    pub(super) fn all_or_nothing<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let (before, generation) = (self.state.clone(), self.generation);
        let made = catch_unwind(AssertUnwindSafe(|| make(self)));
        if !matches!(made, Ok(Ok(_))) {
            self.state = before;
            self.generation = generation;
        }
        made.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Applies changes atomically, and then notifies observers.
    fn commit_changes(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<Vec<Change>, SessionError>,
    ) -> Result<Vec<Change>, SessionError> {
        let before = self.state.clone();
        let changes = self.all_or_nothing(make)?;
        self.notify(&before, &changes);
        Ok(changes)
    }
}
