//! The order that a program gives a map or set with its own comparator, as `sorted-map-by` does.

use super::Value;

/// The keys of a map, or the items of a set, in the order of a function of the program.
///
/// The contents are stored as in any other map or set: this is only the order in which they are visited.
#[derive(Clone)]
pub(super) struct CustomOrder {
    comparator: Value,
    keys: Vec<Value>,
}

impl CustomOrder {
    pub(super) fn new(comparator: Value) -> Self {
        Self { comparator, keys: Vec::new() }
    }

    pub(super) fn comparator(&self) -> &Value {
        &self.comparator
    }

    pub(super) fn keys(&self) -> &[Value] {
        &self.keys
    }

    /// Adds a key at an index, or at the end if there is no such index.
    pub(super) fn insert(&mut self, index: usize, key: Value) {
        self.keys.insert(index.min(self.keys.len()), key);
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: &Value) {
        if let Some(index) = self.keys.iter().position(|other| other == key) {
            self.keys.remove(index);
        }
    }

    /// Returns the size in bytes, without the keys, which the collection holds too.
    pub(super) fn bytes(&self) -> usize {
        64 + 16 * self.keys.capacity()
    }
}
