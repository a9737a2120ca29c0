//! Maps: entries in the total order of their keys.
//!
//! A small map is one sorted block of entries; a large one a persistent B+tree. A map made of a JSON object also
//! answers to the other spelling of a key, keyword or string, and so do the maps made by changing it.

use std::sync::Arc;

use imbl::OrdMap;

use super::{Shape, Value, Vector};
use crate::effort;

/// Up to how many entries a map is one block.
const SMALL: usize = 16;

/// A map.
#[derive(Clone)]
pub struct Map(Arc<TrieNode>);

#[derive(Clone)]
struct TrieNode {
    entries: Entries,
    shape: Shape,
    flexible: bool,
}

#[derive(Clone)]
enum Entries {
    Flat(Vec<(Value, Value)>),
    Tree(OrdMap<Value, Value>),
}

impl Default for Map {
    fn default() -> Self {
        Self(Arc::new(TrieNode { entries: Entries::Flat(Vec::new()), shape: Shape::EMPTY, flexible: false }))
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
    /// The empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same map, whose lookups accept the keyword or the string, as those of JSON objects do.
    #[must_use]
    pub fn flexible(mut self) -> Self {
        Arc::make_mut(&mut self.0).flexible = true;
        self
    }

    /// Whether lookups accept the keyword or the string.
    pub fn is_flexible(&self) -> bool {
        self.0.flexible
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match &self.0.entries {
            Entries::Flat(entries) => entries.len(),
            Entries::Tree(entries) => entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        match self.get_exact(key) {
            None if self.0.flexible => self.get_exact(&other_spelling(key)?),
            found => found,
        }
    }

    /// The value of exactly this key.
    pub fn get_exact(&self, key: &Value) -> Option<&Value> {
        match &self.0.entries {
            Entries::Flat(entries) => {
                // Keywords are nearly every key there is, and a scan for one needs no order.
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

    /// The key as it stands in the map and its value.
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

    /// The value of exactly this key, to be replaced by one that is no deeper or to be set again.
    pub(crate) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        match &mut Arc::make_mut(&mut self.0).entries {
            Entries::Flat(entries) => {
                let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                Some(&mut entries[at].1)
            }
            Entries::Tree(entries) => entries.get_mut(key),
        }
    }

    /// Whether there is such a key.
    pub fn contains_key(&self, key: &Value) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key. The key of an entry that exists stays as it is, in a flexible map its spelling too.
    pub fn insert(&mut self, key: Value, value: Value) {
        let key = match self.0.flexible && self.get_exact(&key).is_none() {
            true => other_spelling(&key).filter(|other| self.get_exact(other).is_some()).unwrap_or(key),
            false => key,
        };
        let node = Arc::make_mut(&mut self.0);
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

    /// Takes the entry of a key out.
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
        node.forget(&value);
        node.forget(&key);
        Some(value)
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0.entries {
            Entries::Flat(entries) => Iter::Flat(entries.iter()),
            Entries::Tree(entries) => Iter::Tree(entries.iter()),
        }
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// The entries as vectors of two.
    pub fn entries(&self) -> Vec<Value> {
        effort::touch(self.len().saturating_mul(effort::ALLOCATED));
        self.iter().map(|(key, value)| Value::Vector(Vector::entry(key.clone(), value.clone()))).collect()
    }

    /// How many bytes a change of one entry allocates at most.
    pub(crate) fn change_cost(&self) -> usize {
        match &self.0.entries {
            Entries::Flat(entries) if Arc::strong_count(&self.0) == 1 && entries.len() < SMALL => 128,
            Entries::Flat(entries) if entries.len() < SMALL => 96 + 32 * (entries.len() + 1),
            Entries::Flat(_) => 4096,
            Entries::Tree(_) if Arc::strong_count(&self.0) == 1 => 128,
            Entries::Tree(_) => 6144,
        }
    }

    /// How many bytes the map itself takes, without what its entries hold.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0.entries {
            Entries::Flat(entries) => 64 + 32 * entries.capacity(),
            Entries::Tree(entries) => 2048 + 64 * entries.len(),
        }
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
        }
    }
}

/// The entries of a map in the order of their keys.
pub enum Iter<'a> {
    #[doc(hidden)]
    Flat(std::slice::Iter<'a, (Value, Value)>),
    #[doc(hidden)]
    Tree(imbl::ordmap::Iter<'a, Value, Value, imbl::shared_ptr::DefaultSharedPtr>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Value, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Flat(entries) => entries.next().map(|(key, value)| (key, value)),
            Iter::Tree(entries) => entries.next(),
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

/// The other spelling of a key, since maps made of JSON answer to the keyword and to the string; nothing for other keys.
fn other_spelling(key: &Value) -> Option<Value> {
    match key {
        Value::Keyword(name) => Some(Value::string(name.full())),
        Value::String(text) => Some(Value::keyword(text.as_str())),
        _ => None,
    }
}
