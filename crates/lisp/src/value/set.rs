//! Sets: values in their total order, visited in that order or in the order of a comparator of the program.

use std::sync::Arc;

use imbl::OrdSet;

use super::custom::CustomOrder;
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
    order: Option<Box<CustomOrder>>,
}

#[derive(Clone)]
enum Items {
    Flat(Vec<Value>),
    Tree(OrdSet<Value>),
}

impl Default for Set {
    fn default() -> Self {
        Self(Arc::new(TrieNode { items: Items::Flat(Vec::new()), shape: Shape::EMPTY, order: None }))
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

    /// Creates an empty set that is visited in the order of a comparator.
    pub(crate) fn sorted_by(comparator: Value) -> Self {
        let mut set = Self::default();
        let node = Arc::make_mut(&mut set.0);
        node.shape = node.shape.with(&comparator);
        node.order = Some(Box::new(CustomOrder::new(comparator)));
        set
    }

    /// Creates a set from items that are in the order of the comparator, if there is one.
    pub(crate) fn ordered(comparator: Option<Value>, items: impl IntoIterator<Item = Value>) -> Self {
        let Some(comparator) = comparator else { return items.into_iter().collect() };
        let mut set = Self::sorted_by(comparator);
        for (index, item) in items.into_iter().enumerate() {
            set.insert_at(index, item);
        }
        set
    }

    /// Returns the comparator that the program gave the set.
    pub(crate) fn comparator(&self) -> Option<&Value> {
        self.0.order.as_ref().map(|order| order.comparator())
    }

    /// Returns the value at an index of the order of the comparator.
    pub(crate) fn value_at(&self, index: usize) -> Option<&Value> {
        self.0.order.as_ref()?.keys().get(index)
    }

    /// Adds a value, unless it is in the set. It is visited at this index of the order of the comparator.
    pub(crate) fn insert_at(&mut self, index: usize, value: Value) {
        let order = Arc::make_mut(&mut self.0).order.take();
        let is_new = self.insert(value.clone());
        let node = Arc::make_mut(&mut self.0);
        node.order = order;
        if let (Some(order), true) = (&mut node.order, is_new) {
            effort::touch_items(order.keys().len() / 8);
            order.insert(index, value);
        }
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
        // Only `insert_at` knows the place of a new value.
        node.order = None;
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
            if let Some(order) = &mut node.order {
                effort::touch_items(order.keys().len());
                order.remove(&removed);
            }
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
                if let Some(order) = &node.order {
                    node.shape = node.shape.with(order.comparator());
                }
            }
        }
        true
    }

    /// Iterates over the values in order: their own, or that of the comparator of the program.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0.order {
            Some(order) => Iter::Flat(order.keys().iter()),
            None => self.iter_by_value(),
        }
    }

    /// Iterates over the values in their total order.
    pub(crate) fn iter_by_value(&self) -> Iter<'_> {
        match &self.0.items {
            Items::Flat(items) => Iter::Flat(items.iter()),
            Items::Tree(items) => Iter::Tree(items.iter()),
        }
    }

    /// Returns the most bytes that a change of one value allocates.
    pub(crate) fn change_cost(&self) -> usize {
        let order = match &self.0.order {
            Some(order) if Arc::strong_count(&self.0) > 1 => order.bytes(),
            _ => 0,
        };
        order
            + match &self.0.items {
                Items::Flat(items) if items.len() < SMALL => 96 + 16 * (items.len() + 1),
                Items::Flat(_) => 2048,
                Items::Tree(_) if Arc::strong_count(&self.0) == 1 => 64,
                Items::Tree(_) => 3072,
            }
    }

    /// Returns the size of the set itself in bytes, without its values.
    pub(crate) fn bytes(&self) -> usize {
        let items = match &self.0.items {
            Items::Flat(items) => 64 + 16 * items.capacity(),
            Items::Tree(items) => 2048 + 32 * items.len(),
        };
        items + self.0.order.as_ref().map_or(0, |order| order.bytes())
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// An iterator over the values of a set.
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
