//! Reads of a session.
//!
//! Reads return immutable values. They fail only if stored data does not parse as the requested type, or if a
//! cache could not be computed.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::Session;
use super::error::SessionError;
use super::items::Items;
use super::registry::Compute;
use super::slice::{Slice, SlicePolicy};

/// Computed items of caches.
#[derive(Default)]
pub(super) struct Memo {
    computed: BTreeMap<&'static str, Box<dyn Any + Send>>,
    /// Computations in progress and their threads, the latest last.
    computing: Vec<(ThreadId, &'static str)>,
}

/// A computation in progress. Dropping the guard ends it, also during a panic.
struct ComputeGuard<'a>(&'a Session, (ThreadId, &'static str));

impl Drop for ComputeGuard<'_> {
    fn drop(&mut self) {
        self.0.memo().computing.retain(|entry| *entry != self.1);
    }
}

impl Session {
    /// Returns the last item of a slice.
    pub fn latest<S: Slice>(&self) -> Result<Option<Arc<S>>, SessionError> {
        if self.registry.cache::<S>().is_some() {
            return self.all::<S>().map(|items| items.latest().cloned());
        }
        let length = self.state.length::<S>();
        Ok(self.state.range::<S>(length.saturating_sub(1)..length)?.pop())
    }

    /// Returns all items of a slice. An empty Cache slice is computed, if a function for it is registered.
    pub fn all<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        let is_empty = || self.state.cell(S::NAME).is_none_or(|cell| cell.len() == 0);
        match self.registry.cache::<S>() {
            Some(compute) if self.policy_of::<S>() == SlicePolicy::Cache && is_empty() => {
                self.computed(&**compute)
            }
            _ => self.state.items(),
        }
    }

    /// Returns the items of a slice that fulfil a condition.
    pub fn filter<S: Slice>(&self, condition: impl FnMut(&S) -> bool) -> Result<Vec<Arc<S>>, SessionError> {
        self.all::<S>().map(|items| items.filter(condition))
    }

    /// Returns the policy of a slice: that of this session if one is set, else that of the type.
    pub fn policy_of<S: Slice>(&self) -> SlicePolicy {
        self.registry.policy::<S>()
    }

    /// Returns the stored names of all slices that hold or held items, with their policies, including those
    /// of unknown types.
    pub fn slice_names(&self) -> impl Iterator<Item = (&str, SlicePolicy)> {
        self.state.cells().map(|(name, cell)| (&**name, cell.policy()))
    }

    /// Computes a cache. A function that reads its own slice sees it empty.
    fn computed<S: Slice>(&self, compute: &Compute<S>) -> Result<Items<S>, SessionError> {
        let failed = |source| SessionError::Cache { slice: S::NAME.to_owned(), source };
        let this = thread::current().id();
        let mut memo = self.memo();
        if let Some(items) = memo.computed.get(S::NAME) {
            return Ok(items.downcast_ref::<Items<S>>().cloned().unwrap_or_default());
        }
        let mut mine = memo.computing.iter().rev().filter(|(thread, _)| *thread == this);
        match mine.position(|(_, slice)| *slice == S::NAME) {
            Some(0) => return Ok(Items::default()),
            Some(_) => return Err(failed("its computation depends on itself".into())),
            None => {}
        }
        memo.computing.push((this, S::NAME));
        drop(memo);

        let computing = ComputeGuard(self, (this, S::NAME));
        let items: Items<S> = compute(self).map_err(failed)?.into_iter().collect();
        drop(computing);
        self.memo().computed.insert(S::NAME, Box::new(items.clone()));
        Ok(items)
    }

    fn memo(&self) -> MutexGuard<'_, Memo> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the computed items of a cache.
    pub(super) fn forget(&self, slice: &str) {
        self.memo().computed.remove(slice);
    }

    /// Drops the computed items of all caches.
    pub(super) fn forget_computed(&self) {
        self.memo().computed.clear();
    }
}
