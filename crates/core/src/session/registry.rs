//! Registrations of a session: reducers, policies, and functions that compute caches.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Session;
use super::cell::Cell;
use super::error::{BoxError, SessionError};
use super::reducer::Reducer;
use super::slice::{Event, Slice, SlicePolicy};

type Decode = fn(&Arc<Cell>) -> Result<Arc<Cell>, SessionError>;
/// Computes the items of a cache.
pub(super) type Compute<S> = dyn Fn(&Session) -> Result<Vec<S>, BoxError> + Send + Sync;

/// Registrations, shared by a session, its drafts and its clones.
#[derive(Clone, Default)]
pub(super) struct Registry {
    reducers: HashMap<TypeId, Vec<Arc<Reducer>>>,
    policies: BTreeMap<&'static str, SlicePolicy>,
    decoders: BTreeMap<&'static str, Decode>,
    caches: BTreeMap<&'static str, Arc<dyn Any + Send + Sync>>,
}

impl Registry {
    pub(super) fn add_slice<S: Slice>(&mut self) {
        self.decoders.insert(S::NAME, |cell| cell.decoded::<S>());
    }

    pub(super) fn add_reducer<E: Event>(&mut self, reducer: Arc<Reducer>) {
        self.reducers.entry(TypeId::of::<E>()).or_default().push(reducer);
    }

    /// Returns the reducers of an event type in the order of their registration, or its default one if there
    /// are none.
    pub(super) fn reducers<E: Event>(&self) -> Vec<Arc<Reducer>> {
        match self.reducers.get(&TypeId::of::<E>()) {
            Some(reducers) => reducers.clone(),
            None => E::default_reducer().map(|default| default.0).into_iter().collect(),
        }
    }

    pub(super) fn set_policy<S: Slice>(&mut self, policy: SlicePolicy) {
        self.policies.insert(S::NAME, policy);
    }

    pub(super) fn policy<S: Slice>(&self) -> SlicePolicy {
        self.policies.get(S::NAME).copied().unwrap_or(S::POLICY)
    }

    /// The policies that were set, by slice name.
    pub(super) fn policies(&self) -> impl Iterator<Item = (&'static str, SlicePolicy)> {
        self.policies.iter().map(|(name, policy)| (*name, *policy))
    }

    pub(super) fn add_cache<S: Slice>(&mut self, compute: Arc<Compute<S>>) {
        self.caches.insert(S::NAME, Arc::new(compute));
    }

    pub(super) fn cache<S: Slice>(&self) -> Option<&Arc<Compute<S>>> {
        self.caches.get(S::NAME)?.downcast_ref()
    }

    /// Decodes the plain data of a cell, if the type of the slice is registered.
    pub(super) fn decode(&self, name: &str, cell: &Arc<Cell>) -> Result<Arc<Cell>, SessionError> {
        self.decoders.get(name).map_or_else(|| Ok(cell.clone()), |decode| decode(cell))
    }
}
