//! Maps: entries in the total order of their keys.
//!
//! A small map is one sorted block of entries; a large one is a persistent B+tree. A map made from a JSON
//! object also accepts the other spelling of a key, keyword or string, and so do the maps derived from it. A
//! map with a comparator of the program is visited in the order of that comparator.

use std::sync::Arc;

use imbl::OrdMap;

use super::custom::CustomOrder;
use super::{Shape, Value, Vector};
use crate::effort;

/// The most entries of a map that is one block.
const SMALL: usize = 16;

/// A persistent map, ordered by its keys.
#[derive(Clone)]
pub struct Map(Arc<TrieNode>);

#[derive(Clone)]
struct TrieNode {
    entries: Entries,
    shape: Shape,
    flexible: bool,
    order: Option<Box<CustomOrder>>,
}

#[derive(Clone)]
enum Entries {
    Flat(Vec<(Value, Value)>),
    Tree(OrdMap<Value, Value>),
}

impl Default for Map {
    fn default() -> Self {
        let entries = Entries::Flat(Vec::new());
        Self(Arc::new(TrieNode { entries, shape: Shape::EMPTY, flexible: false, order: None }))
    }
}

impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl Map {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same map with lookups that accept the keyword or the string, as for JSON objects.
    #[must_use]
    pub fn flexible(mut self) -> Self {
        Arc::make_mut(&mut self.0).flexible = true;
        self
    }

    /// Returns whether lookups accept the keyword or the string.
    pub fn is_flexible(&self) -> bool {
        self.0.flexible
    }

    /// Creates an empty map that is visited in the order of a comparator.
    pub(crate) fn sorted_by(comparator: Value) -> Self {
        let mut map = Self::default();
        let node = Arc::make_mut(&mut map.0);
        node.shape = node.shape.with(&comparator);
        node.order = Some(Box::new(CustomOrder::new(comparator)));
        map
    }

    /// Creates a map from entries that are in the order of the comparator, if there is one.
    pub(crate) fn ordered(
        comparator: Option<Value>,
        entries: impl IntoIterator<Item = (Value, Value)>,
    ) -> Self {
        let Some(comparator) = comparator else { return entries.into_iter().collect() };
        let mut map = Self::sorted_by(comparator);
        for (index, (key, value)) in entries.into_iter().enumerate() {
            map.insert_at(index, key, value);
        }
        map
    }

    /// Returns the comparator that the program gave the map.
    pub(crate) fn comparator(&self) -> Option<&Value> {
        self.0.order.as_ref().map(|order| order.comparator())
    }

    /// Returns the key at an index of the order of the comparator.
    pub(crate) fn key_at(&self, index: usize) -> Option<&Value> {
        self.0.order.as_ref()?.keys().get(index)
    }

    /// Sets the value of a key. A new key is visited at this index of the order of the comparator.
    pub(crate) fn insert_at(&mut self, index: usize, key: Value, value: Value) {
        let is_new = self.get_exact(&key).is_none();
        let order = Arc::make_mut(&mut self.0).order.take();
        self.insert(key.clone(), value);
        let node = Arc::make_mut(&mut self.0);
        node.order = order;
        if let (Some(order), true) = (&mut node.order, is_new) {
            effort::touch_items(order.keys().len() / 8);
            order.insert(index, key);
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match &self.0.entries {
            Entries::Flat(entries) => entries.len(),
            Entries::Tree(entries) => entries.len(),
        }
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key. A flexible map also accepts its other spelling.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        match self.get_exact(key) {
            None if self.0.flexible => self.get_exact(&other_spelling(key)?),
            found => found,
        }
    }

    /// Returns the value of exactly this key.
    pub fn get_exact(&self, key: &Value) -> Option<&Value> {
        match &self.0.entries {
            Entries::Flat(entries) => {
                // Nearly all keys are keywords, and a scan for one needs no order.
                if let Value::Keyword(wanted) = key {
                    return entries.iter().find_map(|(key, value)| match key {
                        Value::Keyword(name) if name == wanted => Some(value),
                        _ => None,
                    });
                }
                entries.binary_search_by(|(other, _)| other.cmp(key)).ok().map(|at| &entries[at].1)
            }
            Entries::Tree(entries) => entries.get(key),
        }
    }

    /// Returns the key as it is in the map, and its value.
    pub fn get_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        let exact = |key: &Value| match &self.0.entries {
            Entries::Flat(entries) => {
                let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                Some((&entries[at].0, &entries[at].1))
            }
            Entries::Tree(entries) => entries.get_key_value(key),
        };
        match exact(key) {
            None if self.0.flexible => exact(&other_spelling(key)?),
            found => found,
        }
    }

    /// Returns the value of exactly this key, to be replaced by one that is no deeper or to be set again.
    pub(crate) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        match &mut Arc::make_mut(&mut self.0).entries {
            Entries::Flat(entries) => {
                let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                Some(&mut entries[at].1)
            }
            Entries::Tree(entries) => entries.get_mut(key),
        }
    }

    /// Returns whether there is such a key.
    pub fn contains_key(&self, key: &Value) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key. An existing key is kept as it is; in a flexible map, also its spelling.
    pub fn insert(&mut self, key: Value, value: Value) {
        let key = if self.0.flexible && self.get_exact(&key).is_none() {
            other_spelling(&key).filter(|other| self.get_exact(other).is_some()).unwrap_or(key)
        } else {
            key
        };
        let node = Arc::make_mut(&mut self.0);
        if node.order.is_some() {
            // Only `insert_at` knows the place of a new key.
            node.forget_order_for(&key);
        }
        let before = node.shape;
        node.shape = node.shape.with(&key).with(&value);
        let shape_of_replaced = before.with(&value);
        let old = match &mut node.entries {
            Entries::Flat(entries) => match entries.binary_search_by(|(other, _)| other.cmp(&key)) {
                Ok(at) => Some(std::mem::replace(&mut entries[at].1, value)),
                Err(at) if entries.len() < SMALL => {
                    entries.insert(at, (key, value));
                    None
                }
                Err(_) => {
                    let mut tree: OrdMap<Value, Value> = entries.drain(..).collect();
                    tree.insert(key, value);
                    node.entries = Entries::Tree(tree);
                    None
                }
            },
            Entries::Tree(entries) => match entries.get_mut(&key) {
                Some(place) => Some(std::mem::replace(place, value)),
                None => entries.insert(key, value),
            },
        };
        if let Some(old) = old {
            // The key was there before and does not count twice.
            node.shape = shape_of_replaced;
            node.forget(&old);
        }
    }

    /// Removes the entry of a key and returns its value.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        if self.get_exact(key).is_none() {
            let other =
                other_spelling(key).filter(|other| self.0.flexible && self.get_exact(other).is_some())?;
            return self.remove(&other);
        }
        let node = Arc::make_mut(&mut self.0);
        let (key, value) = match &mut node.entries {
            Entries::Flat(entries) => {
                let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                entries.remove(at)
            }
            Entries::Tree(entries) => entries.remove_with_key(key)?,
        };
        if let Some(order) = &mut node.order {
            effort::touch_items(order.keys().len());
            order.remove(&key);
        }
        node.forget(&value);
        node.forget(&key);
        Some(value)
    }

    /// Iterates over the entries in the order of their keys, or of the comparator of the program.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0.order {
            Some(order) => Iter::Custom(order.keys().iter(), self),
            None => self.iter_by_key(),
        }
    }

    /// Iterates over the entries in the total order of their keys.
    pub(crate) fn iter_by_key(&self) -> Iter<'_> {
        match &self.0.entries {
            Entries::Flat(entries) => Iter::Flat(entries.iter()),
            Entries::Tree(entries) => Iter::Tree(entries.iter()),
        }
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the entries as vectors of two.
    pub fn entries(&self) -> Vec<Value> {
        effort::touch(self.len().saturating_mul(effort::ALLOCATED));
        self.iter().map(|(key, value)| Value::Vector(Vector::entry(key.clone(), value.clone()))).collect()
    }

    /// Returns the most bytes that a change of one entry allocates.
    pub(crate) fn change_cost(&self) -> usize {
        let order = match &self.0.order {
            Some(order) if Arc::strong_count(&self.0) > 1 => order.bytes(),
            _ => 0,
        };
        order
            + match &self.0.entries {
                Entries::Flat(entries) if Arc::strong_count(&self.0) == 1 && entries.len() < SMALL => 128,
                Entries::Flat(entries) if entries.len() < SMALL => 96 + 32 * (entries.len() + 1),
                Entries::Flat(_) => 4096,
                Entries::Tree(_) if Arc::strong_count(&self.0) == 1 => 128,
                Entries::Tree(_) => 6144,
            }
    }

    /// Returns the size of the map itself in bytes, without its keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let entries = match &self.0.entries {
            Entries::Flat(entries) => 64 + 32 * entries.capacity(),
            Entries::Tree(entries) => 2048 + 64 * entries.len(),
        };
        entries + self.0.order.as_ref().map_or(0, |order| order.bytes())
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl TrieNode {
    fn forget(&mut self, removed: &Value) {
        self.shape = self.shape.without(removed);
        if self.shape.depends_on(removed) {
            self.shape = match &self.entries {
                Entries::Flat(entries) => Shape::of(entries.iter().flat_map(|(key, value)| [key, value])),
                Entries::Tree(entries) => {
                    effort::touch_items(2 * entries.len());
                    Shape::of(entries.iter().flat_map(|(key, value)| [key, value]))
                }
            };
            if let Some(order) = &self.order {
                self.shape = self.shape.with(order.comparator());
            }
        }
    }

    /// Makes this a map in the order of its keys, unless it holds the key.
    fn forget_order_for(&mut self, key: &Value) {
        let is_known = match &self.entries {
            Entries::Flat(entries) => entries.binary_search_by(|(other, _)| other.cmp(key)).is_ok(),
            Entries::Tree(entries) => entries.contains_key(key),
        };
        if !is_known {
            self.order = None;
        }
    }
}

/// An iterator over the entries of a map.
pub enum Iter<'a> {
    #[doc(hidden)]
    Flat(std::slice::Iter<'a, (Value, Value)>),
    #[doc(hidden)]
    Tree(imbl::ordmap::Iter<'a, Value, Value, imbl::shared_ptr::DefaultSharedPtr>),
    #[doc(hidden)]
    Custom(std::slice::Iter<'a, Value>, &'a Map),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Value, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Flat(entries) => entries.next().map(|(key, value)| (key, value)),
            Iter::Tree(entries) => entries.next(),
            Iter::Custom(keys, map) => keys.next().and_then(|key| map.get_entry(key)),
        }
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Value, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Returns the other spelling of a key, keyword or string; `None` for other keys.
fn other_spelling(key: &Value) -> Option<Value> {
    match key {
        Value::Keyword(name) => Some(Value::string(name.full())),
        Value::String(text) => Some(Value::keyword(text.as_str())),
        _ => None,
    }
}
