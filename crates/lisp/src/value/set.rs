//! Sets: values in their total order.

use std::sync::Arc;

use imbl::OrdSet;

use super::{Shape, Value};
use crate::effort;

/// The most values of a set that is one block.
const SMALL: usize = 16;

/// A persistent set, ordered by its values.
#[derive(Clone)]
pub struct Set(Arc<TrieNode>);

#[derive(Clone)]
struct TrieNode {
    items: Items,
    shape: Shape,
}

#[derive(Clone)]
enum Items {
    Flat(Vec<Value>),
    Tree(OrdSet<Value>),
}

impl Default for Set {
    fn default() -> Self {
        Self(Arc::new(TrieNode { items: Items::Flat(Vec::new()), shape: Shape::EMPTY }))
    }
}

impl FromIterator<Value> for Set {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut set = Set::default();
        for item in items {
            set.insert(item);
        }
        set
    }
}

impl Set {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match &self.0.items {
            Items::Flat(items) => items.len(),
            Items::Tree(items) => items.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the equal value in the set.
    pub fn get(&self, value: &Value) -> Option<&Value> {
        match &self.0.items {
            Items::Flat(items) => items.binary_search(value).ok().map(|at| &items[at]),
            Items::Tree(items) => items.range::<_, Value>(value..=value).next(),
        }
    }

    /// Returns whether the value is in the set.
    pub fn contains(&self, value: &Value) -> bool {
        self.get(value).is_some()
    }

    /// Adds a value, unless it is in the set. Returns whether the set has changed.
    pub fn insert(&mut self, value: Value) -> bool {
        if self.contains(&value) {
            return false;
        }
        let node = Arc::make_mut(&mut self.0);
        node.shape = node.shape.with(&value);
        match &mut node.items {
            Items::Flat(items) if items.len() < SMALL => {
                let at = items.binary_search(&value).unwrap_or_else(|at| at);
                items.insert(at, value);
            }
            Items::Flat(items) => {
                let mut tree: OrdSet<Value> = items.drain(..).collect();
                tree.insert(value);
                node.items = Items::Tree(tree);
            }
            Items::Tree(items) => {
                items.insert(value);
            }
        }
        true
    }

    /// Removes a value. Returns whether it was in the set.
    pub fn remove(&mut self, value: &Value) -> bool {
        if !self.contains(value) {
            return false;
        }
        let node = Arc::make_mut(&mut self.0);
        let removed = match &mut node.items {
            Items::Flat(items) => items.binary_search(value).ok().map(|at| items.remove(at)),
            Items::Tree(items) => items.remove(value),
        };
        if let Some(removed) = removed {
            node.shape = node.shape.without(&removed);
            if node.shape.depends_on(&removed) {
                effort::touch_items(match &node.items {
                    Items::Flat(items) => items.len(),
                    Items::Tree(items) => items.len(),
                });
                node.shape = match &node.items {
                    Items::Flat(items) => Shape::of(items),
                    Items::Tree(items) => Shape::of(items),
                };
            }
        }
        true
    }

    /// Iterates over the values in order.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0.items {
            Items::Flat(items) => Iter::Flat(items.iter()),
            Items::Tree(items) => Iter::Tree(items.iter()),
        }
    }

    /// Returns the most bytes that a change of one value allocates.
    pub(crate) fn change_cost(&self) -> usize {
        match &self.0.items {
            Items::Flat(items) if items.len() < SMALL => 96 + 16 * (items.len() + 1),
            Items::Flat(_) => 2048,
            Items::Tree(_) if Arc::strong_count(&self.0) == 1 => 64,
            Items::Tree(_) => 3072,
        }
    }

    /// Returns the size of the set itself in bytes, without its values.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0.items {
            Items::Flat(items) => 64 + 16 * items.capacity(),
            Items::Tree(items) => 2048 + 32 * items.len(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// An iterator over the values of a set in order.
pub enum Iter<'a> {
    #[doc(hidden)]
    Flat(std::slice::Iter<'a, Value>),
    #[doc(hidden)]
    Tree(imbl::ordset::Iter<'a, Value, imbl::shared_ptr::DefaultSharedPtr>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        match self {
            Iter::Flat(items) => items.next(),
            Iter::Tree(items) => items.next(),
        }
    }
}

impl<'a> IntoIterator for &'a Set {
    type Item = &'a Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
