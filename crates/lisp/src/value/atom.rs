//! Atoms: references to cells of the memory.
//!
//! An atom does not hold its value. The value is in a numbered cell that belongs to the memory. So an atom
//! may contain itself without a leak, and a program that fails rolls back its atoms by dropping the cells.

use std::fmt;
use std::sync::Arc;

/// An atom. Clones are the same atom.
#[derive(Clone)]
pub struct AtomRef(Arc<u64>);

impl AtomRef {
    pub(crate) fn new(number: u64) -> Self {
        Self(Arc::new(number))
    }

    /// Returns the number of its cell.
    pub fn number(&self) -> u64 {
        *self.0
    }

    /// Returns the number of handles. The table of cells has one, so a count of one means that the atom is
    /// unreachable.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl fmt::Debug for AtomRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#<atom {}>", self.0)
    }
}
