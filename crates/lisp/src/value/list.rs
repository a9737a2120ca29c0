//! Linked lists, and values prepended to another sequence.

use std::sync::Arc;

use super::reclaim::reclaim;
use super::{Shape, Value};

/// A list: empty, or a first value and a rest that may be any sequence.
#[derive(Clone, Default)]
pub struct List(Option<Arc<ListNode>>);

/// A first value and a rest.
pub struct ListNode {
    first: Value,
    rest: Value,
    /// The length, if every cell is a list cell; 0 if the rest is another kind of sequence.
    count: usize,
    shape: Shape,
}

impl List {
    /// The empty list.
    pub const EMPTY: List = List(None);

    /// Prepends a value to a sequence. The rest is `nil` or any sequence.
    pub fn cons(first: Value, rest: Value) -> List {
        let shape = Shape::EMPTY.with(&first).chained(&rest);
        Self(Some(Arc::new(ListNode { first, rest, count: 0, shape })))
    }

    /// Prepends a value to a list; the result stays a list.
    pub fn push(&self, first: Value) -> List {
        let count = match &self.0 {
            None => 1,
            Some(node) if node.count > 0 => node.count + 1,
            Some(_) => 0,
        };
        let rest = Value::List(self.clone());
        let shape = Shape::EMPTY.with(&first).chained(&rest);
        Self(Some(Arc::new(ListNode { first, rest, count, shape })))
    }

    /// Returns the first cell, unless the list is empty.
    pub fn node(&self) -> Option<&ListNode> {
        self.0.as_deref()
    }

    /// Returns whether there is no first value.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether `list?` holds: not for a value prepended to another sequence.
    pub fn is_proper(&self) -> bool {
        self.0.as_ref().is_none_or(|node| node.count > 0)
    }

    /// Returns the length, if it is known without walking another sequence.
    pub fn count(&self) -> Option<usize> {
        match &self.0 {
            None => Some(0),
            Some(node) => (node.count > 0).then_some(node.count),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.as_ref().map_or(Shape::EMPTY, |node| node.shape)
    }

    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |node| Arc::as_ptr(node).addr())
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        items.into_iter().rev().fold(List::EMPTY, |list, item| list.push(item))
    }
}

impl ListNode {
    /// The size of a cell in bytes.
    pub(crate) const BYTES: usize = 80;

    /// Returns the first value.
    pub fn first(&self) -> &Value {
        &self.first
    }

    /// Returns the rest: a list, another sequence, or `nil`.
    pub fn rest(&self) -> &Value {
        &self.rest
    }
}

impl Drop for ListNode {
    fn drop(&mut self) {
        reclaim(std::mem::take(&mut self.rest));
        reclaim(std::mem::take(&mut self.first));
    }
}
