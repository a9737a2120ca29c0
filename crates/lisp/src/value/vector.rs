//! Vectors, entries of maps, which are vectors of two, and queues, which are read and shortened at the front.
//!
//! A vector is built flat: one block of memory, which is compact and fast to read. In-place changes keep it
//! flat. Changing a shared vector copies it while it is small; a large one is copied into a persistent tree
//! once, and changed versions share nearly everything with that tree.

use std::sync::{Arc, OnceLock};

use super::{Shape, Value};
use crate::effort;

/// The most items of a shared vector that is copied for a change.
const SMALL: usize = 64;

/// A persistent vector.
#[derive(Clone)]
pub struct Vector(Arc<TrieNode>);

#[derive(Clone)]
struct TrieNode {
    items: Items,
    shape: Shape,
    kind: Kind,
    /// The tree of a shared flat block, built on its first change.
    tree: OnceLock<imbl::Vector<Value>>,
}

impl TrieNode {
    fn new(items: Items, shape: Shape, kind: Kind) -> Self {
        Self { items, shape, kind, tree: OnceLock::new() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Entry,
    Queue,
}

#[derive(Clone)]
enum Items {
    Flat(Vec<Value>),
    Tree(imbl::Vector<Value>),
}

impl Default for Vector {
    fn default() -> Self {
        Vector::from(Vec::new())
    }
}

impl From<Vec<Value>> for Vector {
    fn from(items: Vec<Value>) -> Self {
        let shape = Shape::of(&items);
        Self(Arc::new(TrieNode::new(Items::Flat(items), shape, Kind::Plain)))
    }
}

impl Vector {
    /// Creates an entry of a map: a vector of two for which `map-entry?`, `key` and `val` hold.
    pub fn entry(key: Value, value: Value) -> Self {
        let shape = Shape::EMPTY.with(&key).with(&value);
        Self(Arc::new(TrieNode::new(Items::Flat(vec![key, value]), shape, Kind::Entry)))
    }

    /// Returns whether this is an entry of a map.
    pub fn is_entry(&self) -> bool {
        self.0.kind == Kind::Entry
    }

    /// Creates a queue: `conj` adds at the end, `peek` and `pop` take from the front.
    pub(crate) fn queue(items: Vec<Value>) -> Self {
        let shape = Shape::of(&items);
        Self(Arc::new(TrieNode::new(Items::Flat(items), shape, Kind::Queue)))
    }

    /// Returns whether this is a queue.
    pub(crate) fn is_queue(&self) -> bool {
        self.0.kind == Kind::Queue
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match &self.0.items {
            Items::Flat(items) => items.len(),
            Items::Tree(items) => items.len(),
        }
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at an index.
    pub fn get(&self, index: usize) -> Option<&Value> {
        match &self.0.items {
            Items::Flat(items) => items.get(index),
            Items::Tree(items) => items.get(index),
        }
    }

    /// Returns the items if they are in one block.
    pub(crate) fn as_slice(&self) -> Option<&[Value]> {
        match &self.0.items {
            Items::Flat(items) => Some(items),
            Items::Tree(_) => None,
        }
    }

    /// Returns the last item.
    pub fn last(&self) -> Option<&Value> {
        self.len().checked_sub(1).and_then(|index| self.get(index))
    }

    /// Iterates over the items in order.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// Iterates over the items from an index on.
    pub fn iter_from(&self, from: usize) -> Iter<'_> {
        match &self.0.items {
            Items::Flat(items) => Iter::Flat(items.get(from..).unwrap_or(&[]).iter()),
            Items::Tree(items) if from == 0 => Iter::Tree(items.iter()),
            Items::Tree(items) => Iter::Tree(items.focus().narrow(from.min(items.len())..).into_iter()),
        }
    }

    /// Appends a value.
    pub fn push(&mut self, value: Value) {
        let node = self.change();
        node.shape = node.shape.with(&value);
        match &mut node.items {
            Items::Flat(items) => items.push(value),
            Items::Tree(items) => items.push_back(value),
        }
    }

    /// Removes the last value and returns it.
    pub fn pop(&mut self) -> Option<Value> {
        let node = self.change();
        let popped = match &mut node.items {
            Items::Flat(items) => items.pop(),
            Items::Tree(items) => items.pop_back(),
        };
        if let Some(value) = &popped {
            node.forget(value);
        }
        popped
    }

    /// Removes the first value and returns it.
    pub(crate) fn pop_front(&mut self) -> Option<Value> {
        let node = self.change();
        if let Items::Flat(items) = &mut node.items
            && items.len() > SMALL
        {
            node.items = Items::Tree(items.drain(..).collect());
        }
        let popped = match &mut node.items {
            Items::Flat(items) if items.is_empty() => None,
            Items::Flat(items) => Some(items.remove(0)),
            Items::Tree(items) => items.pop_front(),
        };
        if let Some(value) = &popped {
            node.forget(value);
        }
        popped
    }

    /// Replaces the item at an index, or appends one at the index after the last. Returns whether the index
    /// was valid.
    pub fn set(&mut self, index: usize, value: Value) -> bool {
        if index == self.len() {
            self.push(value);
            return true;
        }
        if index > self.len() {
            return false;
        }
        let node = self.change();
        node.shape = node.shape.with(&value);
        let old = match &mut node.items {
            Items::Flat(items) => std::mem::replace(&mut items[index], value),
            Items::Tree(items) => items.set(index, value),
        };
        node.forget(&old);
        true
    }

    /// Returns the most bytes that a change of one item allocates.
    pub(crate) fn change_cost(&self) -> usize {
        match &self.0.items {
            _ if Arc::strong_count(&self.0) == 1 => 64,
            Items::Flat(items) if items.len() <= SMALL => 96 + 16 * items.len(),
            // A shared flat block that is too large to copy becomes a tree once.
            Items::Flat(items) if self.0.tree.get().is_none() => 8192 + 24 * items.len(),
            // The last block and the path to it.
            _ => 2560,
        }
    }

    /// Returns the size of the vector itself in bytes, without its items.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0.items {
            Items::Flat(items) => {
                64 + 16 * items.capacity() + self.0.tree.get().map_or(0, |tree| 2048 + 20 * tree.len())
            }
            Items::Tree(items) => 2048 + 20 * items.len(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    /// Returns the address of the vector, equal for two handles to one vector.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns the items as an owned block, without copying if the vector has no other owner.
    pub(crate) fn into_items(self) -> Vec<Value> {
        match Arc::try_unwrap(self.0) {
            Ok(TrieNode { items: Items::Flat(items), .. }) => items,
            Ok(TrieNode { items: Items::Tree(items), .. }) => items.into_iter().collect(),
            Err(shared) => Vector(shared).iter().cloned().collect(),
        }
    }

    fn change(&mut self) -> &mut TrieNode {
        if Arc::strong_count(&self.0) > 1
            && let Items::Flat(items) = &self.0.items
            && items.len() > SMALL
        {
            let tree = self.0.tree.get_or_init(|| items.iter().cloned().collect()).clone();
            self.0 = Arc::new(TrieNode::new(Items::Tree(tree), self.0.shape, self.0.kind));
        }
        let node = Arc::make_mut(&mut self.0);
        node.tree.take();
        // A changed entry is a plain vector.
        if node.kind == Kind::Entry {
            node.kind = Kind::Plain;
        }
        node
    }
}

impl TrieNode {
    /// Updates the depth after `removed` has been removed.
    fn forget(&mut self, removed: &Value) {
        self.shape = self.shape.without(removed);
        if self.shape.depends_on(removed) {
            effort::touch_items(match &self.items {
                Items::Flat(items) => items.len(),
                Items::Tree(items) => items.len(),
            });
            self.shape = match &self.items {
                Items::Flat(items) => Shape::of(items),
                Items::Tree(items) => Shape::of(items),
            };
        }
    }
}

/// An iterator over the items of a vector in order.
pub enum Iter<'a> {
    #[doc(hidden)]
    Flat(std::slice::Iter<'a, Value>),
    #[doc(hidden)]
    Tree(imbl::vector::Iter<'a, Value, imbl::shared_ptr::DefaultSharedPtr>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        match self {
            Iter::Flat(items) => items.next(),
            Iter::Tree(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Flat(items) => items.size_hint(),
            Iter::Tree(items) => items.size_hint(),
        }
    }
}

impl<'a> IntoIterator for &'a Vector {
    type Item = &'a Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
