//! The numbers of definitions and data items, and the aliases of `require`.
//!
//! A global is an index into the memory. Names are numbered in the order of their first occurrence and keep
//! their number for the life of a memory, so that code compiled for one program stays valid in the next.

use std::sync::Arc;

use imbl::OrdMap;

/// Numbers for names. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct NameTable {
    numbers: OrdMap<Arc<str>, u32>,
    names: imbl::Vector<Arc<str>>,
}

impl NameTable {
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, number: u32) -> Option<&Arc<str>> {
        self.names.get(number as usize)
    }

    pub(crate) fn number_or_add(&mut self, name: &str) -> u32 {
        if let Some(number) = self.number(name) {
            return number;
        }
        let number = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.push_back(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter()
    }
}

/// All name tables that a program refers to.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) globals: NameTable,
    pub(crate) data: NameTable,
    /// Aliases made by `require`: `alias` for a namespace, and `name` for `namespace/name`.
    pub(crate) aliases: OrdMap<Arc<str>, Arc<str>>,
    pub(crate) referred: OrdMap<Arc<str>, Arc<str>>,
}
