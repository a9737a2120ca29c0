//! The items of one slice, as a value.
//!
//! [`Items`] is a persistent vector of shared items: cloning it is cheap at any length, and appending to a
//! clone copies no item. Later changes of the slice do not affect it.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use super::slice::Slice;

/// An immutable sequence of the items of a slice.
///
/// ```
/// use backstitch_core::session::{Items, Slice};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Row(u32);
/// impl Slice for Row {
///     const NAME: &'static str = "row";
/// }
///
/// let rows: Items<Row> = [Row(1), Row(2), Row(3)].into_iter().collect();
/// assert_eq!(rows[1], Row(2));
/// assert_eq!(rows.latest().map(|row| row.0), Some(3));
/// assert_eq!(rows.filter(|row| row.0 > 1).len(), 2);
/// ```
pub struct Items<S> {
    pub(super) items: imbl::Vector<Arc<S>>,
}

impl<S> Items<S> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item at this position.
    pub fn get(&self, position: usize) -> Option<&Arc<S>> {
        self.items.get(position)
    }

    /// The last item.
    pub fn latest(&self) -> Option<&Arc<S>> {
        self.items.last()
    }

    /// The items from first to last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<S>> + ExactSizeIterator {
        self.items.iter()
    }

    /// Replaces the item at a position. Clones keep the one before. Nothing changes if there is no such position.
    pub fn replace(&mut self, position: usize, item: Arc<S>) {
        if let Some(place) = self.items.get_mut(position) {
            *place = item;
        }
    }

    /// Returns the items that fulfil a condition, in order.
    pub fn filter(&self, mut condition: impl FnMut(&S) -> bool) -> Vec<Arc<S>> {
        self.iter().filter(|item| condition(item)).cloned().collect()
    }
}

impl<S> Clone for Items<S> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone() }
    }
}

impl<S> Default for Items<S> {
    fn default() -> Self {
        Self { items: imbl::Vector::new() }
    }
}

impl<S: PartialEq> PartialEq for Items<S> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(one, other)| Arc::ptr_eq(one, other) || one == other)
    }
}

impl<S: fmt::Debug> fmt::Debug for Items<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<S> Index<usize> for Items<S> {
    type Output = S;

    fn index(&self, position: usize) -> &S {
        &self.items[position]
    }
}

impl<S: Slice> Extend<Arc<S>> for Items<S> {
    fn extend<I: IntoIterator<Item = Arc<S>>>(&mut self, items: I) {
        self.items.extend(items);
    }
}

impl<S: Slice, T: Into<Arc<S>>> FromIterator<T> for Items<S> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self { items: items.into_iter().map(Into::into).collect() }
    }
}
