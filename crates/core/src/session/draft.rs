//! Drafts: where a call works until it is known whether it succeeds.
//!
//! A [`Draft`] starts from the committed state and collects changes. Dropping it leaves no trace. Committing it is two
//! steps, so that the changes can be made durable in between: [`Session::prepare`] computes what the session would become,
//! [`Session::apply`] makes it so. When other drafts were committed meanwhile, the draft's events are reduced again over the
//! state as it is now; only a slice that the draft overwrites (`seed`, `clear`) *and* that changed meanwhile is a conflict.

use std::ops::Deref;
use std::sync::Arc;

use super::Session;
use super::error::SessionError;
use super::op::SliceOp;
use super::reducer::{AnyEvent, Change, ErasedReducer};
use super::slice::{Event, Slice, SlicePolicy};
use super::state::State;
use crate::time::Timestamp;

/// A private copy of a session's state, and what was done to it. Reads go to the copy.
#[derive(Debug)]
pub struct Draft {
    base: State,
    base_generation: u64,
    session: Session,
    entries: Vec<Entry>,
}

/// What was done to a draft, so that it can be done again elsewhere.
enum Entry {
    Event { event: AnyEvent, reducers: Vec<Arc<dyn ErasedReducer>>, now: Timestamp, changes: Vec<Change> },
    Overwrite(Change),
}

/// What a session becomes when a draft is committed.
#[derive(Debug)]
pub struct Prepared {
    generation: u64,
    after: State,
    changes: Vec<Change>,
}

impl Prepared {
    /// What changes, in order: this is what has to be journaled before [`Session::apply`].
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

impl Session {
    /// Opens a draft of the state as it is now.
    pub fn draft(&self) -> Draft {
        Draft {
            base: self.state.clone(),
            base_generation: self.generation,
            session: self.clone(),
            entries: Vec::new(),
        }
    }

    /// Computes what the session becomes when the draft is committed. The session is not changed.
    pub fn prepare(&self, draft: &Draft) -> Result<Prepared, SessionError> {
        if draft.base_generation == self.generation {
            let changes = draft.changes().cloned().collect();
            return Ok(Prepared { generation: self.generation, after: draft.session.state.clone(), changes });
        }
        self.replay(draft, |_| true)
    }

    /// Computes what the session becomes when only the draft's changes of Log slices are kept: that is what remains of a
    /// call that failed.
    pub fn prepare_logs(&self, draft: &Draft) -> Result<Prepared, SessionError> {
        self.replay(draft, |policy| policy == SlicePolicy::Log)
    }

    /// Makes the session what was prepared, and tells observers.
    pub fn apply(&mut self, prepared: Prepared) -> Result<Vec<Change>, SessionError> {
        if prepared.generation != self.generation {
            return Err(SessionError::StalePreparation);
        }
        if prepared.changes.is_empty() {
            return Ok(Vec::new());
        }
        let before = std::mem::take(&mut self.state);
        self.set_state(prepared.after);
        self.notify(&before, &prepared.changes);
        Ok(prepared.changes)
    }

    /// Prepares and applies in one step, for sessions that are not journaled.
    pub fn commit(&mut self, draft: Draft) -> Result<Vec<Change>, SessionError> {
        let prepared = self.prepare(&draft)?;
        self.apply(prepared)
    }

    /// Does again what was done to the draft, as far as it concerns slices of the wanted policies.
    fn replay(&self, draft: &Draft, wanted: impl Fn(SlicePolicy) -> bool) -> Result<Prepared, SessionError> {
        let mut session = self.clone();
        let mut made = Vec::new();
        for entry in &draft.entries {
            match entry {
                Entry::Event { event, reducers, now, .. } => {
                    let wanted = reducers.iter().filter(|reducer| wanted(reducer.policy(&session)));
                    let wanted: Vec<_> = wanted.cloned().collect();
                    made.extend(session.reduce(&wanted, event, *now)?);
                }
                Entry::Overwrite(change) if wanted(change.policy()) => {
                    if self.changed_since(&draft.base, change.slice()) {
                        return Err(SessionError::Conflict { slice: change.slice().to_owned() });
                    }
                    made.push(session.make(change.clone())?);
                }
                Entry::Overwrite(_) => {}
            }
        }
        Ok(Prepared { generation: self.generation, after: session.state, changes: made })
    }

    fn changed_since(&self, base: &State, slice: &str) -> bool {
        match (self.state.cell(slice), base.cell(slice)) {
            (Some(now), Some(then)) => !Arc::ptr_eq(now, then),
            (None, None) => false,
            _ => true,
        }
    }
}

impl Draft {
    /// Passes an event to all its reducers.
    pub fn dispatch<E: Event>(&mut self, event: E) -> Result<&mut Self, SessionError> {
        let reducers = self.session.reducers::<E>()?;
        let now = self.session.ids.clock().now();
        let event: AnyEvent = Arc::new(event);
        let before = self.session.state.clone();
        match self.session.reduce(&reducers, &event, now) {
            Ok(changes) => self.entries.push(Entry::Event { event, reducers, now, changes }),
            Err(error) => {
                self.session.set_state(before);
                return Err(error);
            }
        }
        Ok(self)
    }

    /// Dispatches an item to the reducers of its own type; without any, it is appended to its slice.
    pub fn append<S: Slice>(&mut self, item: S) -> Result<&mut Self, SessionError> {
        self.dispatch(item)
    }

    /// Makes these the only items of a slice, past its reducers.
    pub fn seed<S: Slice>(&mut self, items: impl IntoIterator<Item = S>) -> Result<&mut Self, SessionError> {
        self.overwrite(SliceOp::replace(items))
    }

    /// Takes out all items of a slice, past its reducers.
    pub fn clear<S: Slice>(&mut self) -> Result<&mut Self, SessionError> {
        self.overwrite::<S>(SliceOp::Clear)
    }

    /// Takes out the items of a slice that fulfil a condition, past its reducers.
    pub fn clear_where<S: Slice>(
        &mut self,
        condition: impl FnMut(&S) -> bool,
    ) -> Result<&mut Self, SessionError> {
        let op = self.session.removal(condition)?;
        self.overwrite::<S>(op)
    }

    /// What was changed so far, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.entries.iter().flat_map(|entry| match entry {
            Entry::Event { changes, .. } => changes.as_slice(),
            Entry::Overwrite(change) => std::slice::from_ref(change),
        })
    }

    fn overwrite<S: Slice>(&mut self, op: SliceOp<S>) -> Result<&mut Self, SessionError> {
        if !op.is_keep() {
            let change = Change::new(self.session.policy_of::<S>(), op);
            let before = self.session.state.clone();
            match self.session.make(change) {
                Ok(change) => self.entries.push(Entry::Overwrite(change)),
                Err(error) => {
                    self.session.set_state(before);
                    return Err(error);
                }
            }
        }
        Ok(self)
    }
}

impl Deref for Draft {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event { changes, .. } => formatter.debug_tuple("Event").field(changes).finish(),
            Self::Overwrite(change) => formatter.debug_tuple("Overwrite").field(change).finish(),
        }
    }
}
