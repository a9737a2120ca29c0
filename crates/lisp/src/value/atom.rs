//! Atoms: references to cells of the memory.
//!
//! An atom does not hold its value. The value lies in a numbered cell that belongs to the memory, which is why an
//! atom may hold itself without leaking and why a program that fails rolls its atoms back by dropping the cells.

use std::fmt;
use std::sync::Arc;

/// An atom. Clones are the same atom.
#[derive(Clone)]
pub struct AtomRef(Arc<u64>);

impl AtomRef {
    /// The atom of this number.
    pub(crate) fn new(number: u64) -> Self {
        Self(Arc::new(number))
    }

    /// The number of its cell.
    pub fn number(&self) -> u64 {
        *self.0
    }

    /// How many handles there are. The table of cells keeps one, so a count of one means that nobody else has any.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl fmt::Debug for AtomRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#<atom {}>", self.0)
    }
}
