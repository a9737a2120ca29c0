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

impl<S: PartialEq> Items<S> {
    /// Returns whether another list has the same first `count` items. Blocks of items that both share are not examined.
    pub fn begin_alike(&self, other: &Self, count: usize) -> bool {
        let (mut ours, mut theirs) = (self.items.leaves(), other.items.leaves());
        let (mut one, mut another): (&[Arc<S>], &[Arc<S>]) = (&[], &[]);
        let mut left = count;
        while left > 0 {
            if one.is_empty() {
                one = ours.next().unwrap_or_default();
            }
            if another.is_empty() {
                another = theirs.next().unwrap_or_default();
            }
            let length = left.min(one.len()).min(another.len());
            let ((first, rest), (second, remaining)) = (one.split_at(length), another.split_at(length));
            let mut pairs = first.iter().zip(second);
            let is_alike = std::ptr::eq(first, second)
                || pairs.all(|(one, other)| Arc::ptr_eq(one, other) || one == other);
            if length == 0 || !is_alike {
                return false;
            }
            (one, another, left) = (rest, remaining, left - length);
        }
        true
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
        self.len() == other.len() && self.begin_alike(other, self.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_begin_alike_however_they_were_built() {
        let items: Vec<Arc<usize>> = (0..1_000).map(Arc::new).collect();
        let whole = Items { items: items.iter().cloned().collect() };
        for end in [0, 1, 63, 64, 65, 500, 999, 1_000] {
            let mut grown = Items { items: whole.items.take(end) };
            assert!(grown.begin_alike(&whole, end) && whole.begin_alike(&grown, end));
            assert!(!grown.begin_alike(&whole, end + 1));
            items[end..].iter().for_each(|item| grown.items.push_back(item.clone()));
            assert!(grown.begin_alike(&whole, 1_000));
            // Other items that are equal, and items that are not.
            let equal = Items { items: (0..1_000).map(Arc::new).collect() };
            assert!(equal.begin_alike(&grown, end));
            grown.replace(end, Arc::new(7_777));
            assert!(grown.begin_alike(&whole, end));
            assert_eq!(grown.begin_alike(&whole, 1_000), end == 1_000);
        }
    }
}
