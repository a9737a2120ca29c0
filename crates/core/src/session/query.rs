//! Reading a session.
//!
//! Reads give values that nothing changes later. They fail only where stored data does not parse as the type asked for, or
//! a cache could not be computed.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use super::Session;
use super::error::SessionError;
use super::items::Items;
use super::slice::{Slice, SlicePolicy};

/// What caches were computed to. An entry without a value is being computed.
pub(super) type Memo = BTreeMap<&'static str, Option<Box<dyn Any + Send>>>;

impl Session {
    /// The last item of a slice.
    pub fn latest<S: Slice>(&self) -> Result<Option<Arc<S>>, SessionError> {
        self.all::<S>().map(|items| items.latest().cloned())
    }

    /// All items of a slice. A Cache slice that holds none is computed, where a function for that is registered.
    pub fn all<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        if self.state.cell(S::NAME).is_none() && self.registry.cache::<S>().is_some() {
            return self.computed();
        }
        self.state.items()
    }

    /// The items of a slice that fulfil a condition.
    pub fn filter<S: Slice>(&self, condition: impl FnMut(&S) -> bool) -> Result<Vec<Arc<S>>, SessionError> {
        self.all::<S>().map(|items| items.filter(condition))
    }

    /// The policy of a slice: what was set for this session, else what its type says.
    pub fn policy_of<S: Slice>(&self) -> SlicePolicy {
        self.registry.policy::<S>()
    }

    /// The stored names of all slices that hold or held something, with their policies, those of unknown types included.
    pub fn slice_names(&self) -> impl Iterator<Item = (&str, SlicePolicy)> {
        self.state.cells().map(|(name, cell)| (&**name, cell.policy()))
    }

    fn computed<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        let Some(compute) = self.registry.cache::<S>() else { return Ok(Items::default()) };
        let memo = || self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        match memo().get(S::NAME) {
            Some(Some(items)) => return Ok(items.downcast_ref::<Items<S>>().cloned().unwrap_or_default()),
            // The function reads the slice that it computes: there is nothing there yet.
            Some(None) => return Ok(Items::default()),
            None => {}
        }
        memo().insert(S::NAME, None);
        match compute(self) {
            Ok(items) => {
                let items: Items<S> = items.into_iter().collect();
                memo().insert(S::NAME, Some(Box::new(items.clone())));
                Ok(items)
            }
            Err(source) => {
                memo().remove(S::NAME);
                Err(SessionError::Cache { slice: S::NAME.to_owned(), source })
            }
        }
    }

    pub(super) fn forget_computed(&self) {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
