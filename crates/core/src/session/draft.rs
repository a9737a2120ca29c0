//! Drafts: private copies of the state that calls work on until they succeed or fail.
//!
//! A [`Draft`] starts from the committed state and collects changes. Dropping it discards them. A commit has
//! two steps, so that the changes can be made durable in between: [`Session::prepare`] computes the new
//! state, and [`Session::apply`] installs it. If other drafts were committed concurrently, the draft's events
//! are reduced again over the current state. Only a slice that the draft overwrites (`seed`, `clear`) *and*
//! that now holds other items is a conflict.
//!
//! Items are encoded when they are dispatched to a draft, so that a change that cannot be stored fails there.
//! Events that are reduced again are encoded at the commit. The encoding is reused for the journal.
//!
//! [`Session::prepare_logs`] keeps the logs of a call that failed.

use std::ops::Deref;
use std::sync::Arc;

use super::Session;
use super::cell::Cell;
use super::error::SessionError;
use super::op::SliceOp;
use super::reducer::{AnyEvent, Change, Reducer};
use super::slice::{Event, Slice, SlicePolicy};
use super::state::SliceMap;
use crate::time::Timestamp;

/// A private copy of a session's state, and the changes made to it. Reads go to the copy.
#[derive(Debug)]
pub struct Draft {
    base: SliceMap,
    base_generation: u64,
    session: Session,
    entries: Vec<Entry>,
}

/// A change of a draft that can be replayed on another state.
enum Entry {
    Event {
        event: AnyEvent,
        reducers: Vec<Arc<Reducer>>,
        now: Timestamp,
        changes: Vec<Change>,
    },
    Overwrite {
        change: Change,
        before: Option<Arc<Cell>>,
    },
    /// A removal that found no items. It is valid only while the slice is unchanged.
    FoundNothing {
        slice: &'static str,
        policy: SlicePolicy,
        before: Option<Arc<Cell>>,
    },
}

/// The changes of a draft that a replay keeps.
#[derive(Clone, Copy, PartialEq)]
enum ReplayScope {
    All,
    Logs,
}

/// The state of a session after a commit, computed in advance.
#[derive(Debug)]
pub struct PreparedCommit {
    generation: u64,
    after: SliceMap,
    changes: Vec<Change>,
}

impl PreparedCommit {
    /// The changes, in order. They have to be journaled before [`Session::apply`].
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// Applied changes that observers have not been notified of.
#[derive(Debug)]
pub struct PendingNotifications {
    before: SliceMap,
    changes: Vec<Change>,
}

impl PendingNotifications {
    /// Merges both, so that observers are notified once, with the items before the first change and after the
    /// last.
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        self.changes.extend(later.changes);
        self
    }
}

impl Session {
    /// Opens a draft of the current state.
    pub fn draft(&self) -> Draft {
        Draft {
            base: self.state.clone(),
            base_generation: self.generation,
            session: self.clone(),
            entries: Vec::new(),
        }
    }

    /// Prepares a commit without changes, as a base for [`prepare_more`](Self::prepare_more).
    pub fn prepare_nothing(&self) -> PreparedCommit {
        PreparedCommit { generation: self.generation, after: self.state.clone(), changes: Vec::new() }
    }

    /// Computes the state after a commit of the draft. The session is not changed.
    pub fn prepare(&self, draft: &Draft) -> Result<PreparedCommit, SessionError> {
        if draft.base_generation == self.generation {
            let changes = draft.changes().cloned().collect();
            return Ok(PreparedCommit {
                generation: self.generation,
                after: draft.session.state.clone(),
                changes,
            });
        }
        self.replay(draft, ReplayScope::All)
    }

    /// Computes the state after a commit of only the draft's changes to Log slices, which outlive a failed
    /// call. Log entries are kept as they are. They are reduced again over the current state only if the call
    /// removed entries from a log that others changed concurrently.
    pub fn prepare_logs(&self, draft: &Draft) -> Result<PreparedCommit, SessionError> {
        self.replay(draft, ReplayScope::Logs)
    }

    /// Dispatches one more event on top of a prepared commit. If a reducer fails, the prepared commit is
    /// unchanged.
    pub fn prepare_more<E: Event>(
        &self,
        prepared: &mut PreparedCommit,
        event: E,
    ) -> Result<(), SessionError> {
        let mut session = self.clone();
        session.set_state(prepared.after.clone());
        let changes = session.dispatch(event)?;
        prepared.after = session.state;
        prepared.changes.extend(changes);
        Ok(())
    }

    /// Installs the prepared state and notifies observers.
    pub fn apply(&mut self, prepared: PreparedCommit) -> Result<Vec<Change>, SessionError> {
        self.check_prepared(&prepared)?;
        let PreparedCommit { after, changes, .. } = prepared;
        if changes.is_empty() {
            return Ok(changes);
        }
        let unobserved = self.replace_state(after, changes);
        self.notify_observers(&unobserved);
        Ok(unobserved.changes)
    }

    /// Refuses a commit that was prepared for an earlier state of the session.
    pub(crate) fn check_prepared(&self, prepared: &PreparedCommit) -> Result<(), SessionError> {
        if prepared.generation == self.generation { Ok(()) } else { Err(SessionError::StalePreparation) }
    }

    /// Installs the state that the journal holds once the prepared changes are recorded. Only caches are
    /// taken from the prepared commit, since no journal holds them. Observers are not notified yet, because
    /// the records may not be durable.
    pub(crate) fn follow(&mut self, journaled: &SliceMap, prepared: PreparedCommit) -> PendingNotifications {
        let mut state = self.with_policies(journaled);
        for (name, cell) in prepared.after.cells().filter(|(_, cell)| cell.policy() == SlicePolicy::Cache) {
            state.put(name.clone(), cell.clone());
        }
        self.replace_state(state, prepared.changes)
    }

    fn replace_state(&mut self, state: SliceMap, changes: Vec<Change>) -> PendingNotifications {
        let before = std::mem::take(&mut self.state);
        self.set_state(state);
        changes.iter().for_each(|change| self.forget(change.slice()));
        PendingNotifications { before, changes }
    }

    /// Notifies observers of applied changes.
    pub fn notify_observers(&self, unobserved: &PendingNotifications) {
        self.notify(&unobserved.before, &unobserved.changes);
    }

    /// Prepares and applies in one step, for sessions that are not journaled.
    pub fn commit(&mut self, draft: Draft) -> Result<Vec<Change>, SessionError> {
        let prepared = self.prepare(&draft)?;
        self.apply(prepared)
    }

    /// Replays the changes of the draft on the current state.
    fn replay(&self, draft: &Draft, kept: ReplayScope) -> Result<PreparedCommit, SessionError> {
        let mut session = self.clone();
        let mut made = Vec::new();
        for entry in &draft.entries {
            match entry {
                Entry::Event { event, reducers, now, .. } if kept == ReplayScope::All => {
                    made.extend(session.reduce(reducers, event, *now)?);
                }
                Entry::Event { event, reducers, now, changes } => {
                    let logged = || changes.iter().filter(|change| change.policy() == SlicePolicy::Log);
                    let mut stands = true;
                    for change in logged().filter(|change| !change.only_adds) {
                        stands &= self.holds(change.slice(), draft.base.cell(change.slice()))?;
                    }
                    if stands {
                        for change in logged() {
                            made.push(session.make(change.clone())?);
                        }
                    } else {
                        let of_logs = |reducer: &&Arc<Reducer>| reducer.policy(&session) == SlicePolicy::Log;
                        let reducers: Vec<_> = reducers.iter().filter(of_logs).cloned().collect();
                        made.extend(session.reduce(&reducers, event, *now)?);
                    }
                }
                Entry::Overwrite { change, before }
                    if kept == ReplayScope::All || change.policy() == SlicePolicy::Log =>
                {
                    let slice = change.slice();
                    // Earlier events may have been reduced to other items, and then the removed positions are
                    // not the intended ones.
                    let stands = self.holds(slice, draft.base.cell(slice))?
                        && (change.is_absolute || session.holds(slice, before.as_ref())?);
                    if !stands {
                        return Err(SessionError::Conflict { slice: slice.to_owned() });
                    }
                    made.push(session.make(change.clone())?);
                }
                Entry::FoundNothing { slice, policy, before }
                    if kept == ReplayScope::All || *policy == SlicePolicy::Log =>
                {
                    if !self.holds(slice, draft.base.cell(slice))?
                        || !session.holds(slice, before.as_ref())?
                    {
                        return Err(SessionError::Conflict { slice: (*slice).to_owned() });
                    }
                }
                Entry::Overwrite { .. } | Entry::FoundNothing { .. } => {}
            }
        }
        made.iter().try_for_each(Change::check)?;
        Ok(PreparedCommit { generation: self.generation, after: session.state, changes: made })
    }

    /// Returns whether a slice still holds the same items.
    fn holds(&self, slice: &str, then: Option<&Arc<Cell>>) -> Result<bool, SessionError> {
        let length = |cell: Option<&Arc<Cell>>| cell.map_or(0, |cell| cell.len());
        let now = self.state.cell(slice);
        match (now, then) {
            _ if length(now) != length(then) => Ok(false),
            (Some(now), Some(then)) => Ok(Arc::ptr_eq(now, then) || now.agree(then, 0..now.len())?),
            _ => Ok(true),
        }
    }
}

impl Draft {
    /// Passes an event to all of its reducers.
    pub fn dispatch<E: Event>(&mut self, event: E) -> Result<&mut Self, SessionError> {
        let reducers = self.session.reducers::<E>()?;
        let now = self.session.ids.clock().now();
        let event: AnyEvent = Arc::new(event);
        // Encoding here returns an error to the caller while it can still react to a value that cannot be
        // stored.
        let changes = self.session.all_or_nothing(|session| {
            let changes = session.reduce(&reducers, &event, now)?;
            changes.iter().try_for_each(Change::check)?;
            Ok(changes)
        })?;
        self.entries.push(Entry::Event { event, reducers, now, changes });
        Ok(self)
    }

    /// Dispatches an item to the reducers of its own type. Without any, it is appended to its slice.
    pub fn append<S: Slice>(&mut self, item: S) -> Result<&mut Self, SessionError> {
        self.dispatch(item)
    }

    /// Replaces all items of a slice, bypassing its reducers.
    pub fn seed<S: Slice>(&mut self, items: impl IntoIterator<Item = S>) -> Result<&mut Self, SessionError> {
        self.overwrite(SliceOp::replace(items))
    }

    /// Removes all items of a slice, bypassing its reducers.
    pub fn clear<S: Slice>(&mut self) -> Result<&mut Self, SessionError> {
        self.overwrite::<S>(SliceOp::Clear)
    }

    /// Removes the items of a slice that fulfil a condition, bypassing its reducers.
    pub fn clear_where<S: Slice>(
        &mut self,
        condition: impl FnMut(&S) -> bool,
    ) -> Result<&mut Self, SessionError> {
        let op = self.session.removal(condition)?;
        self.overwrite::<S>(op)
    }

    /// The changes so far, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.entries.iter().flat_map(|entry| match entry {
            Entry::Event { changes, .. } => changes.as_slice(),
            Entry::Overwrite { change, .. } => std::slice::from_ref(change),
            Entry::FoundNothing { .. } => &[],
        })
    }

    fn overwrite<S: Slice>(&mut self, op: SliceOp<S>) -> Result<&mut Self, SessionError> {
        let before = self.session.state.cell(S::NAME).cloned();
        let policy = self.session.policy_of::<S>();
        if op.is_keep() {
            self.entries.push(Entry::FoundNothing { slice: S::NAME, policy, before });
            return Ok(self);
        }
        let change = Change::new(policy, op);
        change.check()?;
        self.entries.push(Entry::Overwrite { change: self.session.make(change)?, before });
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
            Self::Overwrite { change, .. } => formatter.debug_tuple("Overwrite").field(change).finish(),
            Self::FoundNothing { slice, .. } => formatter.debug_tuple("FoundNothing").field(slice).finish(),
        }
    }
}
