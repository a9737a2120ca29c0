//! The slices of a session as one value.
//!
//! [`SliceMap`] is a persistent map from stored name to [`Cell`]; cloning it is a snapshot, dropping a clone is a rollback.

use std::sync::Arc;

use super::cell::Cell;
use super::error::SessionError;
use super::items::Items;
use super::op::{SliceOp, StoredChange};
use super::slice::{Slice, SlicePolicy};
use crate::extra::Extra;

/// All slices of a session.
#[derive(Clone, Default)]
pub(crate) struct SliceMap {
    cells: imbl::OrdMap<Arc<str>, Arc<Cell>>,
}

impl SliceMap {
    pub(crate) fn cell(&self, name: &str) -> Option<&Arc<Cell>> {
        self.cells.get(name)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Cell>)> {
        self.cells.iter()
    }

    pub(crate) fn put(&mut self, name: Arc<str>, cell: Arc<Cell>) {
        self.cells.insert(name, cell);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.cells.remove(name);
    }

    /// Returns the items of `S`'s slice; none if the slice does not exist.
    pub(crate) fn items<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        self.cell(S::NAME).map_or_else(|| Ok(Items::default()), |cell| cell.items::<S>())
    }

    /// Returns the number of items of `S`'s slice, without decoding any.
    pub(crate) fn length<S: Slice>(&self) -> usize {
        self.cell(S::NAME).map_or(0, |cell| cell.len())
    }

    /// Returns the items of `S`'s slice at those of these positions that exist.
    pub(crate) fn range<S: Slice>(
        &self,
        positions: std::ops::Range<usize>,
    ) -> Result<Vec<Arc<S>>, SessionError> {
        self.cell(S::NAME).map_or_else(|| Ok(Vec::new()), |cell| cell.range::<S>(positions))
    }

    /// Replaces the content of `S`'s slice.
    pub(crate) fn set<S: Slice>(&mut self, policy: SlicePolicy, items: Items<S>) {
        self.put(S::NAME.into(), Arc::new(Cell::typed(policy, items)));
    }

    /// Changes the policy of an existing slice.
    pub(crate) fn set_policy(&mut self, name: &str, policy: SlicePolicy) {
        if let Some(cell) = self.cells.get_mut(name) {
            Arc::make_mut(cell).set_policy(policy);
        }
    }

    /// Decodes the items of `S`'s slice, so that the cost of a later change does not depend on its length,
    /// even for changes by plain data.
    pub(crate) fn type_slice<S: Slice>(&mut self, policy: SlicePolicy) -> Result<(), SessionError> {
        match self.cells.get_mut(S::NAME) {
            Some(cell) => *cell = cell.of_type::<S>()?,
            None => self.set(policy, Items::<S>::default()),
        }
        Ok(())
    }

    /// Returns whether both are identical in memory.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.cells.ptr_eq(&other.cells)
    }

    /// Changes `S`'s slice. On failure nothing is changed.
    pub(crate) fn apply<S: Slice>(
        &mut self,
        policy: SlicePolicy,
        op: &SliceOp<S>,
    ) -> Result<(), SessionError> {
        if let Some(cell) = self.cells.get_mut(S::NAME) {
            return cell.apply(policy, op);
        }
        let mut items = Items::default();
        op.apply(S::NAME, policy, &mut items.items)?;
        self.set(policy, items);
        Ok(())
    }

    /// Changes a slice by plain data, whether its type is known or not. On failure nothing is changed.
    pub(crate) fn apply_stored(&mut self, change: &StoredChange) -> Result<(), SessionError> {
        if let Some(cell) = self.cells.get_mut(change.slice.as_str()) {
            return cell.apply_stored(change);
        }
        let mut cell = Arc::new(Cell::plain(change.policy, [], Extra::default()));
        cell.apply_stored(change)?;
        self.put(change.slice.as_str().into(), cell);
        Ok(())
    }
}

impl std::fmt::Debug for SliceMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.cells.iter()).finish()
    }
}
