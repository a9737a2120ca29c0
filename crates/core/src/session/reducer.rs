//! Reducers: pure functions from a slice and an event to a change of the slice.
//!
//! A reducer receives the current slice, the event, and a [`ReducerContext`], and returns a [`SliceOp`]. It
//! must not have side effects: if calls run concurrently, it runs again over the state at commit. A reducer
//! that fails makes the whole dispatch fail; nothing is dropped silently.

use std::any::{Any, type_name};
use std::sync::{Arc, OnceLock};

use super::Session;
use super::error::{BoxError, SessionError};
use super::items::Items;
use super::op::{self, SliceOp, StoredChange};
use super::slice::{Event, Slice, SlicePolicy};
use super::state::SliceMap;
use crate::extra::Extra;
use crate::time::Timestamp;

/// Result of a reducer.
pub type ReducerResult<S> = Result<SliceOp<S>, BoxError>;

/// Inputs of a reducer other than its slice and the event.
#[derive(Debug)]
pub struct ReducerContext<'a> {
    /// The session before this reducer, for reading other slices.
    pub session: &'a Session,
    /// Time of the dispatch. It stays the same when the event is reduced again.
    pub now: Timestamp,
}

/// Appends the event to its own slice, duplicates included.
pub fn append_all<S: Slice>(_: &Items<S>, event: &Arc<S>, _: &ReducerContext<'_>) -> ReducerResult<S> {
    Ok(SliceOp::Append(event.clone()))
}

/// Replaces all items of the event's own slice by the event.
pub fn replace_latest<S: Slice>(_: &Items<S>, event: &Arc<S>, _: &ReducerContext<'_>) -> ReducerResult<S> {
    Ok(SliceOp::Replace(vec![event.clone()]))
}

/// Removes every item with the event's key and appends the event at the end.
pub fn upsert_by<S: Slice, K: PartialEq>(
    key: impl Fn(&S) -> K + Send + Sync + 'static,
) -> impl Fn(&Items<S>, &Arc<S>, &ReducerContext<'_>) -> ReducerResult<S> + Send + Sync + 'static {
    move |items, event, _| {
        let wanted = key(event);
        let with_key = items.iter().enumerate().filter(|(_, item)| key(item) == wanted);
        let remove: Vec<usize> = with_key.map(|(position, _)| position).collect();
        Ok(if remove.is_empty() {
            SliceOp::Append(event.clone())
        } else {
            SliceOp::Patch { remove, append: vec![event.clone()] }
        })
    }
}

/// Does the same as [`upsert_by`]: only the latest item of each key is kept.
pub fn replace_latest_by<S: Slice, K: PartialEq>(
    key: impl Fn(&S) -> K + Send + Sync + 'static,
) -> impl Fn(&Items<S>, &Arc<S>, &ReducerContext<'_>) -> ReducerResult<S> + Send + Sync + 'static {
    upsert_by(key)
}

/// An event of any type.
pub(crate) type AnyEvent = Arc<dyn Any + Send + Sync>;

type Reduce = dyn Fn(&Session, &AnyEvent, Timestamp) -> Result<Option<Change>, SessionError> + Send + Sync;

/// A reducer of any event for any slice.
pub(crate) struct Reducer {
    policy: fn(&Session) -> SlicePolicy,
    reduce: Box<Reduce>,
}

impl Reducer {
    /// Makes a function a reducer of `E` for `S`.
    pub(crate) fn new<S: Slice, E: Event>(
        reducer: impl Fn(&Items<S>, &Arc<E>, &ReducerContext<'_>) -> ReducerResult<S> + Send + Sync + 'static,
    ) -> Self {
        Self::of::<S, E>(move |session, event, now| {
            let items = session.all::<S>()?;
            reducer(&items, event, &ReducerContext { session, now }).map_err(|source| SessionError::Reducer {
                slice: S::NAME.to_owned(),
                event: type_name::<E>(),
                source,
            })
        })
    }

    /// [`append_all`] as the default reducer of a slice. It does not read the items, so they need not be decoded.
    pub(crate) fn append<S: Slice>() -> Self {
        Self::of::<S, S>(|_, event, _| Ok(SliceOp::Append(event.clone())))
    }

    fn of<S: Slice, E: Event>(
        op: impl Fn(&Session, &Arc<E>, Timestamp) -> Result<SliceOp<S>, SessionError> + Send + Sync + 'static,
    ) -> Self {
        let reduce = move |session: &Session, event: &AnyEvent, now| -> Result<_, SessionError> {
            let event = event.clone().downcast::<E>().expect("invariant: reducers are kept by event type");
            let op = op(session, &event, now)?;
            Ok((!op.is_keep()).then(|| Change::new(session.policy_of::<S>(), op)))
        };
        Self { policy: Session::policy_of::<S>, reduce: Box::new(reduce) }
    }

    /// The policy of the slice that the reducer changes.
    pub(crate) fn policy(&self, session: &Session) -> SlicePolicy {
        (self.policy)(session)
    }

    /// Computes the change for the event; none if nothing changes.
    pub(crate) fn reduce(
        &self,
        session: &Session,
        event: &AnyEvent,
        now: Timestamp,
    ) -> Result<Option<Change>, SessionError> {
        (self.reduce)(session, event, now)
    }
}

/// A change of one slice, ready to be journaled.
#[derive(Clone)]
pub struct Change {
    slice: &'static str,
    policy: SlicePolicy,
    /// Whether existing items stay as they are.
    pub(super) only_adds: bool,
    /// Whether the result does not depend on existing items.
    pub(super) is_absolute: bool,
    erased: Arc<dyn ErasedChange>,
}

trait ErasedChange: Send + Sync {
    fn apply(&self, session: &Session, state: &mut SliceMap) -> Result<(), SessionError>;
    fn type_slice(&self, state: &mut SliceMap) -> Result<(), SessionError>;
    fn encode(&self) -> Result<Arc<StoredChange>, SessionError>;
    fn check(&self) -> Result<(), SessionError>;
    fn op(&self) -> &dyn Any;
}

struct TypedChange<S> {
    policy: SlicePolicy,
    op: SliceOp<S>,
    /// The change as plain data, encoded on first access.
    encoded: OnceLock<Arc<StoredChange>>,
}

impl<S: Slice> ErasedChange for TypedChange<S> {
    fn apply(&self, session: &Session, state: &mut SliceMap) -> Result<(), SessionError> {
        // The base of a change to a cache is its computed content.
        if self.policy == SlicePolicy::Cache && !self.op.is_absolute() {
            state.set(self.policy, session.all::<S>()?);
        }
        state.apply(self.policy, &self.op)?;
        session.forget(S::NAME);
        Ok(())
    }

    fn type_slice(&self, state: &mut SliceMap) -> Result<(), SessionError> {
        state.type_slice::<S>(self.policy)
    }

    fn encode(&self) -> Result<Arc<StoredChange>, SessionError> {
        if let Some(encoded) = self.encoded.get() {
            return Ok(encoded.clone());
        }
        let change = StoredChange {
            slice: S::NAME.to_owned(),
            version: S::VERSION,
            policy: self.policy,
            op: self.op.try_map(|item| op::encode_item(&**item))?,
            extra: Extra::default(),
        };
        Ok(self.encoded.get_or_init(|| Arc::new(change)).clone())
    }

    fn check(&self) -> Result<(), SessionError> {
        if self.policy == SlicePolicy::Cache || self.encoded.get().is_some() {
            return Ok(());
        }
        self.encode()?.op.check_readable::<S>()
    }

    fn op(&self) -> &dyn Any {
        &self.op
    }
}

impl Change {
    pub(crate) fn new<S: Slice>(policy: SlicePolicy, op: SliceOp<S>) -> Self {
        let (only_adds, is_absolute) = (op.only_adds(), op.is_absolute());
        let erased = Arc::new(TypedChange { policy, op, encoded: OnceLock::new() });
        Self { slice: S::NAME, policy, only_adds, is_absolute, erased }
    }

    /// The stored name of the slice that changed.
    pub fn slice(&self) -> &'static str {
        self.slice
    }

    /// Policy of the slice.
    pub fn policy(&self) -> SlicePolicy {
        self.policy
    }

    /// Returns the change, if the slice is that of `S`.
    pub fn op<S: Slice>(&self) -> Option<&SliceOp<S>> {
        self.erased.op().downcast_ref()
    }

    /// Encodes the change as plain data. It is encoded at most once.
    pub fn encode(&self) -> Result<Arc<StoredChange>, SessionError> {
        self.erased.encode()
    }

    /// Refuses a change that could not be journaled, or not be read from the journal. Caches are not
    /// journaled.
    pub(super) fn check(&self) -> Result<(), SessionError> {
        self.erased.check()
    }

    /// Applies the change to `state`, which is that of `session`.
    pub(super) fn apply(&self, session: &Session, state: &mut SliceMap) -> Result<(), SessionError> {
        self.erased.apply(session, state)
    }

    /// Decodes the items of the changed slice to their type.
    pub(crate) fn type_slice(&self, state: &mut SliceMap) -> Result<(), SessionError> {
        self.erased.type_slice(state)
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Change")
            .field("slice", &self.slice())
            .field("policy", &self.policy())
            .finish_non_exhaustive()
    }
}
