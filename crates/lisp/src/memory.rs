//! The state that outlives a program: its definitions and the cells of its atoms.
//!
//! A memory is a value. A program starts from one and, if it succeeds, produces another; a program that fails
//! changes nothing, because the memory before it still exists. Cloning is cheap.

use std::sync::Arc;

use imbl::OrdMap;

use crate::compile::Names;
use crate::value::{AtomRef, Stamp, Value, identical};

/// A definition: the current value of a name.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name, without `user/`.
    pub name: Arc<str>,
    /// The value of the latest definition.
    pub value: Value,
    /// The docstring of the latest definition.
    pub doc: Option<Arc<str>>,
    /// The position of its first definition among all names.
    pub order: u32,
    /// The type of its last result, if it is a function that has been called.
    pub returned: Option<Arc<str>>,
}

/// The difference between a memory and an earlier one that it came from.
#[derive(Clone, Default, Debug)]
pub struct Changes<'a> {
    /// Definitions that are new or have a different value, docstring or result type, in the order of their
    /// first definition.
    pub defined: Vec<&'a Definition>,
    /// Names that are no longer defined.
    pub forgotten: Vec<Arc<str>>,
}

/// Definitions and atoms.
#[derive(Clone, Default)]
pub struct Memory {
    pub(crate) names: Names,
    /// By the number of the name. A name may be known without being defined.
    pub(crate) slots: imbl::Vector<Option<Definition>>,
    pub(crate) atoms: OrdMap<u64, (AtomRef, Value)>,
    /// The next stamp of a function or number of an atom.
    pub(crate) next_stamp: u64,
    pub(crate) next_order: u32,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the definition of a name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let number = self.names.globals.number(name)?;
        self.slots.get(number as usize)?.as_ref()
    }

    /// Returns all definitions in the order of their first definition.
    pub fn definitions(&self) -> Vec<&Definition> {
        let mut all: Vec<&Definition> = self.slots.iter().flatten().collect();
        all.sort_by_key(|definition| definition.order);
        all
    }

    /// Returns the changes since an earlier memory that this one came from.
    ///
    /// A collection that was created again counts as changed even if it is equal: values are not compared in
    /// depth, so the cost is one step for each definition, whatever its size.
    pub fn changes_since(&self, before: &Memory) -> Changes<'_> {
        let mut defined = self.definitions();
        defined.retain(|definition| match before.get(&definition.name) {
            None => true,
            Some(old) => {
                !identical(&old.value, &definition.value)
                    || old.doc != definition.doc
                    || old.returned != definition.returned
            }
        });
        let forgotten = before.definitions().into_iter().map(|definition| definition.name.clone());
        Changes { defined, forgotten: forgotten.filter(|name| self.get(name).is_none()).collect() }
    }

    /// Returns the number of definitions.
    pub fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Returns whether nothing is defined.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().flatten().next().is_none()
    }

    /// Defines a name from the host.
    pub fn define(&mut self, name: &str, value: Value, doc: Option<&str>) {
        let number = self.names.globals.number_or_add(name);
        self.set(number, value, doc.map(Into::into));
    }

    /// Removes a definition. Its number is not reused.
    pub fn forget(&mut self, name: &str) {
        if let Some(number) = self.names.globals.number(name)
            && let Some(slot) = self.slots.get_mut(number as usize)
        {
            *slot = None;
        }
    }

    pub(crate) fn set(&mut self, number: u32, value: Value, doc: Option<Arc<str>>) {
        while self.slots.len() <= number as usize {
            self.slots.push_back(None);
        }
        let name = self.names.globals.name(number).cloned().unwrap_or_else(|| "".into());
        let order = match &self.slots[number as usize] {
            Some(definition) => definition.order,
            None => {
                self.next_order += 1;
                self.next_order - 1
            }
        };
        self.slots[number as usize] = Some(Definition { name, value, doc, order, returned: None });
    }

    /// Returns the value of an atom.
    pub fn atom(&self, atom: &AtomRef) -> Option<&Value> {
        self.atoms.get(&atom.number()).map(|(_, value)| value)
    }

    /// Returns all atoms with their values, by number.
    pub fn atoms(&self) -> impl Iterator<Item = (&AtomRef, &Value)> {
        self.atoms.values().map(|(atom, value)| (atom, value))
    }

    /// Ensures that no new function or atom gets a stamp that is in use.
    pub(crate) fn note_stamp(&mut self, stamp: u64) {
        if !Stamp(stamp).is_of_branch() {
            self.next_stamp = self.next_stamp.max(stamp + 1);
        }
    }

    /// Restores a stored atom: the same number gives the same atom.
    pub fn restore_atom(&mut self, number: u64, value: Value) -> AtomRef {
        let atom = match self.atoms.get(&number) {
            Some((atom, _)) => atom.clone(),
            None => AtomRef::new(number),
        };
        self.note_stamp(number);
        atom.note_cell(&value);
        self.atoms.insert(number, (atom.clone(), value));
        atom
    }
}
